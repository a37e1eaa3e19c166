package policy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ostiary/ostiary/call"
)

// Catalog is what there is for rules to speak of: every tool that configuration allows, whether its provider has started
// or not, and everyone who can call.
type Catalog struct {
	Tools      []call.ToolID
	Principals []string
	Exports    []string
}

// Check finds the patterns and the names in rules that nothing in the catalog fits. Such a rule is a mistake: the one who
// wrote it believes that it does something. Each fault is a [RuleFault].
func (p *Policy) Check(c Catalog) error {
	var faults []error
	packages, names := map[string]bool{}, map[string]bool{}
	for _, id := range c.Tools {
		if pkg, name, ok := id.Split(); ok {
			packages[pkg], names[name] = true, true
		}
	}
	for pkg := range p.sets {
		packages[pkg] = true
	}
	for _, r := range p.rules {
		for i, t := range r.tools {
			if !slices.ContainsFunc(c.Tools, func(id call.ToolID) bool {
				pkg, name, ok := id.Split()
				return ok && t.matches(pkg, name)
			}) {
				faults = append(faults, &RuleFault{Rule: r.Name, Problem: fmt.Sprintf("no tool fits %q", clip(r.Tools[i], 120))})
			}
		}
		for _, g := range r.principals {
			if !slices.ContainsFunc(c.Principals, g.matches) {
				faults = append(faults, &RuleFault{Rule: r.Name, Problem: fmt.Sprintf("no principal fits %q", clip(string(g), 120))})
			}
		}
		for _, m := range r.mentions {
			exists, what := true, ""
			switch m.variable {
			case varPrincipal:
				exists, what = slices.Contains(c.Principals, m.value), "principal"
			case varExport:
				// A call from the operator's own command line comes through no export.
				exists, what = m.value == "" || slices.Contains(c.Exports, m.value), "export"
			case varPackage:
				exists, what = packages[m.value], "provider"
			case varTool:
				exists, what = slices.Contains(c.Tools, call.ToolID(m.value)), "tool"
			case varName:
				exists, what = names[m.value], "tool of the name"
			}
			if !exists {
				faults = append(faults, &RuleFault{Rule: r.Name, Line: m.line, Column: m.column,
					Problem: fmt.Sprintf("there is no %s %q", what, clip(m.value, 120))})
			}
		}
	}
	return errors.Join(faults...)
}
