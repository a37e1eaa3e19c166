package gate

import (
	"context"
	"errors"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/world"
)

// entry is a record of this call.
func (p *passage) entry(kind ledger.Kind, body []byte) ledger.Entry {
	return ledger.Entry{Time: p.gate.o.Now(), Kind: kind, CallID: p.id, Session: p.request.Session, Principal: p.request.Principal.ID, Body: body}
}

// held is what was kept back of this call; nil: nothing.
func (p *passage) held() *evidence.Sealed {
	if p.finding == nil {
		return nil
	}
	return p.finding.evidence
}

// commitIntent spends the grant and writes the intent, both or neither: of two calls that want one grant, one goes on.
// If the disk stops answering meanwhile it is uncertain which, and the call goes no further.
func (p *passage) commitIntent(ctx context.Context) (no *refusal, uncertain bool) {
	if p.request.Frontier != nil { // the call may have waited for long
		if no := p.withLate(ctx); no != nil {
			return no, false
		}
	}
	relaxed := p.relaxed()
	intent := ledger.Intent{CallID: p.id, Started: p.started, Principal: p.request.Principal.ID, Session: p.request.Session, Tool: p.tool.ID,
		Provider: p.tool.Package, Publish: p.scopes.Publish}
	entry := p.entry(ledger.KindCallIntent, p.intentBody())
	entry.Time = p.started
	var reads policy.Taint
	if p.request.Progress != nil || p.request.Log != nil {
		reads = p.reads(call.Outcome{}) // they reach the caller before there is an outcome
	}
	write := func(tx store.Tx) error {
		if !relaxed {
			if err := p.stillAllowed(tx); err != nil {
				return err
			}
			if err := p.stillCurrent(tx); err != nil {
				return err
			}
		}
		if p.grant != "" {
			spent, err := p.gate.o.Approvals.Spend(tx, p.grant, p.approvable(), p.gate.o.Now())
			if err != nil {
				return err
			}
			if err := tx.Append(p.entry(ledger.KindApprovalSpent, spent.Record())); err != nil {
				return err
			}
		}
		if err := p.reader().put(tx, reads); err != nil {
			return err
		}
		if err := tx.Append(entry); err != nil {
			return err
		}
		return tx.OpenIntent(intent)
	}
	switch err := p.write(ctx, relaxed, write); {
	case errors.Is(err, errStale):
		return p.overtaken(ctx), false
	case err != nil:
		return approvalRefusal(err), errors.Is(err, store.ErrUncertain)
	}
	return nil, false
}

// commitOutcome says where the call's fact was put; nothing of a relaxed call, which does not wait to know.
func (p *passage) commitOutcome(ctx context.Context, reply call.Reply, answer call.Answer) (world.Place, error) {
	// The caller may have gone; what happened is recorded all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.gate.o.CommitTimeout)
	defer cancel()
	entry := p.entry(ledger.KindCallOutcome, outcomeBody(reply, answer, p.finding, ""))
	reads, held, fact := p.reads(reply.Outcome), p.held(), p.fact(reply.Outcome)
	relaxed := p.relaxed() && held == nil
	var at world.Place
	unkept := false
	err := p.write(ctx, relaxed, func(tx store.Tx) error {
		if err := p.reader().put(tx, reads); err != nil {
			return err
		}
		put, lost, err := putOutcome(tx, entry, held, fact)
		if err != nil {
			return err
		}
		if p.asking != nil { // then the result is held, and the transaction is waited for
			if err := p.askRelease(tx, lost); err != nil {
				return err
			}
		}
		if !relaxed {
			at, unkept = put, lost
		}
		return tx.CloseIntent(p.id)
	})
	if reads != 0 { // an operator may have had it forgotten between the reading and the writing
		p.gate.taints.add(p.reader(), reads)
	}
	if err != nil || relaxed {
		return nil, err
	}
	p.unkept = unkept
	return at, nil
}

// appendHolding records how a call has ended, and keeps what was held of it. If that could not be kept as it was, the
// record of that comes right behind: it is lost.
func appendHolding(tx store.Tx, end ledger.Entry, held *evidence.Sealed) (lost bool, err error) {
	if held == nil {
		return false, tx.Append(end)
	}
	item, err := evidence.Keep(tx, *held)
	if err != nil {
		return false, err
	}
	if err := tx.Append(end); err != nil || item.State != evidence.Purged {
		return false, err
	}
	end.Kind, end.Principal = ledger.KindEvidenceDecided, item.Purge.By
	if end.Body, err = item.Record(); err != nil {
		return false, err
	}
	return true, tx.Append(end)
}

func (p *passage) write(ctx context.Context, relaxed bool, fn func(store.Tx) error) error {
	if relaxed {
		return p.gate.o.Store.Enqueue(ctx, fn)
	}
	return p.gate.o.Store.Update(ctx, fn)
}
