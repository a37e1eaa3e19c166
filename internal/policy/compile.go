package policy

import (
	"errors"
	"fmt"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Bounds of one expression (F-56).
const (
	MaxExpression   = 4096 // characters
	maxNodes        = 1000 // of the syntax tree, macros expanded
	maxParseDepth   = 40
	maxNestedLoops  = 2
	maxRegexProgram = 1000

	// costLimit bounds the evaluation of one rule, and decisionLimit what all rules of one decision may cost together. A
	// unit is an operation on something small, or on some ten characters of a text: well under a microsecond. So the
	// bound on cost is one on time, and the same question has the same answer on a slow machine.
	costLimit     = 50_000
	decisionLimit = 100_000
	// cheap is what a rule may cost at most, whatever it is asked, to be evaluated without counting.
	cheap = 10_000
)

// The variables that an expression may name.
const (
	varPrincipal = "principal.id"
	varExport    = "export"
	varPackage   = "provider.package"
	varTrust     = "provider.trust"
	varTool      = "tool.id"
	varName      = "tool.name"
	varEffect    = "tool.effect"
	varLabels    = "tool.labels"
	varArgs      = "args"
	varTaints    = "session.taints"
)

// environment is what expressions are compiled in. Its functions are listed one by one: those of CEL that look at nothing
// but their operands. Times are left out, as there is no clock to compare them with and time zones are read from disk.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	std := env.NewLibrarySubset().AddIncludedMacros(operators.Has, operators.All, operators.Exists, operators.ExistsOne, operators.Map, operators.Filter)
	for _, f := range []string{
		operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.NotStrictlyFalse,
		operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
		operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate,
		operators.Index, operators.In,
		"size", "contains", "startsWith", "endsWith", "matches", "int", "uint", "double", "string", "bool",
	} {
		std.AddIncludedFunctions(env.NewFunction(f))
	}
	texts := cel.ListType(cel.StringType)
	return cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(std)),
		cel.ParserExpressionSizeLimit(MaxExpression), cel.ParserRecursionLimit(maxParseDepth), cel.ParserErrorRecoveryLimit(4),
		cel.ExpressionNodeLimit(maxNodes), cel.EnableHiddenAccumulatorName(true),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateComprehensionNestingLimit(maxNestedLoops)),
		cel.RegexProgramSizeLimit(maxRegexProgram),
		cel.CrossTypeNumericComparisons(true),
		cel.Variable(varPrincipal, cel.StringType), cel.Variable(varExport, cel.StringType),
		cel.Variable(varPackage, cel.StringType), cel.Variable(varTrust, cel.StringType),
		cel.Variable(varTool, cel.StringType), cel.Variable(varName, cel.StringType), cel.Variable(varEffect, cel.StringType),
		cel.Variable(varLabels, texts), cel.Variable(varArgs, cel.MapType(cel.StringType, cel.DynType)), cel.Variable(varTaints, texts),
		withinFunction,
	)
})

// program is a compiled expression.
type program struct {
	cel.Program
	text      string
	source    *ast.SourceInfo
	looksAt   map[string]bool // variables
	arguments bool            // args is one of them
}

func compile(name, text string) (*program, []mention, error) {
	e, err := environment()
	if err != nil {
		return nil, nil, fmt.Errorf("policy expressions: %w", err)
	}
	checked, issues := e.Compile(text)
	if issues.Err() != nil {
		return nil, nil, faultsOf(name, issues)
	}
	tree := checked.NativeRep()
	if t := checked.OutputType(); !t.IsExactType(types.BoolType) && !t.IsExactType(types.DynType) {
		return nil, nil, &RuleFault{Rule: name, Line: 1, Column: 1, Problem: fmt.Sprintf("the expression has type %s: expected bool", t)}
	}
	p := &program{text: text, source: tree.SourceInfo(), looksAt: map[string]bool{}}
	for _, r := range tree.ReferenceMap() {
		if r.Name != "" {
			p.looksAt[r.Name] = true
		}
	}
	p.arguments = p.looksAt[varArgs]
	mentions, err := readMentions(name, tree)
	if err != nil {
		return nil, nil, err
	}
	estimate, err := e.EstimateCost(checked, sizes{})
	if err != nil {
		return nil, nil, &RuleFault{Rule: name, Line: 1, Column: 1, Problem: "its cost cannot be estimated: " + err.Error()}
	}
	if estimate.Min > costLimit {
		return nil, nil, &RuleFault{Rule: name, Line: 1, Column: 1, Problem: fmt.Sprintf("it costs at least %d: at most %d is possible", estimate.Min, costLimit)}
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if estimate.Max > cheap {
		options = append(options, cel.CostTracking(callCosts{}), cel.CostLimit(costLimit))
	}
	if p.Program, err = e.Program(checked, options...); err != nil {
		return nil, nil, &RuleFault{Rule: name, Line: 1, Column: 1, Problem: err.Error()}
	}
	return p, mentions, nil
}

func faultsOf(name string, issues *cel.Issues) error {
	var faults []error
	for _, e := range issues.Errors() {
		f := &RuleFault{Rule: name, Line: 1, Column: 1, Problem: e.Message}
		if l := e.Location; l != nil && l != common.NoLocation && l.Line() > 0 {
			f.Line, f.Column = l.Line(), l.Column()+1
		}
		faults = append(faults, f)
	}
	if len(faults) == 0 {
		faults = append(faults, &RuleFault{Rule: name, Line: 1, Column: 1, Problem: issues.Err().Error()})
	}
	return errors.Join(faults...)
}

// position is where a part of the expression stands, for people.
func (p *program) position(id int64) (line, column int) {
	l := p.source.GetStartLocation(id)
	if l.Line() <= 0 {
		return 1, 1
	}
	return l.Line(), l.Column() + 1
}

// sizes bounds what expressions look at: arguments by the bounds of what is read of them, all else by the length of names.
type sizes struct{}

const maxNameSize = 1024 // of principals, tools and exports; what makes them allows less

func (sizes) EstimateSize(n cost.AstNode) *cost.SizeEstimate {
	path := n.Path()
	if len(path) == 0 {
		return nil
	}
	if path[0] != varArgs {
		return &cost.SizeEstimate{Min: 0, Max: maxNameSize}
	}
	return &cost.SizeEstimate{Min: 0, Max: max(maxText, maxValues)}
}

func (sizes) EstimateCallCost(_, overload string, target *cost.AstNode, _ []cost.AstNode) *cost.CallEstimate {
	if overload != overloadWithin || target == nil {
		return nil
	}
	return &cost.CallEstimate{CostEstimate: cost.Estimate{Min: 1, Max: 1 + maxText/10}}
}
