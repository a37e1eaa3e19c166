package ostiary

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/store"
)

// Approvals implements [Review].
func (h *Host) Approvals(ctx context.Context, all bool) (out []ApprovalInfo, err error) {
	now := h.o.Now()
	err = h.store.View(ctx, func(v store.View) error {
		if !all {
			waiting, err := approval.Pending(v, now)
			for _, r := range waiting {
				out = append(out, shownApproval(r))
			}
			return err
		}
		var ids []approval.ID
		if err := v.EachApproval(func(r approval.Request) bool { ids = append(ids, r.ID); return true }); err != nil {
			return err
		}
		for _, id := range ids {
			r, err := approval.Show(v, id, now)
			if err != nil {
				return err
			}
			out = append(out, shownApproval(r))
		}
		return nil
	})
	return out, err
}

// Approval implements [Review].
func (h *Host) Approval(ctx context.Context, id string) (info ApprovalInfo, err error) {
	err = h.store.View(ctx, func(v store.View) error {
		r, err := approval.Show(v, approval.ID(id), h.o.Now())
		info = shownApproval(r)
		return err
	})
	if err != nil {
		return ApprovalInfo{}, fmt.Errorf("approval %s: %w", id, err)
	}
	return info, nil
}

// Decide implements [Review].
func (h *Host) Decide(ctx context.Context, d ApprovalDecision) (ApprovalInfo, error) {
	id, now := approval.ID(d.ID), h.o.Now()
	var r approval.Request
	err := h.store.Update(ctx, func(tx store.Tx) (err error) {
		switch {
		case !d.Grant:
			r, err = h.rules.Decline(tx, id, operator.ID, d.Reason, now)
		case d.ForSession:
			r, err = h.rules.Grant(tx, id, approval.ApprovedForSession, operator.ID, d.Reason, now)
		default:
			r, err = h.rules.Grant(tx, id, approval.ApprovedOnce, operator.ID, d.Reason, now)
		}
		if err != nil {
			return err
		}
		if r.Evidence != "" { // what is agreed to is done by agreeing
			step := evidence.Reject
			if d.Grant {
				step = evidence.Release
			}
			if _, err := h.decideEvidence(tx, step, evidence.ID(r.Evidence), d.Reason); err != nil {
				return err
			}
		}
		return h.appendApproval(tx, ledger.KindApprovalDecided, &r)
	})
	if err != nil {
		return ApprovalInfo{}, fmt.Errorf("decide on approval %s: %w", d.ID, err)
	}
	h.hub.Notify(id)
	return shownApproval(r), nil
}

// Revoke implements [Review].
func (h *Host) Revoke(ctx context.Context, d Revocation) ([]ApprovalInfo, error) {
	if d.All == (d.ID != "") {
		return nil, fmt.Errorf("revoke approvals: %w: name one, or all", ErrInvalidDecision)
	}
	var revoked []approval.Request
	err := h.store.Update(ctx, func(tx store.Tx) (err error) {
		if d.All {
			revoked, err = h.rules.RevokeAll(tx, operator.ID, d.Reason, h.o.Now())
		} else {
			revoked = make([]approval.Request, 1)
			revoked[0], err = h.rules.Revoke(tx, approval.ID(d.ID), operator.ID, d.Reason, h.o.Now())
		}
		for i := 0; i < len(revoked) && err == nil; i++ {
			err = h.appendApproval(tx, ledger.KindApprovalDecided, &revoked[i])
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("revoke approval %s: %w", cmp.Or(d.ID, "of everything"), err)
	}
	out := make([]ApprovalInfo, len(revoked))
	for i := range revoked {
		h.hub.Notify(revoked[i].ID)
		out[i] = shownApproval(revoked[i])
	}
	return out, nil
}

// appendApproval records what became of a request. It belongs to the call that asked first.
func (h *Host) appendApproval(tx store.Tx, kind ledger.Kind, r *approval.Request) error {
	return tx.Append(ledger.Entry{Time: h.o.Now(), Kind: kind, CallID: r.CallID, Session: r.Session, Principal: r.Principal, Body: r.Record()})
}

// blockOutdated ends requests that were asked for under another policy than the one that holds now (R7.5).
func (h *Host) blockOutdated(ctx context.Context) error {
	snapshot := h.policy.Snapshot()
	err := h.store.Update(ctx, func(tx store.Tx) error {
		var outdated []approval.ID
		if err := tx.EachApproval(func(r approval.Request) bool {
			if r.State == approval.Waiting && r.Policy != snapshot {
				outdated = append(outdated, r.ID)
			}
			return true
		}); err != nil {
			return err
		}
		for _, id := range outdated {
			r, err := h.rules.Block(tx, id, "the policy has changed", h.o.Now())
			if err != nil {
				return err
			}
			if err := h.appendApproval(tx, ledger.KindApprovalDecided, &r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("end approvals of an earlier policy: %w", err)
	}
	return nil
}

func shownApproval(r approval.Request) ApprovalInfo {
	a := ApprovalInfo{ID: string(r.ID), Evidence: r.Evidence, Call: string(r.CallID), State: r.State.String(), Principal: r.Principal, Session: r.Session, Export: r.Export,
		Provider: r.Provider, Tool: string(r.Tool), Effect: r.Effect.String(), Sensitivity: r.Sensitivity.String(), Summary: r.Summary, Arguments: r.Arguments,
		Created: r.Created, Expires: r.Expires, Decider: r.Decider, Decided: r.Decided, Reason: r.Reason}
	if r.Decision != approval.Undecided {
		a.Decision = r.Decision.String()
	}
	return a
}

// Taints implements [Review].
func (h *Host) Taints(ctx context.Context) (out []TaintInfo, err error) {
	err = h.store.View(ctx, func(v store.View) error {
		return v.EachTaint(func(principal, session string, t policy.Taint) bool {
			out = append(out, TaintInfo{Principal: principal, Session: session, Taints: t.Names()})
			return true
		})
	})
	return out, err
}

// DropTaint implements [Review].
func (h *Host) DropTaint(ctx context.Context, d TaintDrop) (TaintInfo, error) {
	was, err := h.gate.DropTaint(ctx, d.Principal, d.Session, func(was policy.Taint) (ledger.Entry, error) {
		body, err := marshal(map[string]any{"principal": d.Principal, "taints": was.Names(), "decider": operator.ID, "reason": d.Reason})
		return ledger.Entry{Time: h.o.Now(), Kind: ledger.KindTaintDropped, Session: d.Session, Principal: operator.ID, Body: body}, err
	})
	if err != nil {
		return TaintInfo{}, fmt.Errorf("forget %w", err)
	}
	return TaintInfo{Principal: d.Principal, Session: d.Session, Taints: was.Names()}, nil
}

// Explain implements [Review].
func (h *Host) Explain(ctx context.Context, q ExplainRequest) (JSON, error) {
	id, err := h.Resolve(q.Tool)
	if err != nil {
		return nil, err
	}
	d, err := h.describedTool(id)
	if err != nil {
		return nil, err
	}
	if err := checkArguments(id, q.Arguments); err != nil {
		return nil, err
	}
	principal := operator
	if q.Principal != "" {
		principal = call.Principal{ID: q.Principal}
	}
	question := policy.Question{Principal: principal, Export: q.Export, Tool: d, Arguments: q.Arguments}
	err = h.store.View(ctx, func(v store.View) (err error) {
		question.Taint, err = v.Taint(principal.ID, q.Session)
		return err
	})
	if err != nil {
		return nil, err
	}
	return marshal(h.policy.Explain(question))
}

// describedTool is what policy needs of a tool. Without a connection that is what configuration says of it.
func (h *Host) describedTool(id call.ToolID) (*call.Descriptor, error) {
	if t, ok := h.registry.Tool(id); ok {
		return t.Descriptor, nil
	}
	pkg, name, _ := id.Split()
	if p, ok := h.o.Config.Provider(pkg); ok {
		for _, a := range p.Profile.AllowedTools {
			if a.Name() == name {
				return &call.Descriptor{ID: id, Package: pkg, RawName: a.Raw, Name: name, Effect: p.Profile.Effects[name]}, nil
			}
		}
	}
	return nil, fmt.Errorf("tool %s: %w", id, store.ErrNotFound)
}

func (h *Host) provider(pkg string) *provider.Provider {
	for _, p := range h.providers.Providers() {
		if p.Profile.Package == pkg {
			return p
		}
	}
	return nil
}
