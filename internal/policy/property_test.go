package policy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
)

// Conditions that are true, false, depend on the call, or cannot be evaluated for some calls.
var conditions = []string{
	"", "true", "false", "principal.id == 'alice'", "tool.name == 't'", "'private' in session.taints", "args.x == 1", "has(args.x) && args.x > 1",
	"args.y.z", "args.x / 0 == 1", "args.l.all(a, args.l.all(b, a != b || a == b))", "export == 'default'", "'egress' in tool.labels",
}

var (
	patterns    = []string{"*", "aur.mcp.p.*", "aur.mcp.p.t", "aur.mcp.*.t", "aur.mcp.q.t"}
	argumentses = []string{"", "{}", `{"x": 1}`, `{"x": 2}`, `{"x": "1"}`, `{"y": {"z": true}}`, `{"x": 1, "x": 2}`, `{"x": 99999999999999999999}`, "[]",
		`{"l": [1, 2]}`}
	narrowing = []Effect{DenyCall, AskFirst}
)

func drawRule(t *rapid.T, i int, effects ...Effect) Rule {
	r := Rule{
		Name: fmt.Sprint("r", i), Effect: rapid.SampledFrom(effects).Draw(t, "effect"), When: rapid.SampledFrom(conditions).Draw(t, "when"),
		Tools:      rapid.SliceOfN(rapid.SampledFrom(patterns), 0, 2).Draw(t, "tools"),
		Principals: rapid.SliceOfN(rapid.SampledFrom([]string{"*", "alice", "b*"}), 0, 1).Draw(t, "principals"),
	}
	if r.Effect == AllowCall {
		r.Flows = rapid.Bool().Draw(t, "flows")
		r.Classes = rapid.SliceOfNDistinct(rapid.SampledFrom([]call.EffectClass{call.ExternalSideEffect, call.SensitiveRead}), 1, 2, rapid.ID).Draw(t, "classes")
	}
	return r
}

func drawRules(t *rapid.T) []Rule {
	var out []Rule
	for i := range rapid.IntRange(0, 5).Draw(t, "rules") {
		out = append(out, drawRule(t, i, DenyCall, AskFirst, AllowCall))
	}
	return out
}

func drawSet(t *rapid.T) ToolSet {
	approvals := rapid.SampledFrom([]Approval{ApprovalByEffect, ApprovalRequired, ApprovalNever})
	s := ToolSet{Package: "p", Available: rapid.IntRange(0, 9).Draw(t, "available") > 0, Approval: approvals.Draw(t, "approval"),
		Trust: rapid.SampledFrom([]string{"", "CONTROLLED_LOCAL", "USER_ADDED_REVIEWED", "ORG_MANAGED"}).Draw(t, "trust")}
	if rapid.Bool().Draw(t, "override") {
		o := Override{Approval: approvals.Draw(t, "override approval")}
		if rapid.Bool().Draw(t, "labelled") {
			l := Labels(rapid.IntRange(0, 7).Draw(t, "labels"))
			o.Labels = &l
		}
		s.Tools = map[string]Override{"t": o}
	}
	return s
}

func drawQuestion(t *rapid.T) Question {
	return Question{
		Principal: call.Principal{ID: rapid.SampledFrom([]string{"alice", "bob"}).Draw(t, "principal")},
		Export:    rapid.SampledFrom([]string{"", "default"}).Draw(t, "export"),
		Tool: &call.Descriptor{ID: "aur.mcp.p.t", Package: "p", Name: "t",
			Effect: call.EffectClass(rapid.IntRange(0, 4).Draw(t, "class"))},
		Arguments: []byte(rapid.SampledFrom(argumentses).Draw(t, "arguments")),
		Taint:     Taint(rapid.IntRange(0, 3).Draw(t, "taint")),
	}
}

func mustNew(t *rapid.T, s ToolSet, rules []Rule) *Policy {
	p, err := New([]string{"p"}, []ToolSet{s}, rules...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// An error never allows: a call for which any rule that speaks of it cannot be evaluated is denied.
func TestAnErrorNeverAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := mustNew(t, drawSet(t), drawRules(t)), drawQuestion(t)
		e := p.Explain(q)
		failed := slices.ContainsFunc(e.Rules, func(f Finding) bool { return f.Failed })
		if d := p.Judge(q); failed && d.Verdict != Deny {
			t.Fatalf("a rule failed, and the call gets %+v: %+v", d, e)
		}
	})
}

// Adding a rule that denies or asks never widens, wherever it is put.
func TestAddingADenyNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, rules, q := drawSet(t), drawRules(t), drawQuestion(t)
		more := slices.Insert(slices.Clone(rules), rapid.IntRange(0, len(rules)).Draw(t, "at"), drawRule(t, 99, narrowing...))
		before, after := mustNew(t, s, rules).Judge(q), mustNew(t, s, more).Judge(q)
		if after.Verdict > before.Verdict {
			t.Fatalf("%+v becomes %+v", before, after)
		}
		if before.ArgumentBound && after.Verdict == Ask && !after.ArgumentBound {
			t.Fatalf("an approval for these arguments becomes one for any: %+v becomes %+v", before, after)
		}
	})
}

// R7.2: a rule never makes a tool of UNSUPPORTED_EFFECT callable, or one whose provider is not available, whatever it says.
func TestR7_2_ARuleNeverMakesUnsupportedCallable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, q := drawSet(t), drawQuestion(t)
		if rapid.Bool().Draw(t, "unsupported") {
			q.Tool.Effect = call.UnsupportedEffect
		} else {
			s.Available = false
		}
		if d := mustNew(t, s, drawRules(t)).Judge(q); d.Verdict != Deny {
			t.Fatalf("got %+v", d)
		}
	})
}

// R7.1: rules can only narrow what a tool-set policy says. What it requires approval for is never allowed by a rule, and
// what its effect class asks for only by one that names the class.
func TestR7_1_RulesOnlyNarrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, rules, q := drawSet(t), drawRules(t), drawQuestion(t)
		with, without := mustNew(t, s, rules).Judge(q), mustNew(t, s, nil).Judge(Question{Principal: q.Principal, Tool: q.Tool})
		if with.Verdict <= without.Verdict {
			return
		}
		i := slices.IndexFunc(rules, func(r Rule) bool { return "rule."+r.Name == with.Rule })
		if i < 0 || rules[i].Effect != AllowCall || !slices.Contains(rules[i].Classes, q.Tool.Effect) {
			t.Fatalf("%+v became %+v", without, with)
		}
		if approval := s.Tools["t"].Approval; approval == ApprovalRequired || approval == ApprovalByEffect && s.Approval == ApprovalRequired {
			t.Fatalf("a rule dropped the approval that the tool-set policy requires: %+v", with)
		}
	})
}

// whatever rules say, a call that could carry out private data at a stranger's wish is allowed only if a rule for
// flows matches, and otherwise the approval is for its arguments.
func TestA27_NoFlowInSilence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, rules, q := drawSet(t), drawRules(t), drawQuestion(t)
		q.Taint = Untrusted | Private
		p := mustNew(t, s, rules)
		if p.Labels(q.Tool)&Egress == 0 {
			return
		}
		e := p.Explain(q)
		lifted := false
		for i, r := range rules {
			lifted = lifted || r.Flows && e.Rules[i].Matched
		}
		if d := p.Judge(q); !lifted && (d.Verdict == Allow || d.Verdict == Ask && !d.ArgumentBound) {
			t.Fatalf("got %+v", d)
		}
	})
}

// The verdict does not depend on the order of the rules, and the explanation comes to the same decision as the judgement.
func TestOrderOfRulesIsNoMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, rules, q := drawSet(t), drawRules(t), drawQuestion(t)
		p := mustNew(t, s, rules)
		d := p.Judge(q)
		if e := p.Explain(q); e.Decision != d {
			t.Fatalf("Judge says %+v, Explain %+v", d, e.Decision)
		}
		slices.Reverse(rules)
		if r := mustNew(t, s, rules).Judge(q); r.Verdict != d.Verdict || r.ArgumentBound != d.ArgumentBound {
			t.Fatalf("%+v, and in reverse %+v", d, r)
		}
	})
}

// Taint never shrinks, and what is read is never forgotten: not by failures, and not by what else is called.
func TestA27_TaintNeverShrinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := mustNew(t, drawSet(t), nil)
		var taint Taint
		for range rapid.IntRange(0, 6).Draw(t, "calls") {
			tool := &call.Descriptor{Package: "p", Name: rapid.SampledFrom([]string{"t", "u"}).Draw(t, "tool"),
				Effect: call.EffectClass(rapid.IntRange(0, 4).Draw(t, "class"))}
			o := call.Outcome{Status: call.Status(rapid.IntRange(0, 3).Draw(t, "status")), Delivery: call.Delivery(rapid.IntRange(0, 2).Draw(t, "delivery"))}
			after := p.AfterCall(taint, tool, o)
			if after&taint != taint {
				t.Fatalf("%v becomes %v", taint, after)
			}
			if want := p.Labels(tool).taintOf(); o.Delivery != call.NotSent && after&want != want {
				t.Fatalf("after a call with labels %v the taint is %v", p.Labels(tool), after)
			}
			if o.Delivery == call.NotSent && after != taint {
				t.Fatalf("a call that was not sent makes %v of %v", after, taint)
			}
			taint = after
		}
	})
}

// in no period are there more calls than the limit, nor more identical ones, while time moves forward; and a caller
// that waits until the time that it was told is let through.
func TestA30_BudgetHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{Calls: rapid.IntRange(0, 6).Draw(t, "calls"), Per: 10 * time.Second, Identical: rapid.IntRange(0, 3).Draw(t, "identical"), IdenticalPer: 7 * time.Second}
		now := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
		var b Budget
		var let []struct {
			at     time.Time
			digest call.Digest
		}
		for range rapid.IntRange(1, 60).Draw(t, "attempts") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			digest := call.Digest{byte(rapid.IntRange(1, 3).Draw(t, "call"))}
			next, refusal := b.Take(l, now, digest)
			if refusal.Refused() {
				if next != b {
					t.Fatal("a refused call counts")
				}
				if _, again := b.Take(l, refusal.Until, digest); again.Refused() && again.Rule == refusal.Rule {
					t.Fatalf("refused until %s, and then again: %+v", refusal.Until, again)
				}
				continue
			}
			b = next
			let = append(let, struct {
				at     time.Time
				digest call.Digest
			}{now, digest})
		}
		// A period begins with its first call, so two of them may touch: twice the limit in any stretch of that length.
		for i := range let {
			all, same := 0, 0
			for _, c := range let[i:] {
				if c.at.Sub(let[i].at) < l.Per {
					all++
				}
				if c.digest == let[i].digest && c.at.Sub(let[i].at) < l.IdenticalPer {
					same++
				}
			}
			if l.Calls > 0 && all > 2*l.Calls {
				t.Fatalf("%d calls within %s: the limit is %d", all, l.Per, l.Calls)
			}
			if l.Identical > 0 && same > 2*l.Identical {
				t.Fatalf("%d identical calls within %s: the limit is %d", same, l.IdenticalPer, l.Identical)
			}
		}
	})
}
