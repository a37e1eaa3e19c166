package policy

import (
	"errors"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/ostiary/ostiary/call"
)

// Bounds of the rules of one policy (F-56).
const (
	MaxRules    = 256
	MaxName     = 64  // bytes of a rule's name
	MaxReason   = 300 // bytes of a rule's reason
	MaxPatterns = 256 // of one list of one rule
)

// Effect is what a rule does when it matches. The zero value denies.
type Effect uint8

// The effects.
const (
	DenyCall Effect = iota
	AskFirst
	AllowCall
)

var effectNames = [...]string{"deny", "ask", "allow"}

func (e Effect) String() string {
	if int(e) < len(effectNames) {
		return effectNames[e]
	}
	return fmt.Sprintf("invalid(%d)", e)
}

// MarshalText writes the name.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// ParseEffect reads the effect of a rule as configuration writes it.
func ParseEffect(s string) (Effect, error) {
	if i := slices.Index(effectNames[:], s); i >= 0 {
		return Effect(i), nil
	}
	return DenyCall, fmt.Errorf("effect %q: expected allow, ask or deny", s)
}

// Rule is one rule as an operator writes it. It is looked at for calls that fit Tools, Principals and Classes, and matches
// those of them for which When is true.
type Rule struct {
	Name   string
	Effect Effect
	When   string // a CEL expression of type bool; "": always

	Tools      []string // patterns of tool ids; none: every tool
	Principals []string // patterns of principals; none: every principal
	// Classes are the effect classes that the rule speaks of; none: every class. A rule that allows must name those whose
	// approval it drops, EXTERNAL_SIDE_EFFECT or SENSITIVE_READ (R7.2).
	Classes []call.EffectClass
	// Flows makes the rule one about flows: it lets a call that could carry out what its session has read go without the
	// approval that this asks for. Only for a rule that allows.
	Flows bool

	Reason string // for people; "": words of our own
}

// RuleFault is what is wrong with one rule.
type RuleFault struct {
	Rule    string
	Line    int // within When, from 1; 0: the fault is not in the expression
	Column  int // from 1
	Problem string
}

func (f *RuleFault) Error() string {
	if f.Line == 0 {
		return fmt.Sprintf("rule %q: %s", f.Rule, f.Problem)
	}
	return fmt.Sprintf("rule %q: when: line %d, column %d: %s", f.Rule, f.Line, f.Column, f.Problem)
}

// rule is a rule that is ready to be asked.
type rule struct {
	Rule
	id         string // as decisions name it
	tools      []toolPattern
	principals []glob
	classes    uint8 // a bit a class; 0: every class
	program    *program
	mentions   []mention
}

func compileRules(rules []Rule) ([]*rule, error) {
	if len(rules) > MaxRules {
		return nil, fmt.Errorf("%d rules: at most %d are possible", len(rules), MaxRules)
	}
	var faults []error
	out := make([]*rule, 0, len(rules))
	seen := make(map[string]bool, len(rules))
	for _, r := range rules {
		c, err := compileRule(r)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if seen[r.Name] {
			faults = append(faults, &RuleFault{Rule: r.Name, Problem: "there are two rules of this name"})
		}
		seen[r.Name] = true
		out = append(out, c)
	}
	return out, errors.Join(faults...)
}

func compileRule(r Rule) (*rule, error) {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, &RuleFault{Rule: clip(r.Name, MaxName), Problem: fmt.Sprintf(format, args...)})
	}
	r.Tools, r.Principals, r.Classes = slices.Clone(r.Tools), slices.Clone(r.Principals), slices.Clone(r.Classes)
	c := &rule{Rule: r, id: "rule." + r.Name}
	if !isRuleName(r.Name) {
		fault("expected a name of lower-case letters, digits, _ and -, at most %d", MaxName)
	}
	if r.Effect > AllowCall {
		fault("effect %s: expected allow, ask or deny", r.Effect)
	}
	if len(r.Reason) > MaxReason || !isLine(r.Reason) {
		fault("expected a reason of one line, at most %d bytes", MaxReason)
	}
	if len(r.Tools) > MaxPatterns || len(r.Principals) > MaxPatterns {
		fault("more than %d patterns", MaxPatterns)
		return nil, errors.Join(faults...)
	}
	for _, s := range r.Tools {
		t, err := parseToolPattern(s)
		if err != nil {
			fault("%v", err)
		}
		c.tools = append(c.tools, t)
	}
	for _, s := range r.Principals {
		if s == "" {
			fault("a pattern of principals is empty")
		}
		c.principals = append(c.principals, glob(s))
	}
	for _, class := range r.Classes {
		c.classes |= 1 << class
		switch {
		case class > call.UnsupportedEffect:
			fault("effect class %s does not exist", class)
		case class == call.UnsupportedEffect:
			fault("a tool of UNSUPPORTED_EFFECT cannot be invoked, whatever a rule says (R7.2)")
		case r.Effect == AllowCall && !r.Flows && !needsApproval(class):
			fault("the class %s needs no approval that a rule could drop", class)
		}
	}
	if r.Effect == AllowCall && len(r.Classes) == 0 && !r.Flows {
		fault("a rule that allows names the effect classes whose approval it drops, in so many words (R7.2): EXTERNAL_SIDE_EFFECT or SENSITIVE_READ")
	}
	if r.Flows && r.Effect != AllowCall {
		fault("only a rule that allows can be one for flows: flows ask by themselves")
	}
	if r.When != "" {
		var err error
		if c.program, c.mentions, err = compile(r.Name, r.When); err != nil {
			faults = append(faults, err)
		}
	}
	return c, errors.Join(faults...)
}

// fits says whether the rule speaks of such a call at all.
func (r *rule) fits(principal string, tool *call.Descriptor) bool {
	return r.fitsClass(tool.Effect) && r.fitsTool(tool) && r.fitsPrincipal(principal)
}

func (r *rule) fitsClass(e call.EffectClass) bool {
	return r.classes == 0 || r.classes&(1<<e) != 0
}

func (r *rule) fitsTool(tool *call.Descriptor) bool {
	return len(r.tools) == 0 || slices.ContainsFunc(r.tools, func(t toolPattern) bool { return t.matches(tool.Package, tool.Name) })
}

func (r *rule) fitsPrincipal(id string) bool {
	return len(r.principals) == 0 || slices.ContainsFunc(r.principals, func(g glob) bool { return g.matches(id) })
}

func (r *rule) reason() string {
	switch {
	case r.Reason != "":
		return r.Reason
	case r.Effect == AllowCall:
		return "a rule lets it go without approval"
	case r.Effect == AskFirst:
		return "a rule asks for approval"
	}
	return "a rule forbids it"
}

// lifts says whether the rule, if it matches, drops the approval that this effect class asks for.
func (r *rule) lifts(e call.EffectClass) bool {
	return r.Effect == AllowCall && r.classes&(1<<e) != 0
}

func needsApproval(e call.EffectClass) bool {
	return e != call.ReadOnly && e != call.LocalSideEffect
}

func isRuleName(s string) bool {
	if s == "" || len(s) > MaxName || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func isLine(s string) bool {
	return utf8.ValidString(s) && !slices.ContainsFunc([]rune(s), func(r rune) bool { return !unicode.IsPrint(r) })
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
