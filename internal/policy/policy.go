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

// Decision is a verdict with the rule that gave it, as configuration names it, and words for an operator.
type Decision struct {
	Verdict Verdict
	Rule    string
	Reason  string
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
	Tools     map[string]Override // by the tool's name (its alias, if it has one)
}

// Override is what one tool's rule says beyond its provider's. It may only narrow (R7.1): it cannot make a tool available
// that the set withholds.
type Override struct {
	Available *bool    // nil: as the set says
	Approval  Approval // ByEffect: as the set says
}

// Policy is every provider's tool set.
type Policy struct{ sets map[string]ToolSet }

// New makes a policy of exactly one set for each of the packages. A missing, duplicate or orphaned set fails (R7.1).
func New(packages []string, sets []ToolSet) (*Policy, error) {
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
		p.sets[s.Package] = s
	}
	for _, pkg := range packages {
		if _, ok := p.sets[pkg]; !ok {
			faults = append(faults, fmt.Errorf("provider %s has no policy: it must have exactly one", pkg))
		}
	}
	return p, errors.Join(faults...)
}

// Decide says whether principal may call tool.
func (p *Policy) Decide(principal call.Principal, tool *call.Descriptor) Decision {
	if principal.ID == "" {
		return Decision{Deny, "no principal", "the call has no principal"}
	}
	set, ok := p.sets[tool.Package]
	if !ok {
		return Decision{Deny, "no policy", "the provider has no policy"}
	}
	rule := "provider." + tool.Package + ".policy"
	if !set.Available {
		return Decision{Deny, rule + ".available", "the provider's tools are not available"}
	}
	approval := set.Approval
	if o, ok := set.Tools[tool.Name]; ok {
		if o.Available != nil && !*o.Available {
			return Decision{Deny, rule + ".tools." + tool.Name + ".available", "the tool is not available"}
		}
		if o.Approval != ApprovalByEffect {
			approval, rule = o.Approval, rule+".tools."+tool.Name
		}
	}
	if tool.Effect == call.UnsupportedEffect {
		return Decision{Deny, "effect UNSUPPORTED_EFFECT", "a tool of this effect class cannot be invoked"}
	}
	switch approval {
	case ApprovalNever:
		return Decision{Allow, rule + ".approval", "no approval is needed"}
	case ApprovalRequired:
		return Decision{Ask, rule + ".approval", "the call needs approval"}
	}
	switch tool.Effect {
	case call.ReadOnly, call.LocalSideEffect:
		return Decision{Allow, "effect " + tool.Effect.String(), "a tool of this effect class needs no approval"}
	}
	return Decision{Ask, "effect " + tool.Effect.String(), "a tool of this effect class needs approval unless a rule says otherwise"}
}
