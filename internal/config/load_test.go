package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/ostiary/ostiary/internal/provider"
)

// testEnv is the environment of all tests.
var testEnv = map[string]string{
	"OSTIARY_TOKEN": "0123456789abcdef0123", "SAME_TOKEN": "0123456789abcdef0123", "OTHER_TOKEN": "fedcba9876543210fedc",
	"SHORT_TOKEN": "short", "EMPTY": "", "BLANK_TOKEN": "0123456789abcdef 0123", "SEARCH_TOKEN": "search-secret", "HTTPS_PROXY": "http://127.0.0.1:1",
}

func lookup(name string) (string, bool) { v, ok := testEnv[name]; return v, ok }

// TestLoad reads testdata/*.txtar. NAME.toml is a configuration; NAME.want has what Load says of it: its faults, or "ok"
// and its warnings. A first line "# with FILE" appends that file of the same archive.
func TestLoad(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) == 0 {
		t.Fatal("no cases")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out := &txtar.Archive{Comment: archive.Comment}
			for _, f := range archive.Files {
				name, isCase := strings.CutSuffix(f.Name, ".toml")
				if strings.HasSuffix(f.Name, ".want") {
					continue
				}
				out.Files = append(out.Files, f)
				if !isCase {
					continue
				}
				got := verdict(f.Data, func(name string) []byte {
					i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name })
					if i < 0 {
						t.Fatalf("no file %s", name)
					}
					return archive.Files[i].Data
				})
				out.Files = append(out.Files, txtar.File{Name: name + ".want", Data: []byte(got)})
				i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name+".want" })
				if *update {
					continue
				}
				if i < 0 {
					t.Errorf("%s has no .want", f.Name)
				} else if diff := cmp.Diff(string(archive.Files[i].Data), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", f.Name, diff)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func verdict(text []byte, file func(string) []byte) string {
	first, _, _ := strings.Cut(string(text), "\n")
	if with, ok := strings.CutPrefix(first, "# with "); ok {
		text = append(slices.Clone(text), file(with)...)
	}
	c, err := Parse("ostiary.toml", text, lookup)
	if err != nil {
		faults, ok := errors.AsType[Faults](err)
		if !ok {
			return "not Faults: " + err.Error() + "\n"
		}
		return lines(faults)
	}
	return "ok\n" + lines(c.Warnings)
}

func lines(faults Faults) string {
	var b strings.Builder
	for _, f := range faults {
		fmt.Fprintln(&b, f)
		if f.Hint != "" {
			fmt.Fprintln(&b, "  hint:", f.Hint)
		}
	}
	return b.String()
}

func TestDefaultsAreThoseOfTheProvider(t *testing.T) {
	c, err := Parse("x.toml", []byte(`
[provider.p]
transport = "stdio"
command = "x"
trust_tier = "CONTROLLED_LOCAL"
allowed_tools = []
[provider.p.policy]
available = true
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(provider.DefaultLimits, c.Providers[0].Profile.Limits); diff != "" {
		t.Errorf("limits of an empty table (-DefaultLimits +got):\n%s", diff)
	}
	if got := c.Providers[0].Admission; got != AdmitFirstUse {
		t.Errorf("admission of CONTROLLED_LOCAL: got %s", got)
	}
}

// No secret is printed: not the value of a variable, not a literal in env, headers, args or a URL.
func TestShowHasNoSecrets(t *testing.T) {
	c, err := Parse("x.toml", []byte(`
[server]
token_env = "OSTIARY_TOKEN"
[provider.a]
transport = "stdio"
command = "x"
args = ["--token", "hunter2-a", "--api-key=hunter2-b", "ghp_hunter2cccccccccccc", "plain"]
env = { PASSWORD = "hunter2-d", NODE_ENV = "hunter2-e" }
trust_tier = "ORG_MANAGED"
allowed_tools = []
policy = { available = true }
[provider.b]
transport = "http"
url = "https://x.example/mcp?key=hunter2-f"
headers = { X-Api-Key = "hunter2-g" }
credential = "env:SEARCH_TOKEN"
trust_tier = "ORG_MANAGED"
allowed_tools = []
policy = { available = true }
`), lookup)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Show(&b, c); err != nil {
		t.Fatal(err)
	}
	text := b.String() + fmt.Sprintf("%v %+v %#v", c.Warnings, c.Warnings, c.Warnings)
	for _, secret := range []string{"hunter2", testEnv["OSTIARY_TOKEN"], testEnv["SEARCH_TOKEN"]} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is shown:\n%s", secret, text)
		}
	}
	for _, want := range []string{`provider.a.env = { PASSWORD = "[redacted]"`, `"plain"`, "server.drain_seconds = 20  # default", `server.token_env = "OSTIARY_TOKEN"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not shown:\n%s", want, text)
		}
	}
	tok, ok := c.Principals[0].Token()
	if !ok || tok.Reveal() != testEnv["OSTIARY_TOKEN"] {
		t.Error("the token is not that of the variable")
	}
	if s := fmt.Sprintf("%v %+v %#v", tok, tok, tok); strings.Contains(s, tok.Reveal()) {
		t.Errorf("the token prints as %s", s)
	}
}

func FuzzLoad(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range archive.Files {
			f.Add(e.Data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("fuzz.toml", data, lookup)
		if err != nil {
			faults, ok := errors.AsType[Faults](err)
			if !ok || len(faults) == 0 {
				t.Fatalf("an error without faults: %v", err)
			}
			for _, fault := range faults {
				if fault.Line < 0 || fault.Line > strings.Count(string(data), "\n")+1 {
					t.Errorf("line %d does not exist: %v", fault.Line, fault)
				}
			}
			return
		}
		// What Show prints of a valid file is TOML, and as valid.
		var b strings.Builder
		if err := Show(&b, c); err != nil {
			t.Fatal(err)
		}
		if _, faults := parseTree("shown.toml", []byte(b.String())); faults != nil {
			t.Errorf("shown text is no TOML: %v\n%s", faults, b.String())
		}
	})
}
