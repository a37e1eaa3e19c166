package ostiary

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/admission"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/sqlstore"
)

// PruneRequest takes the content of old records out of the ledger.
type PruneRequest struct {
	Before time.Time `json:"before"`            // only older records; those of the last day are never pruned
	DryRun bool      `json:"dry_run,omitempty"` // only say what would go
}

// PruneReport is what went.
type PruneReport struct {
	Before  time.Time `json:"before"`            // the time that held
	Pruned  int64     `json:"pruned"`            // records whose content went
	Kept    int64     `json:"kept"`              // records that are as old, and still needed
	Removed []string  `json:"removed,omitempty"` // backups of earlier schemas that are as old, and went with them
	Left    []string  `json:"left,omitempty"`    // younger backups, which still have the records that have gone
}

const (
	pruneNever = 24 * time.Hour // the age below which nothing is pruned
	pruneBatch = 1000           // records of one transaction
	pruneBytes = 8 << 20        // of their content, which is read into memory
	pruneEvery = time.Hour      // how often keep_days is looked at
	pruneSlice = 20             // transactions in a row, before other sweeping goes on
)

// pruning is the state of the pruning that keep_days asks for.
type pruning struct {
	mu    sync.Mutex // one pruning at a time; guards what follows
	after int64      // where the present round goes on
	next  time.Time  // when the next round begins
	clock steadiness
}

// Prune implements [Review]. It goes in small transactions: one that is cut off has pruned a part, and says so on record.
func (h *Host) Prune(ctx context.Context, r PruneRequest) (report PruneReport, err error) {
	now := h.o.Now()
	if r.Before.IsZero() || r.Before.After(now) {
		return report, fmt.Errorf("prune the ledger: %w: %s is not in the past", ErrInvalidDecision, r.Before.Format(time.RFC3339))
	}
	h.pruning.mu.Lock()
	defer h.pruning.mu.Unlock()
	report.Before = cutoff(r.Before, now)
	for after := int64(0); ; {
		step, err := h.pruneStep(ctx, after, report.Before, operator.ID, r.DryRun)
		report.Pruned, report.Kept = report.Pruned+step.pruned, report.Kept+step.kept
		if err != nil {
			return report, fmt.Errorf("prune the ledger: %w", err)
		}
		if after = step.last; step.done {
			break
		}
	}
	// The store empties its log behind a transaction that has pruned: what comes after one finds that done.
	if err := h.store.Update(ctx, func(store.Tx) error { return nil }); err != nil {
		return report, fmt.Errorf("prune the ledger: %w", err)
	}
	report.Removed, report.Left, err = h.pruneBackups(report.Before, r.DryRun)
	return report, err
}

func cutoff(before, now time.Time) time.Time {
	if latest := now.Add(-pruneNever); before.After(latest) {
		before = latest
	}
	return before.UTC().Round(0)
}

// pruneDue prunes what keep_days says, a part at a time.
func (h *Host) pruneDue(ctx context.Context) error {
	keep, now := h.o.Config.Ledger.Keep, h.o.Now()
	if keep == 0 || !h.pruning.mu.TryLock() {
		return nil
	}
	defer h.pruning.mu.Unlock()
	steady, jumped := h.pruning.clock.look(now, h.o.uptime())
	if jumped {
		h.log.Warn("keep_days prunes nothing: the clock was set since the gateway started. If it is right now, prune by hand or restart", "by", h.pruning.clock.off)
	}
	if !steady {
		return nil
	}
	if next := h.pruning.next; now.Before(next) && next.Sub(now) <= pruneEvery { // else the clock was set back
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	newest, err := h.newestRecord(ctx)
	if err != nil {
		return fmt.Errorf("prune the ledger: %w", err)
	}
	before := cutoff(now.Add(-keep), earlier(now, newest))
	var pruned int64
	for range pruneSlice {
		step, err := h.pruneStep(ctx, h.pruning.after, before, evidence.Gateway, false)
		if err != nil {
			return fmt.Errorf("prune the ledger: %w", err)
		}
		pruned += step.pruned
		if h.pruning.after = step.last; step.done {
			h.pruning.after, h.pruning.next = 0, now.Add(pruneEvery)
			_, left, err := h.pruneBackups(before, false)
			if err != nil {
				return err
			}
			if len(left) > 0 && pruned > 0 {
				h.log.Warn("backups of earlier schemas still have what was pruned", "files", left)
			}
			break
		}
	}
	if pruned > 0 {
		h.log.Info("old records pruned", "records", pruned, "before", before)
	}
	return nil
}

// newestRecord is the time of the last record.
func (h *Host) newestRecord(ctx context.Context) (at time.Time, err error) {
	err = h.store.View(ctx, func(v store.View) error {
		seq, _, err := v.Head()
		if err != nil || seq == 0 {
			return err
		}
		return v.Records(seq-1, 1, func(r ledger.Record) error { at = r.Time; return nil })
	})
	return at, err
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// pruneStep is one batch of a pruning.
type pruneStep struct {
	last         int64 // the last record that it has looked at
	pruned, kept int64
	done         bool // there is nothing old behind it
}

var errBatch = errors.New("the batch is full")

// pruneStep looks at the records behind one, and prunes the old ones among them that are not needed, in one transaction.
func (h *Host) pruneStep(ctx context.Context, after int64, before time.Time, by string, dry bool) (step pruneStep, err error) {
	var old []ledger.Record
	needed := ledger.Needed{Calls: map[call.ID]bool{}}
	err = h.store.View(ctx, func(v store.View) error {
		step, old = pruneStep{last: after, done: true}, old[:0]
		seen, bytes, aged := 0, 0, false
		err := v.Records(after, pruneBatch, func(r ledger.Record) error {
			step.last = r.Seq
			seen++
			if r.Time.Before(before) {
				aged = true
				if r.Pruned == 0 && r.Kind != ledger.KindPruned {
					old, bytes = append(old, r), bytes+len(r.Body)
				}
			}
			if bytes > pruneBytes {
				return errBatch
			}
			return nil
		})
		full := errors.Is(err, errBatch)
		if err != nil && !full {
			return err
		}
		step.done = !full && (seen < pruneBatch || !aged)
		return h.neededBy(v, old, before, &needed)
	})
	if err != nil || len(old) == 0 {
		return step, err
	}
	var seqs []int64
	err = h.store.Update(ctx, func(tx store.Tx) error {
		if err := needNow(tx, &needed); err != nil {
			return err
		}
		seqs = seqs[:0]
		for i := range old {
			if !needed.Keeps(&old[i]) {
				seqs = append(seqs, old[i].Seq)
			}
		}
		if dry || len(seqs) == 0 {
			return nil
		}
		return tx.Bury(seqs, ledger.Burial{By: by, At: h.o.Now(), Before: before})
	})
	if err == nil {
		step.pruned, step.kept = int64(len(seqs)), int64(len(old)-len(seqs))
	}
	return step, err
}

// neededBy finds what does not become needed again once it is not: the calls of which something is held, and the admissions
// that hold since the cutoff.
func (h *Host) neededBy(v store.View, old []ledger.Record, before time.Time, needed *ledger.Needed) error {
	known := map[call.ID]bool{"": true}
	admissions := false
	for i := range old {
		r := &old[i]
		admissions = admissions || r.Kind == ledger.KindAdmission
		if known[r.CallID] {
			continue
		}
		known[r.CallID] = true
		held, err := v.ListEvidence(evidence.Filter{CallID: r.CallID, States: []evidence.State{evidence.Held, evidence.Released, evidence.Rejected}, Limit: 1})
		if err != nil {
			return err
		}
		if len(held) > 0 {
			needed.Calls[r.CallID] = true
		}
	}
	if !admissions {
		return nil
	}
	var all []ledger.Record
	if err := v.RecordsOfKind(ledger.KindAdmission, func(r ledger.Record) error { all = append(all, r); return nil }); err != nil {
		return err
	}
	needed.Admissions = ledger.InForce(all, before)
	return nil
}

// needNow finds what is open and in force at this moment, in the transaction that prunes.
func needNow(tx store.Tx, needed *ledger.Needed) error {
	open, err := tx.OpenIntents()
	if err != nil {
		return err
	}
	for _, i := range open {
		needed.Calls[i.CallID] = true
	}
	needed.Approvals = map[string]bool{}
	if err := tx.EachApproval(func(r approval.Request) bool {
		if !r.State.Ended() {
			needed.Approvals[string(r.ID)] = true
		}
		return true
	}); err != nil {
		return err
	}
	var quarantines []admission.Quarantine
	if quarantines, err = tx.Quarantines(); err != nil {
		return err
	}
	needed.Quarantines = map[ledger.Quarantine]bool{}
	for _, q := range quarantines {
		needed.Quarantines[ledger.Quarantine{Provider: q.Provider, Tool: q.Tool}] = true
	}
	return nil
}

// pruneBackups removes the backups that were made before the cutoff: all that they have is as old.
func (h *Host) pruneBackups(before time.Time, dry bool) (removed, left []string, err error) {
	backups, err := sqlstore.Backups(h.o.DataDir)
	if err != nil {
		return nil, nil, fmt.Errorf("prune backups: %w", err)
	}
	for _, b := range backups {
		if !b.Made.Before(before) {
			left = append(left, b.Path)
			continue
		}
		if !dry {
			if err := os.Remove(b.Path); err != nil {
				return removed, left, fmt.Errorf("prune backups: %w", err)
			}
		}
		removed = append(removed, b.Path)
	}
	return removed, left, nil
}
