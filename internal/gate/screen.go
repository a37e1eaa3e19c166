package gate

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/review"
)

// Firewall judges what crosses; [firewall.Engine] does.
type Firewall interface {
	ScreenArguments(ctx context.Context, arguments []byte, rules firewall.Rules) firewall.Verdict
	ScreenResult(ctx context.Context, result []byte, rules firewall.Rules, schema func(structured []byte) error) firewall.Verdict
	ScreenText(ctx context.Context, message []byte, rules firewall.Rules) firewall.Verdict
}

// screenTime bounds one screening. One that takes longer withholds (F-57).
const screenTime = 10 * time.Second

// maxErrorMessage bounds what a caller is told of an error in its server's words. Its data is not cut.
const maxErrorMessage = 4 << 10

// maxExcerpt bounds what is kept in clear of something held.
const maxExcerpt = 2000

// finding is what the firewall has said of a call: what the ledger keeps of a verdict.
type finding struct {
	kind        firewall.VerdictKind
	reasons     []string
	sensitivity firewall.Sensitivity
	artefacts   []firewall.Artefact
	evidence    *evidence.Sealed // nil: nothing was held
}

// screen runs one screening. Its panic, like that of an inspector, withholds (F-57): the zero verdict is a quarantine.
func (g *Gate) screen(fn func() firewall.Verdict) (v firewall.Verdict) {
	defer func() {
		if p := recover(); p != nil {
			g.o.Logger.Error("panic in the firewall", "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			v = firewall.Verdict{Reasons: []firewall.Code{firewall.CodeDetectorFailed}}
		}
	}()
	if v = fn(); v.Fault != nil {
		g.o.Logger.Error("an inspector of the firewall failed", "err", v.Fault)
	}
	return v
}

func (p *passage) rules() firewall.Rules {
	rules := p.gate.o.FirewallRules(p.tool.Descriptor)
	rules.Content = p.tool.Provider.Profile.Content
	return rules
}

// screenArguments judges what is about to leave (R6.9, A-28). What someone may let go is asked for, for exactly these
// arguments; what may not leave is kept as evidence.
func (p *passage) screenArguments(ctx context.Context) *refusal {
	for _, part := range [...][]byte{p.request.Arguments, p.request.Meta} {
		if len(part) == 0 {
			continue
		}
		v := p.gate.screen(func() firewall.Verdict {
			ctx, cancel := context.WithTimeout(ctx, screenTime)
			defer cancel()
			return p.gate.o.Firewall.ScreenArguments(ctx, part, p.rules())
		})
		switch {
		case !v.Withheld():
		case v.Kind == firewall.ApprovalRequired:
			p.found(&v)
			if p.decision.Verdict != policy.Ask || !p.decision.ArgumentBound {
				p.decision = policy.Decision{Verdict: policy.Ask, Rule: "firewall." + first(p.finding.reasons), Reason: "the arguments hold something that somebody has to look at", ArgumentBound: true}
			}
		default:
			p.found(&v)
			p.keep(evidence.Arguments, &v, part)
			return &refusal{code: call.CodeBlockedArguments, detail: strings.Join(p.finding.reasons, " "), saying: "found: " + strings.Join(p.finding.reasons, ", ")}
		}
	}
	return nil
}

// screenReply judges what has come back (R8.1): a result, or the words of an error. What is withheld is kept as evidence.
func (p *passage) screenReply(ctx context.Context, reply call.Reply, answer call.Answer) call.Reply {
	// The caller may have gone; what came is judged all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), screenTime)
	defer cancel()
	switch {
	case reply.Result != nil:
		var schema func([]byte) error
		if p.tool.Output != nil && reply.Outcome.Status != call.StatusUnknown { // what a tool does not know it need not give
			schema = p.tool.Output.ValidateValue
		}
		v := p.gate.screen(func() firewall.Verdict { return p.gate.o.Firewall.ScreenResult(ctx, reply.Result, p.rules(), schema) })
		p.found(&v)
		if !v.Withheld() {
			reply.Result = v.Released
			reply.Provenance = call.Provenance{Provider: p.tool.Package, Tool: p.tool.ID, CallID: p.id, Descriptor: p.tool.DescriptorDigest,
				Revision: p.tool.Revision, Time: p.gate.o.Now(), Verdict: v.Kind.String()}
			return reply
		}
		p.keep(evidence.Result, &v, reply.Result)
		p.owe(ctx, v.Kind, reply.Outcome)
		code := call.CodeWithheld
		if slices.Contains(v.Reasons, firewall.CodeKindNotAdmitted) {
			code = call.CodeUnsupportedContent // R3.7
		}
		reply = p.withhold(reply.Outcome, code, strings.Join(p.finding.reasons, " "))
		p.owes = true
	case reply.Outcome.Status == call.InputRequired && answer.Result != nil: // R3.8
		p.finding = &finding{kind: firewall.PolicyBlocked, reasons: []string{string(call.CodeInputRequired)}}
		p.keep(evidence.Result, &firewall.Verdict{Kind: firewall.PolicyBlocked}, answer.Result)
	case reply.Error != nil:
		if reply.Error = p.screenError(ctx, reply.Error); reply.Error == nil {
			reply.Outcome.Message += " (evidence " + string(p.finding.evidence.Item.ID) + ")"
		}
	}
	return reply
}

// screenError judges the words of a provider's error. Words that are not let in go, and the path speaks in their place.
func (p *passage) screenError(ctx context.Context, e *call.ProviderError) *call.ProviderError {
	v := p.gate.screen(func() firewall.Verdict { return p.gate.o.Firewall.ScreenText(ctx, []byte(e.Message), p.rules()) })
	payload := []byte(e.Message)
	out := &call.ProviderError{Code: e.Code, Message: clip(string(v.Released), maxErrorMessage), Data: e.Data}
	if !v.Withheld() && len(e.Data) > 0 {
		d := p.gate.screen(func() firewall.Verdict { return p.gate.o.Firewall.ScreenText(ctx, e.Data, p.rules()) })
		switch {
		case d.Withheld():
			v, payload = d, e.Data
		case !bytes.Equal(d.Released, e.Data): // a redaction in the midst of JSON may leave none
			out.Data = nil
		}
	}
	p.found(&v)
	if v.Withheld() {
		p.keep(evidence.ToolError, &v, payload)
		return nil
	}
	if out.Message == e.Message && len(out.Data) == len(e.Data) {
		return e
	}
	return out
}

// screenedRequest is the request with progress and log messages judged on their way (R8.5): what is not let in is left out.
func (p *passage) screenedRequest(ctx context.Context) *call.Request {
	r := p.request
	if r.Progress == nil && r.Log == nil {
		return r
	}
	clean := func(text string) string {
		if text == "" {
			return ""
		}
		v := p.gate.screen(func() firewall.Verdict { return p.gate.o.Firewall.ScreenText(ctx, []byte(text), p.rules()) })
		if v.Withheld() {
			return ""
		}
		return string(v.Released)
	}
	screened := *r
	if r.Progress != nil {
		screened.Progress = func(m call.Progress) {
			m.Message = clean(m.Message)
			r.Progress(m)
		}
	}
	if r.Log != nil {
		screened.Log = func(m call.LogMessage) {
			if data := string(m.Data); clean(data) != data {
				return
			}
			m.Logger = clean(m.Logger)
			r.Log(m)
		}
	}
	return &screened
}

// found keeps what the ledger says of a verdict.
func (p *passage) found(v *firewall.Verdict) {
	f := &finding{kind: v.Kind, sensitivity: sensitivityOf(v), artefacts: v.Artefacts}
	for _, c := range v.Reasons {
		f.reasons = append(f.reasons, string(c))
	}
	p.finding = f
}

// keep seals what was held, outside of any transaction.
func (p *passage) keep(d evidence.Direction, v *firewall.Verdict, payload []byte) {
	item := evidence.Item{ID: evidence.ID("ev-" + p.id), CallID: p.id, Session: p.request.Session, Principal: p.request.Principal.ID,
		Provider: p.tool.Package, Tool: p.tool.ID, Direction: d, Verdict: v.Kind.String(), Reasons: p.finding.reasons,
		Sensitivity: p.finding.sensitivity.String(), Excerpt: review.Clip(string(v.Redacted), maxExcerpt), Created: p.gate.o.Now()}
	held, err := evidence.Hold(p.gate.o.Sealer, item, payload, p.gate.o.Evidence)
	if err != nil {
		p.gate.o.Logger.Error("hold evidence", "call", p.id, "err", err)
	}
	if held.Item.ID == "" { // it could not even be described: the ledger says that something was held
		held.Item = item
	}
	p.finding.evidence = &held
}

// sensitivityOf is the gravest of what was found.
func sensitivityOf(v *firewall.Verdict) firewall.Sensitivity {
	order := []firewall.Sensitivity{firewall.CredentialLike, firewall.Regulated, firewall.SensitivityUnknown, firewall.OrgPrivate, firewall.UserPrivate}
	for _, s := range order {
		if slices.ContainsFunc(v.Findings, func(f firewall.Finding) bool { return f.Sensitivity == s }) {
			return s
		}
	}
	if v.Withheld() && len(v.Findings) == 0 {
		return firewall.SensitivityUnknown
	}
	return firewall.SensitivityNone
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}
