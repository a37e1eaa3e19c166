package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

// What was held is owed to the caller: when somebody has released it, the same call gets it, once, and nothing is sent a
// second time. A repeat alone is no request for it: it may as well be a new wish, which an old answer would betray. So the
// caller names the call that it means.

// carriedOut begins what is advised about a result that nobody is asked to review any more.
const carriedOut = "The call was carried out"

// claim is what a call must be to be given the result of this one.
func (p *passage) claim() (call.Digest, error) {
	b, err := approval.Bind(p.approvable())
	if err != nil {
		return call.Digest{}, err
	}
	return b.Claim(), nil
}

// owe writes beside a held result whose it is and what is known of its call, and prepares to ask for its release if that is
// what a rule says (R8.4).
func (p *passage) owe(ctx context.Context, kind firewall.VerdictKind, o call.Outcome) {
	item := &p.finding.evidence.Item
	var err error
	if item.Claim, err = p.claim(); err == nil && kind == firewall.ApprovalRequired && item.State == evidence.Held {
		var q approval.Question
		q, err = p.ask(ctx)
		q.Description.Summary = fmt.Sprintf("%s asks for the result of %s (%s), which holds something that somebody has to look at: %s",
			clip(p.request.Principal.ID, 120), p.tool.ID, p.tool.Effect, clip(fmt.Sprint(p.finding.reasons), 300))
		p.asking = &q
	}
	if item.Outcome = o; err != nil { // such arguments were never let out
		p.gate.o.Logger.Error("bind a held result", "call", p.id, "err", err)
		item.Claim, p.asking = call.Digest{}, nil
	}
}

// howToCollect tells a caller how it gets at a held result, if that can be: when it is known whether it is kept.
func (p *passage) howToCollect(o *call.Outcome) {
	item := &p.finding.evidence.Item
	if p.unkept {
		retell(o, "", carriedOut+".")
		o.Message += " (the result could not be kept, so nobody can release it)"
	} else if p.gate.o.Opener != nil && !item.Claim.IsZero() && p.request.Export != "" {
		o.Message += " When an operator has released it, make exactly this call with _meta[\"org.ostiary/call\"] = \"" + string(p.id) +
			"\": you are given the result, and nothing is sent."
	}
	o.Message += " (evidence " + string(item.ID) + ")"
}

// askRelease asks for the release of the result, in the transaction that keeps it, unless there was no room for it.
func (p *passage) askRelease(tx store.Tx, lost bool) error {
	p.release = approval.Request{}
	if lost {
		return nil
	}
	r, err := p.gate.o.Approvals.AskRelease(tx, *p.asking, string(p.finding.evidence.Item.ID), p.gate.o.Now())
	if _, refused := errors.AsType[*approval.Refusal](err); refused {
		return nil // too much is asked already; it stays held, and can be released all the same
	}
	if err != nil {
		return err
	}
	p.release = r
	return tx.Append(p.entry(ledger.KindApprovalAsked, r.Record()))
}

// awaitRelease holds the answer of a call until somebody has decided on its result, or its time is up.
func (p *passage) awaitRelease(ctx context.Context, withheld call.Reply) call.Reply {
	if p.release.ID == "" {
		return withheld
	}
	r, err := p.hold(ctx, p.release)
	if err == nil && r.State == approval.Spent {
		var given call.Reply
		if given, err = p.deliver(ctx, evidence.ID(r.Evidence)); err == nil {
			return given
		}
	}
	switch {
	case err != nil:
		p.gate.o.Logger.Warn("hand over a result", "call", p.id, "request", p.release.ID, "err", err)
	case r.State == approval.Declined:
		withheld.Outcome.Message += " (its release was declined: request " + string(r.ID) + ")"
		return withheld
	}
	withheld.Outcome.Message += " (somebody has been asked to release it: request " + string(p.release.ID) + ")"
	return withheld
}

// collect answers a request for the result of an earlier call. Whatever comes of it, nothing is sent.
func (p *passage) collect(ctx context.Context) call.Reply {
	id := evidence.ID("ev-" + p.request.Collect)
	reply, err := p.deliver(ctx, id)
	if err == nil {
		return reply
	}
	var meaning, advice, words string // nothing waits for a review that has been, or cannot be
	switch {
	case errors.Is(err, evidence.ErrUnknown):
		return p.refuseSaying(ctx, call.CodeInvalidRequest, err.Error(), "no result is held for this very call of yours under the id in _meta[\"org.ostiary/call\"]")
	case errors.Is(err, evidence.ErrHeld):
		words = "nobody has released it yet"
	case errors.Is(err, evidence.ErrDecided):
		advice = carriedOut + "; of its result: it must not be let in."
	case errors.Is(err, evidence.ErrDelivered):
		meaning, advice = "The result was let in.", carriedOut+"; its result was released, and you were given it already."
	case errors.Is(err, evidence.ErrOver):
		advice, words = carriedOut+".", "it is no longer kept"
	case errors.Is(err, store.ErrUnavailable), ctx.Err() != nil:
		return p.turnBack(ctx, approvalRefusal(err))
	default:
		p.gate.o.Logger.Error("hand over a result", "call", p.request.Collect, "err", err)
		words = "it cannot be read now; tell the operator"
	}
	p.refuse(ctx, call.CodeWithheld, err.Error()) // on record: this request was given nothing
	// What is said is about the call whose result it is: something was sent then.
	o := p.earlier(ctx, id)
	retell(&o, meaning, advice)
	if words != "" {
		o.Message += " (" + words + ")"
	}
	return call.Reply{Outcome: o}
}

// retell says of a withheld result what its meaning is and what to do, in other words than the usual; "": in those.
func retell(o *call.Outcome, meaning, advice string) {
	if info := o.Code.Info(); o.Code == call.CodeWithheld { // an effect that is unknown has a code of its own, and is what matters
		info.Meaning, info.Advice = cmp.Or(meaning, info.Meaning), cmp.Or(advice, info.Advice)
		o.Message = message(*o, info)
	}
}

// earlier is what is known of a call whose result is withheld.
func (p *passage) earlier(ctx context.Context, id evidence.ID) call.Outcome {
	var o call.Outcome // the zero value is unknown
	if err := p.gate.o.Store.View(ctx, func(v store.View) error {
		item, ok, err := v.Evidence(id)
		if ok {
			o = item.Outcome
		}
		return err
	}); err != nil {
		p.gate.o.Logger.Error("read what is known of a call", "call", p.request.Collect, "err", err)
	}
	o.CallID = p.request.Collect
	return p.withhold(o, call.CodeWithheld, "").Outcome
}

// deliver hands over a released result: what was held, byte for byte. That it is handed over is on disk first, so that it
// never is twice.
func (p *passage) deliver(ctx context.Context, id evidence.ID) (call.Reply, error) {
	g := p.gate
	claim, err := p.claim()
	if err != nil {
		return call.Reply{}, err
	}
	var held evidence.Sealed
	if err := g.o.Store.View(ctx, func(v store.View) error {
		item, ok, err := v.Evidence(id)
		if err == nil && !ok {
			err = evidence.ErrUnknown
		}
		if err == nil {
			err = item.Deliverable(claim, g.o.Now())
		}
		if err == nil {
			held, err = evidence.Load(v, id, g.o.Now())
		}
		return err
	}); err != nil {
		return call.Reply{}, err
	}
	if g.o.Opener == nil {
		return call.Reply{}, errors.New("there is nothing to open evidence with")
	}
	result, err := evidence.Read(ctx, g.o.Opener, held)
	if err != nil {
		return call.Reply{}, err
	}
	if v := jsontext.Value(result); v.Kind() != '{' || !v.IsValid() {
		return call.Reply{}, fmt.Errorf("evidence %s: %w: it is no result", id, evidence.ErrDamaged)
	}
	item := held.Item
	reads := p.reads(item.Outcome)
	err = g.o.Store.Update(ctx, func(tx store.Tx) error {
		given, err := evidence.Deliver(tx, id, claim, p.id, g.o.Now())
		if err != nil {
			return err
		}
		if err := p.reader().put(tx, reads); err != nil {
			return err
		}
		entry := p.entry(ledger.KindResultDelivered, deliveredBody(&given))
		entry.CallID = given.CallID
		return tx.Append(entry)
	})
	if reads != 0 {
		g.taints.add(p.reader(), reads)
	}
	if err != nil {
		return call.Reply{}, err
	}
	o := item.Outcome
	p.complete(&o)
	return call.Reply{Outcome: o, Result: result, Provenance: call.Provenance{Provider: p.tool.Package, Tool: p.tool.ID, CallID: item.CallID,
		Descriptor: p.tool.DescriptorDigest, Revision: p.tool.Revision, Time: item.Created, Verdict: item.Verdict, ReleasedBy: item.Decision.By}}, nil
}
