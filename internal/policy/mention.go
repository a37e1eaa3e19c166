package policy

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"github.com/ostiary/ostiary/call"
)

// mention is a literal that an expression compares with a variable whose values are names. A name that does not exist
// would make the comparison false for ever, and a rule that denies silent.
type mention struct {
	variable, value string
	line, column    int
}

// vocabulary has the variables whose names are known without a catalog.
var vocabulary = map[string][]string{
	varEffect: call.EffectClasses(),
	varTrust:  {"CONTROLLED_LOCAL", "USER_ADDED_REVIEWED", "ORG_MANAGED", "BLOCKED"},
	varLabels: labelNames[:],
	varTaints: taintNames[:],
}

// readMentions lists the names that the expression compares variables with, checks those that are known here, and refuses
// what no bound holds: a regular expression that a caller could write.
func readMentions(rule string, tree *ast.AST) ([]mention, error) {
	var found []mention
	var fault error
	at := func(e ast.Expr) (int, int) {
		l := tree.SourceInfo().GetStartLocation(e.ID())
		return max(l.Line(), 1), max(l.Column()+1, 1)
	}
	variable := func(e ast.Expr) string {
		if r := tree.ReferenceMap()[e.ID()]; r != nil {
			return r.Name
		}
		return ""
	}
	pair := func(a, b ast.Expr) {
		name := variable(a)
		if name == "" {
			return
		}
		literals := []ast.Expr{b}
		if b.Kind() == ast.ListKind {
			literals = b.AsList().Elements()
		}
		for _, l := range literals {
			if l.Kind() != ast.LiteralKind {
				continue
			}
			if s, ok := l.AsLiteral().Value().(string); ok {
				line, column := at(l)
				found = append(found, mention{name, s, line, column})
			}
		}
	}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		c := e.AsCall()
		switch c.FunctionName() {
		case operators.Equals, operators.NotEquals, operators.In:
			if len(c.Args()) == 2 {
				pair(c.Args()[0], c.Args()[1])
				pair(c.Args()[1], c.Args()[0])
			}
		case "matches":
			pattern := c.Args()[len(c.Args())-1]
			if pattern.Kind() != ast.LiteralKind && fault == nil {
				line, column := at(pattern)
				fault = &RuleFault{Rule: rule, Line: line, Column: column, Problem: "the pattern of matches must be a literal text"}
			}
		}
	}))
	if fault != nil {
		return nil, fault
	}
	for _, m := range found {
		if names, ok := vocabulary[m.variable]; ok && !slices.Contains(names, m.value) {
			return nil, &RuleFault{Rule: rule, Line: m.line, Column: m.column,
				Problem: fmt.Sprintf("%s is never %q: expected one of %s", m.variable, clip(m.value, 60), strings.Join(names, ", "))}
		}
	}
	return found, nil
}
