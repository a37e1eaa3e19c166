package policy

import (
	"fmt"
	"strings"

	"github.com/ostiary/ostiary/call"
)

// Explanation is a decision with all that went into it, for an operator.
type Explanation struct {
	Decision Decision  `json:"decision"`
	Standing Decision  `json:"standing"` // what the tool-set policies say by themselves
	Labels   []string  `json:"labels"`   // of the tool
	Taints   []string  `json:"taints"`   // of the session
	Rules    []Finding `json:"rules"`    // all of them, in their order
	Flow     string    `json:"flow"`     // what the rule about flows says, in words
}

// Finding is what became of one rule.
type Finding struct {
	Rule    string `json:"rule"`
	Effect  Effect `json:"effect"`
	Looked  bool   `json:"looked"` // it speaks of such a call, and was evaluated
	Matched bool   `json:"matched"`
	Failed  bool   `json:"failed,omitempty"`  // it could not be evaluated, which denies
	Decides bool   `json:"decides,omitempty"` // the decision bears its name
	Why     string `json:"why"`
}

// Explain answers as [Policy.Judge] does, and says why. Every rule is looked at, those after the deciding one as well.
func (p *Policy) Explain(q Question) Explanation {
	standing, byEffect := p.standing(q.Principal, q.Tool)
	t := p.tally(standing, byEffect, q)
	e := Explanation{Standing: standing, Labels: p.Labels(q.Tool).Names(), Taints: q.Taint.Names(), Rules: make([]Finding, len(p.rules))}
	f := p.factsOf(&q)
	defer f.done()
	spent := int64(0)
	for i, r := range p.rules {
		w := &e.Rules[i]
		*w = Finding{Rule: r.id, Effect: r.Effect}
		switch {
		case standing.Verdict == Deny:
			w.Why = "not looked at: the call is denied before any rule"
			continue
		case !r.fitsTool(q.Tool):
			w.Why = "it speaks of other tools: " + strings.Join(r.Tools, ", ")
			continue
		case !r.fitsPrincipal(q.Principal.ID):
			w.Why = "it speaks of other principals: " + strings.Join(r.Principals, ", ")
			continue
		case !r.fitsClass(q.Tool.Effect):
			w.Why = "it speaks of other effect classes than " + q.Tool.Effect.String()
			continue
		}
		before := t.denied()
		o := r.ask(f, decisionLimit-spent)
		spent += int64(o.cost)
		if !before { // as Judge, which stops there
			t.add(r, o)
		}
		w.Looked, w.Matched, w.Failed = true, o.matches, o.fault != ""
		w.Why = r.describe(o, t, q.Tool.Effect)
	}
	e.Decision = t.decision()
	if d := t.deciding(); d != nil {
		for i, r := range p.rules {
			e.Rules[i].Decides = r == d
		}
	}
	e.Flow = t.flowWords()
	return e
}

func (r *rule) describe(o opinion, t tally, class call.EffectClass) string {
	switch {
	case o.fault != "":
		return "it could not be evaluated, which denies: " + o.fault
	case !o.matches:
		return "its condition is false"
	case r.Effect != AllowCall:
		return "it matches: " + r.reason()
	case r.Flows && !r.lifts(class):
		if t.flow {
			return "it matches: " + r.reason()
		}
		return "it matches, but there is no flow that it would have to let go"
	case t.standing.Verdict == Allow:
		return "it matches, but no approval is needed anyway"
	case !t.byEffect:
		return fmt.Sprintf("it matches, but %s requires approval, and a rule may only narrow that", t.standing.Rule)
	}
	return "it matches: " + r.reason()
}

func (t *tally) flowWords() string {
	switch {
	case t.standing.Verdict == Deny || t.deny != nil:
		return "not asked: the call is denied"
	case !t.flow:
		return "this call cannot carry out what the session has read, or the session has not read both private and foreign data"
	case t.flows != nil:
		return flowReason + "; " + t.flows.id + " lets it go"
	}
	return flowReason + "; it needs approval for exactly these arguments"
}
