package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/note"
)

// Fault says what is wrong with a record. The list only grows.
type Fault string

// The faults that a verification can find.
const (
	FaultMalformed    Fault = "malformed"            // a line of an export is not what the format says
	FaultGap          Fault = "gap"                  // the record is missing
	FaultOrder        Fault = "order"                // the record came again, or too late
	FaultPrev         Fault = "prev_mismatch"        // it does not name the hash of the record before
	FaultHash         Fault = "hash_mismatch"        // its content does not have its hash
	FaultNotCanonical Fault = "not_canonical"        // its body is not in canonical form
	FaultCheckpoint   Fault = "checkpoint_mismatch"  // the signed root is not that of the records up to it
	FaultSignature    Fault = "checkpoint_signature" // a checkpoint is not signed by the ledger's key
	FaultTruncated    Fault = "truncated"            // a checkpoint or the header promises it, but the records end before
	FaultTombstone    Fault = "tombstone"            // its content is gone, and no record vouches for that, or not for this
	FaultRollback     Fault = "rollback"             // a checkpoint kept elsewhere does not fit: this is an older or another ledger
)

// Problem is the first bad record of a ledger. It is an error.
type Problem struct {
	Seq    int64 // the record's sequence; for a checkpoint, the last one that it covers
	Fault  Fault
	Detail string
}

// Error says which record is bad, and how.
func (p *Problem) Error() string {
	return fmt.Sprintf("ledger record %d: %s: %s", p.Seq, p.Fault, p.Detail)
}

// Report is what a verification has seen. If Bad is set the other fields tell how far it came.
type Report struct {
	Origin      string
	First, Last int64 // the range of records that was read; zero if there were none
	Records     int64
	Tombstones  int64 // of the records, those whose content was pruned
	Unvouched   int64 // of the tombstones, those whose ledger.pruned record is not in the range, so that their hash alone is checked
	Checkpoints int
	Signed      int64 // sequence of the last record under a checkpoint; later ones are chained, but not signed yet
	Root        Hash  // of the tree at Last
	Bad         *Problem
}

// Source is where records are read from: [FromView] or [FromExport].
type Source interface {
	// walk feeds the walker, records in their order and each checkpoint after the last record that it covers or later.
	// A *Problem ends it, and is returned.
	walk(ctx context.Context, w *Walker) error
}

// Verify reads all of a source and names the first bad record in Report.Bad. verifier is the ledger's public key, as its
// ledger.pub holds it; known are checkpoints that were kept elsewhere, which a rolled-back ledger does not fit (F-51). The
// error is about the reading itself: then nothing is known.
func Verify(ctx context.Context, src Source, verifier string, known ...[]byte) (Report, error) {
	v, err := note.NewVerifier(verifier)
	if err != nil {
		return Report{}, fmt.Errorf("verify ledger: verifier key: %w", err)
	}
	w := &Walker{verifier: v, key: verifier}
	for _, msg := range known {
		c, err := OpenCheckpoint(msg, v)
		if err != nil {
			return Report{}, fmt.Errorf("verify ledger: checkpoint from outside: %w", err)
		}
		w.known = append(w.known, c)
	}
	w.report.Origin = Origin(v.Name())
	err = src.walk(ctx, w)
	if err == nil {
		err = w.end()
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		w.report.Bad = p
		err = nil
	}
	if err != nil {
		return Report{}, fmt.Errorf("verify ledger: %w", err)
	}
	w.report.Root = w.edge.Root()
	return w.report, nil
}

// Walker checks records one after the other. It is not safe for concurrent use, and of no more use after a problem.
type Walker struct {
	verifier note.Verifier
	key      string // verifier's encoding
	chain    Chain
	edge     Edge
	body     []byte           // scratch
	begin    int64            // the first record; 0: the first of all
	buried   bool             // the last record is a tombstone
	graves   map[int64]*grave // tombstones by the record that vouches for them, until it comes

	previous int64 // size of the last checkpoint
	known    []Checkpoint
	report   Report
}

// NewWalker goes on after a state that is trusted: the hash of the last record that it covers, and the tree's edge there.
func NewWalker(last Hash, edge Edge) *Walker {
	return &Walker{chain: Chain{Seq: edge.Size(), Hash: last}, edge: edge, begin: edge.Size() + 1}
}

// Edge is the tree's edge after the last record.
func (w *Walker) Edge() Edge { return w.edge }

// Chain is the chain's end after the last record.
func (w *Walker) Chain() Chain { return Chain{Seq: w.chain.Seq, Hash: w.chain.Hash} }

// Record checks the next record. Its error is a *Problem.
func (w *Walker) Record(r *Record) error {
	next := w.chain.Seq + 1
	switch {
	case r.Seq > next:
		return &Problem{next, FaultGap, fmt.Sprintf("the record after %d is %d", w.chain.Seq, r.Seq)}
	case r.Seq < next && r.Prev == w.chain.Hash: // it is in its place, under another number
		return &Problem{next, FaultOrder, fmt.Sprintf("it has the number %d", r.Seq)}
	case r.Seq < next:
		return &Problem{r.Seq, FaultOrder, fmt.Sprintf("it stands where record %d should", next)}
	}
	if r.Prev != w.chain.Hash {
		if w.buried && (r.Pruned != 0 || w.chain.leaf(r) == r.Hash) { // r is as it was made, so the tombstone is not
			return &Problem{r.Seq - 1, FaultTombstone, "it does not have the hash that the record behind it names"}
		}
		return &Problem{r.Seq, FaultPrev, "it does not name the hash of the record before it"}
	}
	check := w.content
	if r.Pruned != 0 {
		check = w.tombstone
	}
	if err := check(r); err != nil {
		return err
	}
	if err := w.vouch(r); err != nil {
		return err
	}
	w.buried = r.Pruned != 0
	w.chain.Seq, w.chain.Hash = r.Seq, r.Hash
	w.edge.Append(r.Hash)
	if w.report.First == 0 {
		w.report.First = r.Seq
	}
	w.report.Last = r.Seq
	w.report.Records++
	return w.checkKnown()
}

// content checks a record whose content is there.
func (w *Walker) content(r *Record) error {
	body, err := AppendBody(w.body[:0], r.Body)
	w.body = body
	if err != nil {
		return &Problem{r.Seq, FaultNotCanonical, err.Error()}
	}
	if !bytes.Equal(body, r.Body) {
		return &Problem{r.Seq, FaultNotCanonical, "its body is not in canonical form"}
	}
	if hash := w.chain.leaf(r); hash != r.Hash {
		return &Problem{r.Seq, FaultHash, "its content does not have its hash"}
	}
	return nil
}

// checkpoint checks a signed checkpoint that stands after the last record.
func (w *Walker) checkpoint(size int64, msg []byte) error {
	c, err := OpenCheckpoint(msg, w.verifier)
	if err != nil {
		return &Problem{size, FaultSignature, err.Error()}
	}
	switch {
	case c.Size != size:
		return &Problem{size, FaultCheckpoint, fmt.Sprintf("the checkpoint is of %d records", c.Size)}
	case c.Size > w.chain.Seq:
		return &Problem{w.chain.Seq + 1, FaultTruncated, fmt.Sprintf("a checkpoint covers %d records", c.Size)}
	case c.Previous != w.previous:
		return &Problem{size, FaultCheckpoint, fmt.Sprintf("the checkpoint before it is at %d, but it names one at %d", w.previous, c.Previous)}
	case c.Size < w.chain.Seq:
		return &Problem{size, FaultCheckpoint, fmt.Sprintf("the checkpoint stands after record %d", w.chain.Seq)}
	}
	if c.Root != w.edge.Root() {
		return &Problem{size, FaultCheckpoint, fmt.Sprintf("a record of %d to %d is not the one that was signed", w.previous+1, size)}
	}
	w.previous = size
	w.report.Checkpoints++
	w.report.Signed = size
	return nil
}

func (w *Walker) checkKnown() error {
	for _, c := range w.known {
		if c.Size == w.chain.Seq && c.Root != w.edge.Root() {
			return &Problem{c.Size, FaultRollback, "the checkpoint from outside was signed over other records"}
		}
	}
	return nil
}

// end checks what only the end can show.
func (w *Walker) end() error {
	for _, c := range w.known {
		if c.Size > w.chain.Seq {
			return &Problem{w.chain.Seq + 1, FaultRollback, fmt.Sprintf("the checkpoint from outside covers %d records", c.Size)}
		}
		if w.report.First > 0 && c.Size < w.report.First-1 {
			return fmt.Errorf("the checkpoint from outside is at %d, before the first record %d that was read", c.Size, w.report.First)
		}
	}
	return nil
}

// FromView reads the ledger of a store, inside one read transaction.
func FromView(v View) Source { return viewSource{v} }

type viewSource struct{ view View }

type signedNote struct {
	seq int64
	msg []byte
}

func (s viewSource) walk(ctx context.Context, w *Walker) error {
	var notes []signedNote
	if err := s.view.Checkpoints(func(seq int64, msg []byte) error {
		notes = append(notes, signedNote{seq, msg})
		return nil
	}); err != nil {
		return err
	}
	err := s.view.Records(0, 0, func(r Record) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.Record(&r); err != nil {
			return err
		}
		for len(notes) > 0 && notes[0].seq <= r.Seq {
			if err := w.checkpoint(notes[0].seq, notes[0].msg); err != nil {
				return err
			}
			notes = notes[1:]
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(notes) > 0 {
		return w.checkpoint(notes[0].seq, notes[0].msg)
	}
	if p := w.unvouched(); p != nil {
		return p
	}
	return nil
}
