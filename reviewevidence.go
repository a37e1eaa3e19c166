package ostiary

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

// Evidence implements [Review].
func (h *Host) Evidence(ctx context.Context, f EvidenceFilter) (out []EvidenceInfo, err error) {
	filter := evidence.Filter{CallID: call.ID(f.Call), Provider: f.Provider, Limit: f.Limit}
	if f.State != "" {
		var s evidence.State
		if err := s.UnmarshalText([]byte(f.State)); err != nil {
			return nil, fmt.Errorf("list evidence: %w: %w", ErrInvalidDecision, err)
		}
		filter.States = []evidence.State{s}
	}
	err = h.store.View(ctx, func(v store.View) error {
		items, err := v.ListEvidence(filter)
		for _, i := range items {
			out = append(out, shownEvidence(i))
		}
		return err
	})
	return out, err
}

// EvidenceContent implements [Review].
func (h *Host) EvidenceContent(ctx context.Context, id string) (EvidenceInfo, error) {
	var held evidence.Sealed
	err := h.store.View(ctx, func(v store.View) (err error) {
		held, err = evidence.Load(v, evidence.ID(id), h.o.Now())
		return err
	})
	if err != nil {
		return EvidenceInfo{}, fmt.Errorf("evidence %s: %w", id, err)
	}
	payload, err := evidence.Read(ctx, h.vault, held)
	if err != nil {
		return EvidenceInfo{}, fmt.Errorf("evidence %s: %w", id, err)
	}
	info := shownEvidence(held.Item)
	if info.Content = payload; !json.Valid(payload) { // words of an error are no JSON
		if info.Content, err = marshal(string(payload)); err != nil {
			return EvidenceInfo{}, fmt.Errorf("evidence %s: %w", id, err)
		}
	}
	return info, nil
}

// DecideEvidence implements [Review].
func (h *Host) DecideEvidence(ctx context.Context, id, verb, reason string) (EvidenceInfo, error) {
	steps := map[string]evidenceStep{"release": evidence.Release, "reject": evidence.Reject, "purge": evidence.Purge}
	step, ok := steps[verb]
	if !ok {
		return EvidenceInfo{}, fmt.Errorf("evidence %s: %w: %q is not one of release, reject, purge", id, ErrInvalidDecision, verb)
	}
	var item evidence.Item
	err := h.store.Update(ctx, func(tx store.Tx) (err error) {
		if item, err = h.decideEvidence(tx, step, evidence.ID(id), reason); err != nil || item.Direction != evidence.Result {
			return err
		}
		// Whoever was asked about it need not be asked any more.
		r, waited, err := h.rules.Settle(tx, approval.ReleaseID(item.CallID), item.State == evidence.Released, operator.ID, reason, h.o.Now())
		if err != nil || !waited {
			return err
		}
		return h.appendApproval(tx, ledger.KindApprovalDecided, &r)
	})
	if err != nil {
		return EvidenceInfo{}, fmt.Errorf("%s evidence %s: %w", verb, id, err)
	}
	h.hub.Notify(approval.ReleaseID(item.CallID))
	return shownEvidence(item), nil
}

// appendEvidence records the step that was taken with an item. It belongs to the item's call.
func (h *Host) appendEvidence(tx store.Tx, by string, i *evidence.Item) error {
	body, err := i.Record()
	if err != nil {
		return fmt.Errorf("record %s: %w", ledger.KindEvidenceDecided, err)
	}
	return tx.Append(ledger.Entry{Time: h.o.Now(), Kind: ledger.KindEvidenceDecided, CallID: i.CallID, Session: i.Session, Principal: by, Body: body})
}

type evidenceStep func(evidence.Tx, evidence.ID, evidence.Decision) (evidence.Item, error)

// decideEvidence takes a step for the operator, and records it.
func (h *Host) decideEvidence(tx store.Tx, step evidenceStep, id evidence.ID, reason string) (evidence.Item, error) {
	item, err := step(tx, id, evidence.Decision{By: operator.ID, At: h.o.Now(), Reason: reason})
	if err != nil {
		return evidence.Item{}, err
	}
	return item, h.appendEvidence(tx, operator.ID, &item)
}

func shownEvidence(i evidence.Item) EvidenceInfo {
	e := EvidenceInfo{ID: string(i.ID), Call: string(i.CallID), Provider: i.Provider, Tool: string(i.Tool), Direction: i.Direction.String(), Verdict: i.Verdict,
		Reasons: i.Reasons, Sensitivity: i.Sensitivity, Excerpt: i.Excerpt, SHA256: i.SHA256.String(), Size: i.Size, State: i.State.String(),
		Created: i.Created, Expires: i.Expires, Decider: i.Decision.By, Decided: i.Decision.At, Reason: i.Decision.Reason, Delivered: i.Delivery.At}
	if i.State == evidence.Purged && i.Purge.By != "" {
		e.Decider, e.Decided, e.Reason = i.Purge.By, i.Purge.At, i.Purge.Reason
	}
	return e
}
