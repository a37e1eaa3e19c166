package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/call"
	"pgregory.net/rapid"
)

func starterExample() Starter {
	return Starter{
		Package: "org.example.files", Command: []string{"npx", "-y", `a "b" \c`}, Revision: "2026-07-28", Approval: "required",
		Tools: []StarterTool{
			{Name: "read", Summary: "Reads\n[server]\nlisten = 1", ReadOnly: true, Allowed: true},
			{Name: "repo/search", Summary: "x\u202ey", Allowed: true},
			{Name: "delete", Summary: "\x1b[31mred"},
		},
	}
}

func TestStarterIsValid(t *testing.T) {
	for _, url := range []string{"", "https://search.example/mcp"} {
		s := starterExample()
		s.URL = url
		c, err := Parse("ostiary.toml", []byte(s.File()), lookup)
		if err != nil {
			t.Fatalf("%v\n%s", err, s.File())
		}
		if got := len(c.Providers[0].Profile.AllowedTools); got != 2 {
			t.Errorf("allowed tools: got %d, want 2", got)
		}
		if got := c.Exports[0].Tools[1].ID; got != "aur.mcp.org.example.files.repo_search" {
			t.Errorf("export: got %s", got)
		}
	}
}

func TestStarterAddTo(t *testing.T) {
	first := Starter{Package: "a", Command: []string{"x"}, Approval: "never", Tools: []StarterTool{{Name: "t", Allowed: true}}}
	for name, c := range map[string]struct{ text, export string }{
		"into the array":    {first.File(), "default"},
		"into an empty one": {"[export.default]\ntools = []\n", "default"},
		"no export":         {"", "default"},
		"odd form":          {"export.default.tools = []\n", "org-example-files"},
	} {
		out, export, err := starterExample().AddTo("ostiary.toml", []byte(c.text), lookup)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		cfg, err := Parse("ostiary.toml", out, lookup)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		e, _ := cfg.Export(export)
		if export != c.export || !slices.ContainsFunc(e.Tools, func(t ExportedTool) bool { return t.ID == "aur.mcp.org.example.files.read" }) {
			t.Errorf("%s: export %s has %v\n%s", name, export, e.Tools, out)
		}
		if !strings.Contains(string(out), strings.TrimSpace(c.text)) && c.export != "default" {
			t.Errorf("%s: the old text is not kept", name)
		}
		if _, _, err := starterExample().AddTo("ostiary.toml", out, lookup); err == nil || !strings.Contains(err.Error(), "exists already") {
			t.Errorf("%s: adding it twice: %v", name, err)
		}
	}
}

// Whatever a server says of itself, the file is valid and allows exactly what was chosen: no word of the server's becomes
// configuration.
func TestR6_7_StarterAllowsOnlyWhatWasChosen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Starter{Package: "p", Command: []string{"x", rapid.String().Filter(func(s string) bool { return !strings.ContainsRune(s, 0) }).Draw(t, "arg")}, Approval: "never", Revision: rapid.String().Draw(t, "revision")}
		seen := map[string]bool{}
		want := 0
		for range rapid.IntRange(0, 5).Draw(t, "tools") {
			tool := StarterTool{Name: rapid.String().Draw(t, "name"), Summary: rapid.String().Draw(t, "summary"), ReadOnly: rapid.Bool().Draw(t, "ro"), Allowed: rapid.Bool().Draw(t, "allowed")}
			if tool.Name == "" || seen[tool.name()] {
				continue
			}
			seen[tool.name()] = true
			if tool.Allowed {
				want++
			}
			s.Tools = append(s.Tools, tool)
		}
		c, err := Parse("ostiary.toml", []byte(s.File()), nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, s.File())
		}
		var got []string
		for _, a := range c.Providers[0].Profile.AllowedTools {
			got = append(got, string(call.NewToolID("p", a.Name())))
		}
		if len(got) != want || !slices.Equal(got, s.ToolIDs()) {
			t.Fatalf("got %q, want %q", got, s.ToolIDs())
		}
	})
}
