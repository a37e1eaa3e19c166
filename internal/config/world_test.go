package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/call"
)

// R5.6: who must state a frontier: what a tool's rule says, else its provider's policy, else the file as a whole.
func TestR5_6_WhoMustStateAFrontier(t *testing.T) {
	for name, c := range map[string]struct {
		world, policy, tool string
		read, write         bool
	}{
		"nothing is said":      {},
		"the file says so":     {world: "required", read: true, write: true},
		"the policy says so":   {policy: "required", read: true, write: true},
		"the policy says not":  {world: "required", policy: "optional"},
		"a tool's rule":        {tool: "required", write: true},
		"against the policy":   {world: "required", policy: "optional", tool: "required", write: true},
		"said twice":           {policy: "required", tool: "required", read: true, write: true},
		"optional, in so many": {world: "optional", policy: "optional", tool: "optional"},
	} {
		t.Run(name, func(t *testing.T) {
			line := func(word string) string {
				if word == "" {
					return ""
				}
				return "frontier = \"" + word + "\"\n"
			}
			text := strings.Replace(provided, "available = true\n", "available = true\n"+line(c.policy), 1) +
				"[provider.p.policy.tools.write]\n" + line(c.tool) + "[world]\n" + line(c.world)
			p := parse(t, text).Policy
			for tool, want := range map[string]bool{"read": c.read, "write": c.write} {
				rule, got := p.NeedsFrontier(&call.Descriptor{Package: "p", Name: tool})
				if got != want || got != strings.HasPrefix(rule, "provider.p.policy.") {
					t.Errorf("%s: %t by %q, want %t", tool, got, rule, want)
				}
			}
		})
	}
	if _, needs := parse(t, provided).Policy.NeedsFrontier(&call.Descriptor{Package: "other"}); !needs {
		t.Error("a tool without a policy needs no frontier")
	}
	// A tool's rule may only narrow (R7.1).
	_, err := Parse("ostiary.toml", []byte(strings.Replace(provided, "available = true\n", "available = true\nfrontier = \"required\"\n", 1)+
		"[provider.p.policy.tools.write]\nfrontier = \"optional\"\n"), lookup)
	if faults, ok := errors.AsType[Faults](err); !ok || len(faults) != 1 || faults[0].Key != "provider.p.policy.tools.write.frontier" || faults[0].Line == 0 {
		t.Errorf("a rule that widens: %v", err)
	}
}
