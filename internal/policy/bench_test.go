package policy

import (
	"fmt"
	"testing"

	"github.com/ostiary/ostiary/call"
)

func benchPolicy(b *testing.B, n int, when func(i int) string) *Policy {
	b.Helper()
	var rules []Rule
	for i := range n {
		rules = append(rules, Rule{Name: fmt.Sprint("r", i), Effect: Effect(i % 2), When: when(i)})
	}
	p, err := New([]string{"p"}, []ToolSet{{Package: "p", Available: true, Trust: "CONTROLLED_LOCAL"}}, rules...)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

var benchQuestion = Question{
	Principal: call.Principal{ID: "alice"}, Export: "default", Taint: Private,
	Tool:      &call.Descriptor{ID: "aur.mcp.p.read", Package: "p", Name: "read", Effect: call.ReadOnly},
	Arguments: []byte(`{"path":"/srv/docs/report.md","count":3,"tags":["a","b"],"deep":{"er":[1,2,3]}}`),
}

// A decision with 20 rules that all speak of the call takes less than 20 µs.
func BenchmarkJudge(b *testing.B) {
	for name, when := range map[string]func(int) string{
		"20_rules_no_args": func(i int) string {
			return fmt.Sprintf("principal.id == 'mallory%d' && tool.effect in ['SENSITIVE_READ', 'EXTERNAL_SIDE_EFFECT']", i)
		},
		"20_rules_taints": func(i int) string {
			return fmt.Sprintf("'untrusted' in session.taints && tool.name != 'x%d'", i)
		},
		"20_rules_args": func(i int) string { return fmt.Sprintf("args.path.startsWith('/etc/%d') || args.count > %d", i, i+5) },
		"no_expression": nil,
	} {
		b.Run(name, func(b *testing.B) {
			var p *Policy
			if when == nil {
				p = benchPolicy(b, 0, nil)
			} else {
				p = benchPolicy(b, 20, when)
			}
			b.ReportAllocs()
			for b.Loop() {
				if d := p.Judge(benchQuestion); d.Verdict != Allow {
					b.Fatal(d)
				}
			}
		})
	}
}
