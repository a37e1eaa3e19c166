package gate

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/store"
)

// holdNotice is how often a call that is held tells its caller so.
const holdNotice = 5 * time.Second

// agree asks for approval, and holds the call until there is an answer or its time is up (R7.4). Without a refusal there is
// a grant to spend, unless nobody had to agree.
func (p *passage) agree(ctx context.Context) *refusal {
	g := p.gate
	if no := p.answered(ctx); no != nil || p.decision.Verdict == policy.Allow {
		return no
	}
	question, err := p.ask(ctx)
	if err != nil {
		return &refusal{code: call.CodeInternal, detail: err.Error()}
	}
	var request approval.Request
	err = g.o.Store.Update(ctx, func(tx store.Tx) (err error) {
		if request, err = g.o.Approvals.Ask(tx, question, g.o.Now()); err != nil || request.ID != question.ID {
			return err
		}
		return tx.Append(p.entry(ledger.KindApprovalAsked, request.Record()))
	})
	if err != nil {
		if no, ok := errors.AsType[*approval.Refusal](err); ok { // of an earlier request for the same call
			p.asked, p.askedBy = no.Request.ID, no.Request.CallID
		}
		return approvalRefusal(err)
	}
	p.asked, p.askedBy = request.ID, request.CallID
	if request.State == approval.Waiting {
		if no := p.askBack(&request); no != nil {
			return no
		}
		if p.request.Principal.ID != g.o.Operator {
			stop := p.askMeanwhile(ctx, &request)
			request, err = p.hold(ctx, request)
			stop()
			if err != nil {
				return approvalRefusal(err)
			}
		}
	}
	if no := request.Refusal(); no != nil {
		return approvalRefusal(no)
	}
	p.grant, p.finding = request.ID, nil
	return nil
}

// approvable is the exact call that someone is to agree to.
func (p *passage) approvable() approval.Call {
	return approval.Call{
		ID: p.id, Principal: p.request.Principal.ID, Session: p.request.Session, Tool: p.tool.ID, Descriptor: p.tool.DescriptorDigest,
		Effect: p.tool.Effect, Policy: p.gate.o.Policy.Snapshot(), Attachment: p.generation.Attachment, Origin: p.tool.Provider.Origin,
		Arguments: p.request.Arguments, Meta: p.request.Meta, Exact: p.decision.ArgumentBound,
	}
}

func (p *passage) ask(ctx context.Context) (approval.Question, error) {
	c := p.approvable()
	d, err := approval.Describe(c, func(key, text string) string {
		shown := p.gate.redact(ctx, key, text)
		p.redacted = p.redacted || shown != text
		return shown
	})
	if err != nil {
		return approval.Question{}, err
	}
	d.Summary += " [" + p.decision.Rule + "]"
	q := approval.Question{ID: approval.ID("ap-" + p.id), Call: c, Export: p.request.Export, Provider: p.tool.Package, Description: d}
	switch {
	case p.finding != nil && p.finding.sensitivity.Protected(), p.tool.Effect == call.SensitiveRead:
		q.Sensitivity = approval.Sensitive
	case p.tool.Effect == call.ReadOnly:
		q.Sensitivity = approval.Ordinary
	}
	return q, nil
}

// hold waits for a decision, and tells a caller that wants progress that the call waits. It returns the request as it is
// when the time is up.
func (p *passage) hold(ctx context.Context, r approval.Request) (approval.Request, error) {
	g := p.gate
	look := func(ctx context.Context) (shown approval.Request, err error) {
		err = g.o.Store.View(ctx, func(v store.View) error {
			shown, err = approval.Show(v, r.ID, g.o.Now())
			return err
		})
		return shown, err
	}
	ctx, cancel := context.WithTimeout(ctx, g.o.Hold)
	defer cancel()
	for notice := 0; ; notice++ {
		if p.request.Progress != nil { // far below any number that a tool counts with, for progress must grow
			p.request.Progress(call.Progress{Progress: strconv.AppendFloat(nil, float64(notice)*1e-9, 'f', -1, 64), Message: "waiting for approval: request " + string(r.ID)})
		}
		slice, done := context.WithTimeout(ctx, holdNotice)
		now, err := g.o.Hub.Wait(slice, r.ID, look)
		done()
		switch {
		case err == nil:
			return now, nil
		case ctx.Err() != nil: // the call ends, the request goes on waiting
			return r, nil
		case !errors.Is(err, context.DeadlineExceeded):
			return r, err
		}
	}
}

// approvalRefusal puts why a call may not go on into the words of the path.
func approvalRefusal(err error) *refusal {
	if errors.Is(err, approval.ErrCrowded) {
		return &refusal{code: call.CodeOverloaded, detail: err.Error(), saying: err.Error()}
	}
	if no, ok := errors.AsType[*refusal](err); ok {
		return no
	}
	no, ok := errors.AsType[*approval.Refusal](err)
	switch {
	case ok:
	case errors.Is(err, context.Canceled): // the caller has gone before its turn came: nothing is written
		return &refusal{code: call.CodeCancelled, detail: "the caller has gone"}
	case errors.Is(err, context.DeadlineExceeded):
		return &refusal{code: call.CodeDeadlineExceeded, detail: "the caller's time was up"}
	default:
		return &refusal{code: call.CodeLedgerUnavailable, detail: err.Error()}
	}
	saying := no.Text
	if no.Request.ID != "" {
		saying += ": request " + string(no.Request.ID)
	}
	return &refusal{code: no.Code, detail: no.Error(), saying: saying}
}

// redact takes secrets out of a text of the arguments for a reviewer. The name of a member tells much of its value, so the
// two are looked at together.
func (g *Gate) redact(ctx context.Context, key, text string) string {
	const gone = "[redacted]"
	if key == "" {
		v := g.screen(func() firewall.Verdict { return g.o.Firewall.ScreenText(ctx, []byte(text), firewall.Rules{}) })
		switch {
		case !v.Withheld():
			return string(v.Released)
		case v.Redacted != nil:
			return string(v.Redacted)
		}
		return gone
	}
	doc, err := jsontext.AppendQuote([]byte{'{'}, key)
	if err == nil {
		doc, err = jsontext.AppendQuote(append(doc, ':'), text)
	}
	if err != nil {
		return gone
	}
	v := g.screen(func() firewall.Verdict { return g.o.Firewall.ScreenArguments(ctx, append(doc, '}'), firewall.Rules{}) })
	if !v.Withheld() {
		return text
	}
	d := jsontext.NewDecoder(bytes.NewReader(v.Redacted))
	for range 3 { // the brace, the name, the value
		t, err := d.ReadToken()
		if err != nil {
			return gone
		}
		text = t.String()
	}
	return text
}
