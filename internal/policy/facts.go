package policy

import (
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/ostiary/ostiary/call"
)

// Question is what a decision is about.
type Question struct {
	Principal call.Principal
	Export    string // "": the operator's own command line
	Tool      *call.Descriptor
	Arguments []byte // the raw JSON object; nil: none. It must not change until the answer is there
	Taint     Taint  // of the principal's session, before this call
}

// facts is a question as CEL asks for it: each value is made when a rule first looks at it, and once.
type facts struct {
	q      *Question
	trust  string
	labels Labels

	unknown bool // the arguments are not known
	read    bool
	args    any // map[string]any, or an error of CEL

	texts [6]ref.Val
}

var factsPool = sync.Pool{New: func() any { return new(facts) }}

func (p *Policy) factsOf(q *Question) *facts {
	f := factsPool.Get().(*facts)
	*f = facts{q: q, trust: p.sets[q.Tool.Package].Trust, labels: p.Labels(q.Tool)}
	return f
}

// done gives f back. Nothing of the call is kept.
func (f *facts) done() {
	*f = facts{}
	factsPool.Put(f)
}

var _ cel.Activation = (*facts)(nil)

// Parent implements cel.Activation.
func (*facts) Parent() cel.Activation { return nil }

// ResolveName implements cel.Activation.
func (f *facts) ResolveName(name string) (any, bool) {
	switch name {
	case varPrincipal:
		return f.text(0, f.q.Principal.ID), true
	case varExport:
		return f.text(1, f.q.Export), true
	case varPackage:
		return f.text(2, f.q.Tool.Package), true
	case varTrust:
		return f.text(3, f.trust), true
	case varTool:
		return f.text(4, string(f.q.Tool.ID)), true
	case varName:
		return f.text(5, f.q.Tool.Name), true
	case varEffect:
		return effectValues[min(int(f.q.Tool.Effect), len(effectValues)-1)], true
	case varLabels:
		return labelValues[f.labels&7], true
	case varTaints:
		return taintValues[f.q.Taint&allTaints], true
	case varArgs:
		if !f.read {
			f.read = true
			if f.args = any(types.WrapErr(errNoneAtHand)); !f.unknown {
				m, err := readArguments(f.q.Arguments)
				if f.args = any(m); err != nil {
					f.args = types.WrapErr(err)
				}
			}
		}
		return f.args, true
	}
	return nil, false
}

func (f *facts) text(i int, s string) ref.Val {
	if f.texts[i] == nil {
		f.texts[i] = types.String(s)
	}
	return f.texts[i]
}

// The values of the variables that have few.
var (
	effectValues = func() (out []ref.Val) {
		for _, n := range call.EffectClasses() {
			out = append(out, types.String(n))
		}
		return out
	}()
	labelValues = func() (out [8]ref.Val) {
		for i := range out {
			out[i] = types.NewStringList(types.DefaultTypeAdapter, Labels(i).Names())
		}
		return out
	}()
	taintValues = func() (out [4]ref.Val) {
		for i := range out {
			out[i] = types.NewStringList(types.DefaultTypeAdapter, Taint(i).Names())
		}
		return out
	}()
)
