package policy

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
)

func newTest(t *testing.T, rules ...Rule) *Policy {
	t.Helper()
	p, err := New([]string{"p"}, []ToolSet{{Package: "p", Available: true, Trust: "CONTROLLED_LOCAL"}}, rules...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ask(arguments string) Question {
	q := benchQuestion
	q.Arguments, q.Taint = []byte(arguments), 0
	return q
}

// The arguments are read only when a rule looks at them: broken ones are no matter to rules that do not.
func TestArgumentsAreReadLazily(t *testing.T) {
	p := newTest(t, Rule{Name: "a", Effect: DenyCall, When: "principal.id == 'mallory' && args.x == 1"})
	if d := p.Judge(ask("{broken")); d.Verdict != Allow {
		t.Errorf("got %+v", d)
	}
	q := ask("{broken")
	q.Principal.ID = "mallory"
	if d := p.Judge(q); d.Verdict != Deny {
		t.Errorf("got %+v", d)
	}
}

// What is too large to be looked at denies only if a rule looks at it.
func TestF56_LargeArguments(t *testing.T) {
	p := newTest(t, Rule{Name: "path", Effect: DenyCall, When: "has(args.content) && args.path.startsWith('/etc')"},
		Rule{Name: "content", Effect: DenyCall, When: "args.path == '/look' && args.content.contains('x')"})
	long := strings.Repeat("y", maxText+1)
	for path, want := range map[string]Verdict{"/srv": Allow, "/etc/x": Deny, "/look": Deny} {
		d := p.Judge(ask(fmt.Sprintf(`{"path":%q,"content":%q}`, path, long)))
		if d.Verdict != want {
			t.Errorf("%s: got %+v", path, d)
		}
	}
	if d := p.Judge(ask(`{"path":"/look","content":"y"}`)); d.Verdict != Allow {
		t.Errorf("got %+v", d)
	}
	for name, raw := range map[string]string{
		"deep": `{"path":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		"many": `{"path":"/srv","l":[` + strings.Repeat("0,", maxValues) + `0]}`,
	} {
		if d := p.Judge(ask(raw)); d.Verdict != Deny || d.Rule != "rule.path" && d.Rule != "rule.content" {
			t.Errorf("%s: got %+v", name, d)
		}
	}
}

// F-56: no rule takes long, whatever the caller sends. The bound is generous: it is there to catch the unbounded.
func TestF56_ExpensiveRulesEnd(t *testing.T) {
	list := "[" + strings.Repeat("1,", 20_000) + "1]"
	text := strings.Repeat("a", maxText)
	raw := fmt.Sprintf(`{"l":%s,"m":%s,"s":%q,"t":%q}`, list, list, text, text)
	for _, when := range []string{
		"args.l.all(x, args.m.all(y, x == y))",
		"args.l.map(x, args.m.map(y, [x, y])).size() > 0",
		"args.l.all(x, args.s.matches('(a|aa)+$'))",
		"args.l.all(x, args.s + args.t == args.t + args.s)",
		"args.l.all(x, !args.s.contains('aaaaaaaaaaaaaaaaaab'))",
		"args.l.all(x, args.s.within('/srv') == false)",
		"args.l.all(x, args.l == args.m)",
		"args.l.all(x, size(args.s) > 0)",
		"args.l.all(x, x in args.m)",
	} {
		p := newTest(t, Rule{Name: "r", Effect: AskFirst, When: when})
		start := time.Now()
		d := p.Judge(ask(raw))
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s took %s: %+v", when, took, d)
		}
		if d.Verdict != Deny {
			t.Errorf("%s: got %+v", when, d)
		}
	}
}

// F-56: many rules that each stay below their limit do not add up without one.
func TestF56_OneDecisionHasABudget(t *testing.T) {
	var rules []Rule
	for i := range 50 {
		rules = append(rules, Rule{Name: fmt.Sprint("r", i), Effect: AskFirst, When: "!args.l.all(x, x == 1)"})
	}
	p := newTest(t, rules...)
	raw := `{"l":[` + strings.Repeat("1,", 3000) + `1]}`
	if d := p.Judge(ask(raw)); d.Verdict != Deny || !strings.Contains(d.Reason, "used up") {
		t.Errorf("got %+v", d)
	}
	if d := p.Judge(ask(`{"l":[1]}`)); d.Verdict != Allow {
		t.Errorf("got %+v", d)
	}
}

// R6.9: arguments are quoted in no decision and no explanation.
func TestR6_9_ArgumentsAreNotQuoted(t *testing.T) {
	for _, when := range []string{
		"int(args.s) == 1", "args.m[args.s] == 1", "bool(args.s)", "args.l[args.n] == 1", "args.s + args.n == 1", "double(args.s) > 1.0", "args.s > 1",
		"args.s", "args.s.nothing == 1", "uint(args.s) == 1u",
	} {
		p := newTest(t, Rule{Name: "r", Effect: DenyCall, When: when})
		q := ask(`{"s":"hunter2","m":{},"l":[],"n":424242}`)
		d := p.Judge(q)
		if d.Verdict != Deny {
			t.Errorf("%s: got %+v", when, d)
		}
		if all := fmt.Sprintf("%+v %+v", d, p.Explain(q)); strings.Contains(all, "hunter2") || strings.Contains(all, "424242") {
			t.Errorf("%s: %s", when, all)
		}
	}
}

// Decide has no arguments: a rule that looks at them denies, and the outlook says that it depends.
func TestDecideAndOutlook(t *testing.T) {
	p := newTest(t, Rule{Name: "args", Effect: DenyCall, When: "args.x == 1"}, Rule{Name: "mallory", Effect: DenyCall, Principals: []string{"mallory"}})
	tool := benchQuestion.Tool
	if d := p.Decide(anyone, tool); d.Verdict != Deny || d.Rule != "rule.args" {
		t.Errorf("got %+v", d)
	}
	if d, depends := p.Outlook(anyone, "default", tool); d.Verdict != Allow || !depends {
		t.Errorf("got %+v, depends %t", d, depends)
	}
	if d, depends := p.Outlook(call.Principal{ID: "mallory"}, "default", tool); d.Verdict != Deny || d.Rule != "rule.mallory" || depends {
		t.Errorf("got %+v, depends %t", d, depends)
	}
	quiet := newTest(t)
	if d, depends := quiet.Outlook(anyone, "", tool); d.Verdict != Allow || depends {
		t.Errorf("got %+v, depends %t", d, depends)
	}
}

// An explanation lists every rule, says which decides, and why each did not.
func TestExplain(t *testing.T) {
	p := newTest(t,
		Rule{Name: "other-tool", Effect: DenyCall, Tools: []string{"aur.mcp.p.write"}},
		Rule{Name: "other-principal", Effect: DenyCall, Principals: []string{"bob"}},
		Rule{Name: "other-class", Effect: DenyCall, Classes: []call.EffectClass{call.SensitiveRead}},
		Rule{Name: "false", Effect: DenyCall, When: "export == 'x'"},
		Rule{Name: "asks", Effect: AskFirst, Reason: "look first"},
		Rule{Name: "first", Effect: DenyCall, When: "args.count == 3"},
		Rule{Name: "second", Effect: DenyCall},
	)
	e := p.Explain(benchQuestion)
	var got bytes.Buffer
	for _, f := range e.Rules {
		fmt.Fprintf(&got, "%s looked=%t matched=%t decides=%t: %s\n", f.Rule, f.Looked, f.Matched, f.Decides, f.Why)
	}
	want := `rule.other-tool looked=false matched=false decides=false: it speaks of other tools: aur.mcp.p.write
rule.other-principal looked=false matched=false decides=false: it speaks of other principals: bob
rule.other-class looked=false matched=false decides=false: it speaks of other effect classes than READ_ONLY
rule.false looked=true matched=false decides=false: its condition is false
rule.asks looked=true matched=true decides=false: it matches: look first
rule.first looked=true matched=true decides=true: it matches: a rule forbids it
rule.second looked=true matched=true decides=false: it matches: a rule forbids it
`
	if got.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), want)
	}
	if e.Decision.Rule != "rule.first" || e.Standing.Verdict != Allow {
		t.Errorf("got %+v", e)
	}
}

// The policy is shared by all calls: none sees another's facts.
func TestJudgeConcurrently(t *testing.T) {
	p := newTest(t, Rule{Name: "r", Effect: DenyCall, When: "args.who != principal.id"})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			q := ask(fmt.Sprintf(`{"who":"p%d"}`, w))
			q.Principal.ID = fmt.Sprint("p", w)
			for range 500 {
				if d := p.Judge(q); d.Verdict != Allow {
					t.Errorf("got %+v", d)
				}
			}
		})
	}
	wg.Wait()
}
