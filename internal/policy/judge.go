package policy

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"github.com/ostiary/ostiary/call"
)

// FlowRule is the name of the rule that is always there.
const FlowRule = "flow.private_untrusted_egress"

const flowReason = "the session has read private data and text that strangers may have written, and this call could carry data out"

// Judge says whether a call may go, and by which rule. It is pure, and safe for concurrent use.
func (p *Policy) Judge(q Question) Decision {
	standing, byEffect := p.standing(q.Principal, q.Tool)
	if standing.Verdict == Deny || len(p.rules) == 0 && q.Taint == 0 {
		t := p.tally(standing, byEffect, q)
		return t.decision()
	}
	f := p.factsOf(&q)
	defer f.done()
	t := p.tally(standing, byEffect, q)
	for _, r := range p.rules {
		if !r.fits(q.Principal.ID, q.Tool) {
			continue
		}
		o := r.ask(f, decisionLimit-t.cost)
		if t.add(r, o); t.denied() {
			break
		}
	}
	return t.decision()
}

// Decide says whether principal may call tool with arguments that are not known: a rule that looks at them denies. Nothing
// is known of the session either. For lists see [Policy.Outlook].
func (p *Policy) Decide(principal call.Principal, tool *call.Descriptor) Decision {
	q := Question{Principal: principal, Tool: tool}
	standing, byEffect := p.standing(principal, tool)
	t := p.tally(standing, byEffect, q)
	if standing.Verdict == Deny || len(p.rules) == 0 {
		return t.decision()
	}
	f := p.factsOf(&q)
	defer f.done()
	f.unknown = true
	for _, r := range p.rules {
		if !r.fits(principal.ID, tool) {
			continue
		}
		if t.add(r, r.ask(f, decisionLimit-t.cost)); t.denied() {
			break
		}
	}
	return t.decision()
}

// Outlook is what can be said of a tool before there is a call, for lists of tools: the decision by the rules that look
// neither at arguments nor at the session. depends says that there are others which speak of the tool, so that a call may
// be judged otherwise. It is no permission.
func (p *Policy) Outlook(principal call.Principal, export string, tool *call.Descriptor) (d Decision, depends bool) {
	q := Question{Principal: principal, Export: export, Tool: tool}
	standing, byEffect := p.standing(principal, tool)
	t := p.tally(standing, byEffect, q)
	if standing.Verdict == Deny {
		return t.decision(), false
	}
	f := p.factsOf(&q)
	defer f.done()
	depends = p.Labels(tool)&Egress != 0
	for _, r := range p.rules {
		if !r.fits(principal.ID, tool) {
			continue
		}
		if r.program != nil && (r.program.looksAt[varArgs] || r.program.looksAt[varTaints]) {
			depends = true
			continue
		}
		if t.add(r, r.ask(f, decisionLimit-t.cost)); t.denied() {
			return t.decision(), false
		}
	}
	return t.decision(), depends
}

// opinion is what one rule says of one call.
type opinion struct {
	matches bool
	fault   string // it could not be evaluated: why. Never quotes arguments
	cost    uint64
}

// ask evaluates the rule. left is what is left of the decision's budget.
func (r *rule) ask(f *facts, left int64) opinion {
	if r.program == nil {
		return opinion{matches: true}
	}
	if left <= 0 {
		return opinion{fault: "the rules before it have used up what one decision may cost"}
	}
	v, details, err := r.program.Eval(f)
	var o opinion
	if c := details.ActualCost(); c != nil {
		o.cost = *c
	}
	if err != nil {
		o.fault = r.program.explain(err)
		return o
	}
	b, ok := v.(types.Bool)
	if !ok {
		o.fault = "the expression gave something else than true or false"
		return o
	}
	o.matches = bool(b)
	return o
}

// explain puts an error of CEL in words of our own: its own may quote arguments, which have no place in a log (R6.9).
func (p *program) explain(err error) string {
	if c, ok := errors.AsType[interpreter.EvalCancelledError](err); ok {
		if c.Cause == interpreter.CostLimitExceeded {
			return fmt.Sprintf("it costs more than %d", costLimit)
		}
		return "it was cancelled"
	}
	for _, known := range []error{errNotObject, errTooDeep, errTooMany, errTooLong, errInexact, errNoneAtHand} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	where := ""
	if e, ok := errors.AsType[*types.Err](err); ok && e.NodeID() != 0 {
		line, column := p.position(e.NodeID())
		where = fmt.Sprintf(" at line %d, column %d", line, column)
	}
	msg := err.Error()
	switch key, missing := strings.CutPrefix(msg, "no such key: "); {
	case missing && strings.Contains(p.text, key): // the rule names it: it is no value of the caller's
		return "an attribute is missing: " + key + where
	case missing || strings.HasPrefix(msg, "no such attribute"), strings.HasPrefix(msg, "index out of bounds"):
		return "an attribute is missing" + where
	case strings.HasPrefix(msg, "no such overload"):
		return "a value is not of the type that it needs" + where
	}
	return "it cannot be evaluated" + where
}

// tally gathers what the rules say. The order in which they are added decides only which of several of one kind gives its
// name.
type tally struct {
	standing Decision
	byEffect bool
	effect   call.EffectClass
	flow     bool // the call could carry out what its session has read

	deny, ask, allow, flows *rule
	fault                   string // of deny, if it denies because it could not be evaluated
	askBound                bool
	cost                    int64
}

func (p *Policy) tally(standing Decision, byEffect bool, q Question) tally {
	return tally{standing: standing, byEffect: byEffect, effect: q.Tool.Effect, flow: p.Labels(q.Tool).carriesOut(q.Taint)}
}

func (t *tally) add(r *rule, o opinion) {
	t.cost += int64(o.cost)
	switch {
	case o.fault != "":
		if t.deny == nil {
			t.deny, t.fault = r, o.fault
		}
	case !o.matches:
	case r.Effect == AskFirst:
		if t.ask == nil {
			t.ask = r
		}
		t.askBound = t.askBound || r.program != nil && r.program.arguments
	case r.Effect == AllowCall:
		if r.Flows && t.flows == nil {
			t.flows = r
		}
		if t.allow == nil && r.lifts(t.effect) {
			t.allow = r
		}
	default:
		if t.deny == nil {
			t.deny = r
		}
	}
}

func (t *tally) denied() bool { return t.deny != nil }

// deciding is the rule whose name the decision bears; nil: none of the operator's rules.
func (t *tally) deciding() *rule {
	switch d := t.decision(); {
	case t.deny != nil && d.Rule == t.deny.id:
		return t.deny
	case t.ask != nil && d.Rule == t.ask.id:
		return t.ask
	case t.allow != nil && d.Rule == t.allow.id:
		return t.allow
	case t.flows != nil && d.Rule == t.flows.id:
		return t.flows
	}
	return nil
}

func (t *tally) decision() Decision {
	if t.standing.Verdict == Deny {
		return t.standing
	}
	if t.deny != nil {
		if t.fault != "" {
			return decide(Deny, t.deny.id, "the rule could not be evaluated, which denies: "+t.fault)
		}
		return decide(Deny, t.deny.id, t.deny.reason())
	}
	d := t.standing
	switch {
	case t.ask != nil:
		d = Decision{Ask, t.ask.id, t.ask.reason(), t.askBound}
	case t.standing.Verdict == Ask && t.byEffect && t.allow != nil:
		d = decide(Allow, t.allow.id, t.allow.reason())
	}
	if t.flow && t.flows == nil {
		return Decision{Ask, FlowRule, flowReason, true}
	}
	return d
}
