package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/builtin"
	"github.com/ostiary/ostiary/internal/policy"
)

// Principals that no token stands for. Their colon keeps them apart from those that a configuration can name.
const (
	LocalOperator = "local:operator" // the gateway's own command line and admin API
	LocalStdio    = "local:stdio"    // whoever started ostiary stdio
)

// rules reads [rule.NAME], and makes the policy of them and of the providers' tool sets. The policy knows what a rule may
// say; here its faults get the lines of the file.
func (l *loader) rules(t *node) {
	var rules []policy.Rule
	sections := map[string]*section{}
	for name, rt := range l.named(t, "rule") {
		s := l.section(ruleSection, rt, "rule", name)
		s.unknown()
		sections[name] = s
		before := len(l.faults)
		r := policy.Rule{Name: name, When: s.str("when", nil), Flows: s.boolean("flows"), Reason: s.str("reason", nil)}
		r.Effect, _ = policy.ParseEffect(s.str("effect", nil))
		r.Tools = s.patterns("tools")
		r.Principals = s.patterns("principals")
		classes, lines := s.strs("classes", nil)
		s.distinct("classes", classes, lines)
		for _, c := range classes {
			class, _ := call.ParseEffectClass(c)
			r.Classes = append(r.Classes, class)
		}
		if s.has("classes") && len(classes) == 0 {
			s.faultAt("classes", "leave it out for every class", "the list is empty")
		}
		if s.has("when") && strings.TrimSpace(r.When) == "" && s.hasText("when") {
			s.faultAt("when", "leave it out for always", "the expression is empty")
		}
		if len(l.faults) == before { // else the policy would say the same again, in other words
			rules = append(rules, r)
		}
	}
	packages, sets := []string{call.WorldPackage}, []policy.ToolSet{builtin.ToolSet()}
	for _, p := range l.config.Providers {
		packages, sets = append(packages, p.Profile.Package), append(sets, p.toolSet())
	}
	pol, err := policy.New(packages, sets, rules...)
	if err == nil {
		err = pol.Check(l.catalog())
	}
	for _, err := range leaves(err) {
		l.ruleFault(err, sections)
	}
	l.config.Policy, l.config.Rules = pol, rules
}

// patterns reads a list of patterns, which is not empty.
func (s *section) patterns(name string) []string {
	values, lines := s.strs(name, nil)
	s.distinct(name, values, lines)
	if n := s.table.child(name); n != nil && n.kind == kindArray && len(n.items) == 0 {
		s.faultAt(name, "leave it out for all of them", "the list is empty")
	}
	return values
}

// toolSet is the provider's policy as the permission gate reads it.
func (p *Provider) toolSet() policy.ToolSet {
	set := policy.ToolSet{Package: p.Profile.Package, Available: p.Policy.Available, Approval: p.Policy.Approval, Frontier: p.Policy.Frontier,
		Trust: p.Profile.Trust.String(), Tools: map[string]policy.Override{}}
	for name, t := range p.Policy.Tools {
		available := t.Available
		set.Tools[name] = policy.Override{Available: &available, Approval: t.Approval, Frontier: t.Frontier, Labels: t.Labels}
	}
	return set
}

// catalog is all that a rule can speak of.
func (l *loader) catalog() policy.Catalog {
	c := policy.Catalog{Principals: []string{LocalOperator, LocalStdio}, Tools: builtin.Tools()}
	for _, p := range l.config.Principals {
		c.Principals = append(c.Principals, p.Name)
	}
	for _, p := range l.config.Providers {
		for _, name := range allowedNames(&p.Profile) {
			c.Tools = append(c.Tools, call.NewToolID(p.Profile.Package, name))
		}
	}
	for _, e := range l.config.Exports {
		c.Exports = append(c.Exports, e.Name)
	}
	return c
}

// ruleFault tells a fault of the policy where it stands in the file.
func (l *loader) ruleFault(err error, sections map[string]*section) {
	f, ok := errors.AsType[*policy.RuleFault](err)
	if !ok {
		l.fault(0, "rule", "", "%v", err)
		return
	}
	s := sections[f.Rule]
	switch {
	case s == nil:
		l.fault(0, joinKey("rule", f.Rule), "", "%s", f.Problem)
	case f.Line == 0:
		l.fault(s.line, joinKey("rule", f.Rule), "", "%s", f.Problem)
	default:
		line, where := s.table.child("when").textPosition(f.Line, f.Column)
		l.fault(line, s.keyOf("when"), "", "%s: %s", where, f.Problem)
	}
}

// textPosition finds the line of the file for a position within a string. Where the text stands in the file as it is, that
// is exact; a text with escapes stands on the line on which it begins.
func (n *node) textPosition(line, column int) (int, string) {
	where := fmt.Sprintf("column %d of the expression", column)
	if line > 1 || n.verbatim {
		where = fmt.Sprintf("line %d, column %d of the expression", line, column)
	}
	if n.verbatim {
		return n.textLine + line - 1, where
	}
	return n.line, where
}

// leaves are the single errors of a tree of joined ones.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, leaves(e)...)
		}
		return out
	}
	return []error{err}
}
