package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
)

var anyone = call.Principal{ID: "alice"}

func set(available bool, approval Approval, tools map[string]Override) []ToolSet {
	return []ToolSet{{Package: "p", Available: available, Approval: approval, Tools: tools}}
}

func TestR7_1_ExactlyOnePolicyForEachProvider(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		packages []string
		sets     []ToolSet
		want     string
	}{
		"missing":   {[]string{"p"}, nil, "provider p has no policy"},
		"duplicate": {[]string{"p"}, []ToolSet{{Package: "p"}, {Package: "p"}}, "two policies"},
		"orphaned":  {[]string{"p"}, []ToolSet{{Package: "p"}, {Package: "q"}}, "no such provider"},
		"widened":   {[]string{"p"}, set(false, ApprovalNever, map[string]Override{"t": {Available: &yes}}), "may only narrow"},
		"good":      {[]string{"p"}, set(true, ApprovalNever, nil), ""},
	} {
		_, err := New(c.packages, c.sets)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestR7_2_Decide(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		sets   []ToolSet
		effect call.EffectClass
		who    call.Principal
		want   Verdict
	}{
		"undeclared effect asks":          {set(true, ApprovalByEffect, nil), 0, anyone, Ask},
		"external asks":                   {set(true, ApprovalByEffect, nil), call.ExternalSideEffect, anyone, Ask},
		"sensitive read asks":             {set(true, ApprovalByEffect, nil), call.SensitiveRead, anyone, Ask},
		"read only is allowed":            {set(true, ApprovalByEffect, nil), call.ReadOnly, anyone, Allow},
		"local is allowed":                {set(true, ApprovalByEffect, nil), call.LocalSideEffect, anyone, Allow},
		"never is the explicit rule":      {set(true, ApprovalNever, nil), call.ExternalSideEffect, anyone, Allow},
		"unsupported is never invokable":  {set(true, ApprovalNever, nil), call.UnsupportedEffect, anyone, Deny},
		"required asks even for reads":    {set(true, ApprovalRequired, nil), call.ReadOnly, anyone, Ask},
		"override decides for its tool":   {set(true, ApprovalRequired, map[string]Override{"t": {Approval: ApprovalNever}}), call.ReadOnly, anyone, Allow},
		"override narrows":                {set(true, ApprovalNever, map[string]Override{"t": {Approval: ApprovalRequired}}), call.ReadOnly, anyone, Ask},
		"override withholds":              {set(true, ApprovalNever, map[string]Override{"t": {Available: &no}}), call.ReadOnly, anyone, Deny},
		"not available":                   {set(false, ApprovalNever, nil), call.ReadOnly, anyone, Deny},
		"no principal":                    {set(true, ApprovalNever, nil), call.ReadOnly, call.Principal{}, Deny},
		"another tool's override is moot": {set(true, ApprovalRequired, map[string]Override{"u": {Approval: ApprovalNever}}), call.ReadOnly, anyone, Ask},
	} {
		p, err := New([]string{"p"}, c.sets)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d := p.Decide(c.who, &call.Descriptor{Package: "p", Name: "t", Effect: c.effect})
		if d.Verdict != c.want || d.Rule == "" {
			t.Errorf("%s: got %+v, want %v", name, d, c.want)
		}
	}
}

// R7.2: whatever a policy says, a tool of UNSUPPORTED_EFFECT is denied, one without a policy is denied, and an effectful
// call is allowed only by a rule that says "never" in so many words.
func TestR7_2_NothingEffectfulIsAllowedInSilence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		approvals := rapid.SampledFrom([]Approval{ApprovalByEffect, ApprovalRequired, ApprovalNever})
		s := ToolSet{Package: "p", Available: rapid.Bool().Draw(t, "available"), Approval: approvals.Draw(t, "approval")}
		if rapid.Bool().Draw(t, "override") {
			s.Tools = map[string]Override{"t": {Approval: approvals.Draw(t, "override approval")}}
		}
		p, err := New([]string{"p"}, []ToolSet{s})
		if err != nil {
			t.Fatal(err)
		}
		effect := call.EffectClass(rapid.IntRange(0, 4).Draw(t, "effect"))
		pkg := rapid.SampledFrom([]string{"p", "other"}).Draw(t, "package")
		d := p.Decide(anyone, &call.Descriptor{Package: pkg, Name: "t", Effect: effect})
		never := s.Approval == ApprovalNever && s.Tools["t"].Approval != ApprovalRequired || s.Tools["t"].Approval == ApprovalNever
		harmless := effect == call.ReadOnly || effect == call.LocalSideEffect
		if d.Verdict == Allow && (pkg != "p" || !s.Available || effect == call.UnsupportedEffect || !harmless && !never) {
			t.Fatalf("allowed by %s: %+v effect %v package %s", d.Rule, s, effect, pkg)
		}
	})
}
