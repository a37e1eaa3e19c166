package gate

import (
	"context"
	"strings"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/world"
)

// refuse ends a call before its intent: nothing was sent. The detail is for operators.
func (p *passage) refuse(ctx context.Context, code call.Code, detail string) call.Reply {
	return p.refuseSaying(ctx, code, detail, "")
}

// refuseSaying also tells the caller something that is the caller's own, such as what is wrong with its arguments.
func (p *passage) refuseSaying(ctx context.Context, code call.Code, detail, saying string) call.Reply {
	o := p.notSent(code, detail, saying)
	entry := p.entry(ledger.KindCallRefused, p.refusedBody(o))
	// A refusal is recorded, but it is a refusal already: if that fails, the log has it, and the caller learns no less.
	// It is recorded though the caller may have gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.gate.o.CommitTimeout)
	defer cancel()
	var err error
	if held := p.held(); held != nil {
		err = p.gate.o.Store.Update(ctx, func(tx store.Tx) error {
			_, err := appendHolding(tx, entry, held)
			return err
		})
	} else {
		err = p.gate.o.Store.Enqueue(ctx, func(tx store.Tx) error { return tx.Append(entry) })
	}
	if err != nil {
		p.gate.o.Logger.Warn("record refusal", "call", p.id, "code", code, "err", err)
	}
	return call.Reply{Outcome: o}
}

// notSent is the outcome of a call that goes no further before anything was sent.
func (p *passage) notSent(code call.Code, detail, saying string) call.Outcome {
	o := call.Outcome{Status: call.Failed, Delivery: call.NotSent, Effect: call.EffectNone, Code: code, CallID: p.id, Detail: detail}
	p.complete(&o)
	if saying != "" {
		o.Message += " (" + clip(saying, 500) + ")"
	}
	return o
}

// conclude says what may be concluded from an answer (R3.1, R3.2, R3.4). Only a definite answer makes a call failed once
// bytes may have left.
func (p *passage) conclude(a call.Answer) call.Reply {
	o := call.Outcome{Delivery: a.Delivery, CallID: p.id, Detail: a.Detail}
	reply := call.Reply{}
	switch {
	case a.Fault != "":
		o.Code = a.Fault
		switch {
		case a.Delivery == call.NotSent:
			o.Status, o.Effect = call.Failed, call.EffectNone
		case definiteStatus(a.HTTPStatus):
			o.Status, o.Delivery, o.Effect = call.Failed, call.Confirmed, call.EffectNone
		default:
			o.Status, o.Effect = call.StatusUnknown, call.EffectUnconfirmed
		}
	case a.Error != nil:
		o.Code, o.Delivery = call.CodeProviderError, call.Confirmed
		if definiteError(a.Error.Code) {
			o.Status, o.Effect = call.Failed, call.EffectNone
		} else {
			o.Status, o.Effect = call.StatusUnknown, call.EffectUnconfirmed
		}
		reply.Error = a.Error
	case a.Result == nil: // neither a fault nor an answer: an upstream's bug, and never a success
		o.Status, o.Effect, o.Code = call.StatusUnknown, call.EffectUnconfirmed, call.CodeInternal
	case a.Contract && a.ContractCode != "": // the tool's own word, or one that cannot be understood (R4.6)
		o.Status, o.Delivery, o.Effect, o.Code = call.StatusUnknown, call.Confirmed, call.EffectUnconfirmed, a.ContractCode
		if a.ResultType == "complete" {
			reply.Result = a.Result
		}
	case a.ResultType == "input_required": // not completed, never a success, never answered by itself (R3.8)
		o.Status, o.Delivery, o.Code = call.InputRequired, call.Confirmed, call.CodeInputRequired
	case a.IsError: // a valid business result (R3.4)
		o.Status, o.Delivery, o.Code, o.Effect = call.Failed, call.Confirmed, call.CodeToolError, call.EffectUnconfirmed
		if a.Contract {
			o.Effect = call.EffectNone
		}
		reply.Result = a.Result
	default:
		o.Status, o.Delivery, o.Effect = call.Succeeded, call.Confirmed, call.EffectDone
		if p.tool.Effect == call.ReadOnly || p.tool.Effect == call.SensitiveRead {
			o.Effect = call.EffectNone
		}
		reply.Result = a.Result
	}
	if reply.Result != nil {
		reply.Release = a.Release
	}
	p.complete(&o)
	if a.Fault != "" && a.Words != "" {
		o.Message += " (" + clip(a.Words, 500) + ")"
	}
	reply.Outcome = o
	return reply
}

// withhold keeps a result back. What is known of the effect stays known, and what is not known stays unknown.
func (p *passage) withhold(o call.Outcome, code call.Code, detail string) call.Reply {
	o.Detail = detail
	if o.Status != call.StatusUnknown {
		o.Status, o.Code = call.Failed, code
	}
	p.complete(&o)
	return call.Reply{Outcome: o}
}

// unrecorded is the reply when the outcome could not be committed: nothing is released, and what is known is said.
func (p *passage) unrecorded(o call.Outcome) call.Reply {
	o.Status, o.Code = call.StatusUnknown, call.CodeLedgerUnavailable
	p.complete(&o)
	return call.Reply{Outcome: o}
}

// definiteStatus lists the HTTP statuses by which a server says that it did not take the request up. Others, 5xx above
// all, say nothing of what happened behind them, and 403 and 404 are what applications answer, too, after the fact.
func definiteStatus(status int) bool {
	switch status {
	case 401, 405, 406, 411, 413, 414, 415, 417, 421, 426, 429, 431:
		return true
	}
	return false
}

// definiteError lists the JSON-RPC errors that refuse a request before it is carried out. -32603 and what a server made
// up for itself may come after an effect.
func definiteError(code int64) bool {
	switch code {
	case -32700, -32600, -32601, -32602, // JSON-RPC 2.0
		-32020, -32021, -32022, // 2026-07-28: header mismatch, missing capability, unsupported version
		-32002, -32042: // 2025-11-25: resource not found, URL elicitation required
		return true
	}
	return false
}

// complete fills in what follows from the code and from what is known: stage, retry class, and the words for a model.
func (p *passage) complete(o *call.Outcome) {
	o.Stage, o.Retry, o.Message = "", "", ""
	if o.Code == "" {
		return
	}
	info := o.Code.Info()
	o.Stage, o.Retry = info.Stage, info.Retry
	readOnly := p.tool != nil && p.tool.Effect == call.ReadOnly
	switch {
	case o.Status == call.StatusUnknown && readOnly:
		o.Retry = call.SafeRetry
	case o.Status == call.StatusUnknown:
		o.Retry = call.RetryAfterReview
	case o.Delivery == call.NotSent && (o.Code == call.CodeProviderLost || o.Code == call.CodeDeadlineExceeded || o.Code == call.CodeCancelled || o.Code == call.CodeProtocolError):
		o.Retry = call.SafeRetry
	}
	o.Message = message(*o, info)
}

// message is fit for a model: what happened, what is known of the effect, what to do. It never quotes a provider.
func message(o call.Outcome, info call.CodeInfo) string {
	var b strings.Builder
	if o.Code == call.CodeProviderError && o.Status == call.StatusUnknown {
		info.Meaning, info.Advice = "The provider answered with an error that does not say whether it refused the call.", "Find out whether the effect took place before calling again."
	}
	if o.Code == call.CodeLedgerUnavailable && o.Delivery != call.NotSent {
		info.Meaning = "What became of the call could not be recorded, so its result is not released."
	}
	b.WriteString(info.Meaning)
	switch {
	case o.Delivery == call.NotSent:
		b.WriteString(" Nothing was sent to the provider, so nothing has changed.")
	case o.Effect == call.EffectNone:
		b.WriteString(" The call had no effect.")
	case o.Effect == call.EffectDone:
		b.WriteString(" The effect of the call took place.")
	case o.Status == call.InputRequired:
		b.WriteString(" Nothing is known of an effect so far.")
	default:
		b.WriteString(" It is not known whether the call had its effect: do not assume either.")
	}
	if info.Advice != "" {
		advice := info.Advice
		if o.Delivery == call.NotSent && o.Retry == call.SafeRetry && o.Code.Info().Retry != call.SafeRetry {
			advice = "The call may be repeated."
		}
		if o.Status == call.Failed && o.Effect == call.EffectNone && strings.HasPrefix(advice, "Find out") {
			advice = "The call may be repeated."
		}
		b.WriteString(" ")
		b.WriteString(advice)
	}
	if o.CallID != "" {
		b.WriteString(" [call ")
		b.WriteString(string(o.CallID))
		b.WriteString("]")
	}
	return b.String()
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// Recover closes every intent that an earlier run left open as unknown (R3.5). It runs before calls are let through.
func (g *Gate) Recover(ctx context.Context) (closed int, err error) {
	now := g.o.Now()
	err = g.o.Store.Update(ctx, func(tx store.Tx) error {
		closed = 0 // the function may run twice
		open, err := tx.OpenIntents()
		if err != nil {
			return err
		}
		for _, i := range open {
			o := call.Outcome{Status: call.StatusUnknown, Delivery: call.DeliveryUnknown, Effect: call.EffectUnconfirmed, Code: call.CodeInterrupted}
			(&passage{}).complete(&o)
			e := ledger.Entry{Time: now, Kind: ledger.KindCallOutcome, CallID: i.CallID, Session: i.Session, Principal: i.Principal,
				Body: outcomeBody(call.Reply{Outcome: o}, call.Answer{}, nil, "")}
			var fact *world.Fact
			if len(i.Publish) > 0 { // else it was opened by a version that did not publish
				fact = factOf(i.CallID, i.Tool, i.Provider, i.Publish, o)
			}
			if _, _, err := putOutcome(tx, e, nil, fact); err != nil {
				return err
			}
			if err := tx.CloseIntent(i.CallID); err != nil {
				return err
			}
			closed++
		}
		return nil
	})
	return closed, err
}
