package gate

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

// The person behind the client that makes a call can be asked to agree to it, where policy allows that (R7.6). What that
// person says is a decision like any other: it is taken on the request, on record, by a decider of its own name, and the
// grant is spent at the intent. Whoever else decides first has decided.

// elicits says whether the person behind the client may decide on the call. Nobody may agree in a form to what it does not
// show: neither to arguments that the firewall wants looked at, nor to any in which something is redacted.
func (p *passage) elicits() bool {
	g := p.gate
	if p.finding != nil || p.redacted {
		return false
	}
	return g.o.Elicit != nil && g.o.Offers != nil && p.request.Export != "" && g.o.Elicit(p.tool.Package)
}

// answered takes what has come of a question in an earlier reply. A state that is not one for this very call goes no further,
// whatever came with it (S-052).
func (p *passage) answered(ctx context.Context) *refusal {
	a := p.request.Answered
	if a == nil {
		return nil
	}
	b, err := approval.Bind(p.approvable())
	if err != nil {
		return &refusal{code: call.CodeInternal, detail: err.Error()}
	}
	id, err := approval.ID(""), approval.ErrOffer
	if p.elicits() {
		id, err = p.gate.o.Offers.Take(a.State, &b, p.gate.o.Now())
	}
	if err != nil {
		return &refusal{code: call.CodeInvalidRequest, detail: err.Error(),
			saying: "the requestState is not of this very call, or was used already, or its time is over: make the call again without it"}
	}
	return p.consented(ctx, id, a.Consent)
}

// consented takes a decision of the person behind the client. Only a no is a refusal: whether there is a grant is for the
// store to say.
func (p *passage) consented(ctx context.Context, id approval.ID, c call.Consent) *refusal {
	g := p.gate
	switch c {
	case call.Agreed, call.Disagreed:
	case call.Dismissed:
		g.o.Offers.Dismiss(id)
		return nil
	default:
		return nil
	}
	// The person has spoken; that the caller goes meanwhile does not matter.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.o.CommitTimeout)
	defer cancel()
	by := approval.ByElicitation(p.request.Principal.ID)
	var r approval.Request
	err := g.o.Store.Update(ctx, func(tx store.Tx) (err error) {
		if c == call.Agreed {
			r, err = g.o.Approvals.Grant(tx, id, approval.ApprovedOnce, by, "", g.o.Now())
		} else {
			r, err = g.o.Approvals.Decline(tx, id, by, "", g.o.Now())
		}
		if err != nil {
			return err
		}
		entry := p.entry(ledger.KindApprovalDecided, r.Record())
		entry.CallID = r.CallID // it belongs to the call that asked first
		return tx.Append(entry)
	})
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return approvalRefusal(err)
	case err != nil: // somebody was there first, or its time is over: that is said when the grant is looked for
		g.o.Logger.Info("a decision of the person behind a client came too late", "request", id, "err", err)
	default:
		g.o.Hub.Notify(id)
	}
	if c == call.Agreed {
		return nil
	}
	if err == nil {
		p.asked, p.askedBy = id, r.CallID
	}
	return &refusal{code: call.CodeApprovalDeclined, detail: "declined by " + by, saying: "the call was declined: request " + string(id)}
}

// askBack ends the call with a question, where that is how a client is asked.
func (p *passage) askBack(r *approval.Request) *refusal {
	if !p.request.AskBack || !p.elicits() {
		return nil
	}
	state, ok := p.gate.o.Offers.Offer(r, p.gate.o.Now())
	if !ok {
		return nil
	}
	no := approvalRefusal(r.Refusal())
	no.question, no.state = &call.Question{Message: r.Form()}, state
	return no
}

// askMeanwhile asks while the call is held, where that is how a client is asked. The hub wakes the call when there is a
// decision. stop ends the asking, and waits for that.
func (p *passage) askMeanwhile(ctx context.Context, r *approval.Request) (stop func()) {
	if p.request.Ask == nil || p.gate.o.Hold <= 0 || !p.elicits() {
		return func() {}
	}
	if _, ok := p.gate.o.Offers.Offer(r, p.gate.o.Now()); !ok {
		return func() {}
	}
	id, q := r.ID, call.Question{Message: r.Form()}
	asking, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends when there is an answer, or with stop
		defer close(done)
		defer func() { // a panic of the edge is this question's fault alone, and no yes (F-64)
			if v := recover(); v != nil {
				p.gate.o.Logger.Error("panic while somebody was asked", "call", p.id, "request", id, "panic", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			}
		}()
		_ = p.consented(ctx, id, p.request.Ask(asking, q)) // the call that waits reads what was decided
	}()
	return func() {
		cancel()
		<-done
	}
}
