package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ostiary/ostiary/call"
)

// Verdict is the answer. The zero value denies.
type Verdict uint8

// The verdicts.
const (
	Deny Verdict = iota
	Ask
	Allow
)

var verdictNames = [...]string{"deny", "ask", "allow"}

func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("invalid(%d)", v)
}

// MarshalText writes the name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Decision is a verdict with the rule that gave it, as configuration names it, and words for an operator.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	Rule    string  `json:"rule"`
	Reason  string  `json:"reason"`
	// ArgumentBound says of a verdict that asks that it asks for these arguments: an approval for others, or for a whole
	// session, is none.
	ArgumentBound bool `json:"argument_bound,omitempty"`
}

// Approval says whether a call needs someone to agree. The zero value leaves it to the effect class (R7.2).
type Approval uint8

// What a rule may say of approval.
const (
	ApprovalByEffect Approval = iota
	ApprovalRequired
	ApprovalNever
)

// ParseApproval reads a rule's word.
func ParseApproval(s string) (Approval, error) {
	switch s {
	case "required":
		return ApprovalRequired, nil
	case "never":
		return ApprovalNever, nil
	}
	return ApprovalByEffect, fmt.Errorf("approval %q: expected required or never", s)
}

// ToolSet is the policy of one provider's tools.
type ToolSet struct {
	Package   string
	Available bool
	Approval  Approval
	Frontier  bool                // calls must state the frontier that they are based on (R5.6)
	Trust     string              // the provider's trust tier, as configuration writes it; "" is trusted least
	Tools     map[string]Override // by the tool's name (its alias, if it has one)
}

// Override is what one tool's rule says beyond its provider's. It may only narrow (R7.1): it cannot make a tool available
// that the set withholds.
type Override struct {
	Available *bool    // nil: as the set says
	Approval  Approval // ByEffect: as the set says
	Frontier  bool     // true: calls must state one; false: as the set says
	Labels    *Labels  // nil: what its effect class and its provider's trust tier imply
}

// Policy is every provider's tool set and all rules. It never changes, and is safe for concurrent use.
type Policy struct {
	sets     map[string]ToolSet
	rules    []*rule
	snapshot call.Digest
}

// New makes a policy of exactly one set for each of the packages. A missing, duplicate or orphaned set fails (R7.1), and so
// does a rule that cannot be compiled; such a fault is a [RuleFault].
func New(packages []string, sets []ToolSet, rules ...Rule) (*Policy, error) {
	p := &Policy{sets: make(map[string]ToolSet, len(sets))}
	var faults []error
	for _, s := range sets {
		if _, ok := p.sets[s.Package]; ok {
			faults = append(faults, fmt.Errorf("provider %s has two policies: it must have exactly one", s.Package))
		}
		if !slices.Contains(packages, s.Package) {
			faults = append(faults, fmt.Errorf("policy for %s: there is no such provider", s.Package))
		}
		for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
			if o := s.Tools[name]; o.Available != nil && *o.Available && !s.Available {
				faults = append(faults, fmt.Errorf("policy for %s: tool %s cannot be available when its provider's tools are not: an override may only narrow", s.Package, name))
			}
		}
		s.Tools = maps.Clone(s.Tools)
		p.sets[s.Package] = s
	}
	for _, pkg := range packages {
		if _, ok := p.sets[pkg]; !ok {
			faults = append(faults, fmt.Errorf("provider %s has no policy: it must have exactly one", pkg))
		}
	}
	var err error
	if p.rules, err = compileRules(rules); err != nil {
		faults = append(faults, err)
	}
	if p.snapshot, err = p.digest(); err != nil {
		faults = append(faults, err)
	}
	return p, errors.Join(faults...)
}

// standing is what the tool-set policies say by themselves. byEffect says of a verdict that asks that nothing but the effect
// class asks.
func (p *Policy) standing(principal call.Principal, tool *call.Descriptor) (d Decision, byEffect bool) {
	if principal.ID == "" {
		return decide(Deny, "no principal", "the call has no principal"), false
	}
	set, ok := p.sets[tool.Package]
	if !ok {
		return decide(Deny, "no policy", "the provider has no policy"), false
	}
	rule := "provider." + tool.Package + ".policy"
	if !set.Available {
		return decide(Deny, rule+".available", "the provider's tools are not available"), false
	}
	approval := set.Approval
	if o, ok := set.Tools[tool.Name]; ok {
		if o.Available != nil && !*o.Available {
			return decide(Deny, rule+".tools."+tool.Name+".available", "the tool is not available"), false
		}
		if o.Approval != ApprovalByEffect {
			approval, rule = o.Approval, rule+".tools."+tool.Name
		}
	}
	if tool.Effect >= call.UnsupportedEffect {
		return decide(Deny, "effect UNSUPPORTED_EFFECT", "a tool of this effect class cannot be invoked"), false
	}
	switch approval {
	case ApprovalNever:
		return decide(Allow, rule+".approval", "no approval is needed"), false
	case ApprovalRequired:
		return decide(Ask, rule+".approval", "the call needs approval"), false
	}
	if needsApproval(tool.Effect) {
		return decide(Ask, "effect "+tool.Effect.String(), "a tool of this effect class needs approval unless a rule says otherwise"), true
	}
	return decide(Allow, "effect "+tool.Effect.String(), "a tool of this effect class needs no approval"), false
}

// NeedsFrontier says whether calls of a tool must state the frontier that they are based on, and which rule says so.
func (p *Policy) NeedsFrontier(tool *call.Descriptor) (rule string, needs bool) {
	set, ok := p.sets[tool.Package]
	rule = "provider." + tool.Package + ".policy"
	switch {
	case !ok, set.Frontier: // without a policy nothing is let through anyway
		return rule + ".frontier", true
	case set.Tools[tool.Name].Frontier:
		return rule + ".tools." + tool.Name + ".frontier", true
	}
	return "", false
}

func decide(v Verdict, rule, reason string) Decision {
	return Decision{Verdict: v, Rule: rule, Reason: reason}
}
