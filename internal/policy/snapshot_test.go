package policy

import (
	"testing"

	"github.com/ostiary/ostiary/call"
)

// R7.5: two policies have the same snapshot exactly if they say the same.
func TestR7_5_Snapshot(t *testing.T) {
	no, labels := false, Egress
	base := func() (ToolSet, []Rule) {
		return ToolSet{Package: "p", Available: true, Trust: "ORG_MANAGED", Tools: map[string]Override{"t": {}, "u": {Approval: ApprovalRequired}}},
			[]Rule{{Name: "r", Effect: AskFirst, When: "true", Tools: []string{"aur.mcp.p.t", "*"}, Principals: []string{"a", "b"}}, {Name: "s", Effect: DenyCall}}
	}
	of := func(change func(*ToolSet, []Rule) []Rule) call.Digest {
		s, rules := base()
		rules = change(&s, rules)
		p, err := New([]string{"p"}, []ToolSet{s}, rules...)
		if err != nil {
			t.Fatal(err)
		}
		return p.Snapshot()
	}
	same := func(_ *ToolSet, r []Rule) []Rule { return r }
	first := of(same)
	if first.IsZero() || first != of(same) {
		t.Fatal("the same policy has two snapshots")
	}
	if first != of(func(_ *ToolSet, r []Rule) []Rule { r[0].Tools = []string{"*", "aur.mcp.p.t", "*"}; return r }) {
		t.Error("the order of patterns is a difference")
	}
	seen := map[call.Digest]string{first: "base"}
	for name, change := range map[string]func(*ToolSet, []Rule) []Rule{
		"available":   func(s *ToolSet, r []Rule) []Rule { s.Available = false; return r },
		"approval":    func(s *ToolSet, r []Rule) []Rule { s.Approval = ApprovalNever; return r },
		"frontier":    func(s *ToolSet, r []Rule) []Rule { s.Frontier = true; return r },
		"of a tool":   func(s *ToolSet, r []Rule) []Rule { s.Tools["t"] = Override{Frontier: true}; return r },
		"trust":       func(s *ToolSet, r []Rule) []Rule { s.Trust = ""; return r },
		"override":    func(s *ToolSet, r []Rule) []Rule { s.Tools["t"] = Override{Approval: ApprovalNever}; return r },
		"unavailable": func(s *ToolSet, r []Rule) []Rule { s.Tools["t"] = Override{Available: &no}; return r },
		"labels":      func(s *ToolSet, r []Rule) []Rule { s.Tools["t"] = Override{Labels: &labels}; return r },
		"tool":        func(s *ToolSet, r []Rule) []Rule { s.Tools["v"] = Override{}; return r },
		"no rule":     func(_ *ToolSet, r []Rule) []Rule { return r[:1] },
		"effect":      func(_ *ToolSet, r []Rule) []Rule { r[0].Effect = DenyCall; return r },
		"when":        func(_ *ToolSet, r []Rule) []Rule { r[0].When = "false"; return r },
		"tools":       func(_ *ToolSet, r []Rule) []Rule { r[0].Tools = r[0].Tools[:1]; return r },
		"principals":  func(_ *ToolSet, r []Rule) []Rule { r[0].Principals = nil; return r },
		"classes":     func(_ *ToolSet, r []Rule) []Rule { r[0].Classes = []call.EffectClass{call.ReadOnly}; return r },
		"name":        func(_ *ToolSet, r []Rule) []Rule { r[0].Name = "q"; return r },
		"reason":      func(_ *ToolSet, r []Rule) []Rule { r[0].Reason = "why"; return r },
		"order":       func(_ *ToolSet, r []Rule) []Rule { r[0], r[1] = r[1], r[0]; return r },
	} {
		d := of(change)
		if other, ok := seen[d]; ok {
			t.Errorf("%s has the snapshot of %s", name, other)
		}
		seen[d] = name
	}
}

// The labels that a tool has by default, and that annotations are no ground (R6.7).
func TestA27_DefaultLabels(t *testing.T) {
	for _, c := range []struct {
		effect call.EffectClass
		trust  string
		want   Labels
	}{
		{call.ReadOnly, "CONTROLLED_LOCAL", 0},
		{call.ReadOnly, "ORG_MANAGED", 0},
		{call.ReadOnly, "USER_ADDED_REVIEWED", ReadsUntrusted},
		{call.ReadOnly, "", ReadsUntrusted},
		{call.SensitiveRead, "CONTROLLED_LOCAL", ReadsPrivate},
		{call.SensitiveRead, "USER_ADDED_REVIEWED", ReadsPrivate | ReadsUntrusted},
		{call.LocalSideEffect, "ORG_MANAGED", 0},
		{call.ExternalSideEffect, "ORG_MANAGED", Egress},
		{call.ExternalSideEffect, "USER_ADDED_REVIEWED", Egress | ReadsUntrusted},
		{0, "CONTROLLED_LOCAL", Egress},
	} {
		p, err := New([]string{"p"}, []ToolSet{{Package: "p", Available: true, Trust: c.trust}})
		if err != nil {
			t.Fatal(err)
		}
		d := &call.Descriptor{Package: "p", Name: "t", Effect: c.effect, Definition: []byte(`{"annotations":{"readOnlyHint":true,"openWorldHint":false}}`)}
		if got := p.Labels(d); got != c.want {
			t.Errorf("%s of %q: got %q, want %q", c.effect, c.trust, got, c.want)
		}
	}
}
