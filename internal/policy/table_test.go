package policy

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"golang.org/x/tools/txtar"

	"github.com/ostiary/ostiary/call"
)

// written is a policy as the tables write it.
type written struct {
	Provider map[string]struct {
		Trust     string
		Available *bool
		Approval  string
		Tools     map[string]struct {
			Effect, Approval string
			Labels           []string
		}
	}
	Rule []struct {
		Name, Effect, When, Reason string
		Tools, Principals, Classes []string
		Flows                      bool
	}
	Principals, Exports []string
}

// read makes the policy, its tools by package.name, and its catalog.
func read(text []byte) (*Policy, map[string]*call.Descriptor, Catalog, error) {
	var w written
	dec := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return nil, nil, Catalog{}, err
	}
	tools := map[string]*call.Descriptor{}
	catalog := Catalog{Principals: w.Principals, Exports: w.Exports}
	var sets []ToolSet
	for _, pkg := range slices.Sorted(maps.Keys(w.Provider)) {
		p := w.Provider[pkg]
		s := ToolSet{Package: pkg, Available: p.Available == nil || *p.Available, Trust: p.Trust, Tools: map[string]Override{}}
		if p.Approval != "" {
			s.Approval, _ = ParseApproval(p.Approval)
		}
		for _, name := range slices.Sorted(maps.Keys(p.Tools)) {
			t := p.Tools[name]
			d := &call.Descriptor{ID: call.NewToolID(pkg, name), Package: pkg, Name: name}
			if t.Effect != "" {
				var err error
				if d.Effect, err = call.ParseEffectClass(t.Effect); err != nil {
					return nil, nil, catalog, err
				}
			}
			var o Override
			if t.Approval != "" {
				o.Approval, _ = ParseApproval(t.Approval)
			}
			if t.Labels != nil {
				l, err := ParseLabels(t.Labels)
				if err != nil {
					return nil, nil, catalog, err
				}
				o.Labels = &l
			}
			s.Tools[name], tools[pkg+"."+name] = o, d
			catalog.Tools = append(catalog.Tools, d.ID)
		}
		sets = append(sets, s)
	}
	var rules []Rule
	for _, r := range w.Rule {
		effect, err := ParseEffect(r.Effect)
		if err != nil {
			return nil, nil, catalog, err
		}
		out := Rule{Name: r.Name, Effect: effect, When: r.When, Reason: r.Reason, Tools: r.Tools, Principals: r.Principals, Flows: r.Flows}
		for _, c := range r.Classes {
			class, err := call.ParseEffectClass(c)
			if err != nil {
				return nil, nil, catalog, err
			}
			out.Classes = append(out.Classes, class)
		}
		rules = append(rules, out)
	}
	p, err := New(slices.Sorted(maps.Keys(w.Provider)), sets, rules...)
	return p, tools, catalog, err
}

// TestTables reads testdata/calls/*.txtar: "policy.toml", then pairs NAME.calls and NAME.want. A call is a line
//
//	PRINCIPAL PACKAGE.TOOL [EXPORT:] [+TAINT…] [ARGUMENTS]
//
// and what is wanted of it is a verdict, the rule that gave it, "bound" if an approval is bound to the arguments, and the
// reason. Each call is explained as well, and the explanation must come to the same decision.
func TestTables(t *testing.T) {
	t.Parallel()
	eachArchive(t, "testdata/calls/*.txtar", func(t *testing.T, a *txtar.Archive) *txtar.Archive {
		if len(a.Files) == 0 || a.Files[0].Name != "policy.toml" {
			t.Fatal("it does not begin with policy.toml")
		}
		p, tools, catalog, err := read(a.Files[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Check(catalog); err != nil {
			t.Fatal(err)
		}
		out := &txtar.Archive{Comment: a.Comment, Files: a.Files[:1:1]}
		for _, f := range a.Files[1:] {
			name, ok := strings.CutSuffix(f.Name, ".calls")
			if !ok {
				continue
			}
			var got strings.Builder
			for line := range strings.Lines(string(f.Data)) {
				if strings.TrimSpace(line) == "" {
					continue
				}
				q, err := readCall(line, tools)
				if err != nil {
					t.Fatalf("%s: %q: %v", name, line, err)
				}
				d := p.Judge(q)
				bound := ""
				if d.ArgumentBound {
					bound = " bound"
				}
				fmt.Fprintf(&got, "%s %s%s: %s\n", d.Verdict, d.Rule, bound, d.Reason)
				if e := p.Explain(q); e.Decision != d {
					t.Errorf("%s: %q: Judge says %+v, Explain %+v", name, line, d, e.Decision)
				}
			}
			out.Files = append(out.Files, f, txtar.File{Name: name + ".want", Data: []byte(got.String())})
		}
		return out
	})
}

// TestFaults reads testdata/faults/*.txtar: pairs NAME.toml, a policy, and NAME.want, what New and Check say of it. A first
// line "# with FILE" appends that file of the same archive.
func TestFaults(t *testing.T) {
	t.Parallel()
	eachArchive(t, "testdata/faults/*.txtar", func(t *testing.T, a *txtar.Archive) *txtar.Archive {
		out := &txtar.Archive{Comment: a.Comment}
		for _, f := range a.Files {
			if strings.HasSuffix(f.Name, ".want") {
				continue
			}
			out.Files = append(out.Files, f)
			name, ok := strings.CutSuffix(f.Name, ".toml")
			if !ok {
				continue
			}
			text := f.Data
			first, _, _ := strings.Cut(string(text), "\n")
			if with, ok := strings.CutPrefix(first, "# with "); ok {
				i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == with })
				text = append(slices.Clone(text), a.Files[i].Data...)
			}
			got := "ok\n"
			p, _, catalog, err := read(text)
			if err == nil {
				err = p.Check(catalog)
			}
			if err != nil {
				got = err.Error() + "\n"
			}
			out.Files = append(out.Files, txtar.File{Name: name + ".want", Data: []byte(got)})
		}
		return out
	})
}

func eachArchive(t *testing.T, pattern string, run func(*testing.T, *txtar.Archive) *txtar.Archive) {
	files, _ := filepath.Glob(pattern)
	if len(files) == 0 {
		t.Fatalf("no cases in %s", pattern)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := string(txtar.Format(a))
			got := string(txtar.Format(run(t, a)))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

func readCall(line string, tools map[string]*call.Descriptor) (q Question, err error) {
	rest := strings.TrimSpace(line)
	next := func() (word string) {
		word, rest, _ = strings.Cut(rest, " ")
		rest = strings.TrimSpace(rest)
		return word
	}
	q.Principal.ID = next()
	name := next()
	if q.Tool = tools[name]; q.Tool == nil {
		return q, fmt.Errorf("there is no tool %q", name)
	}
	for rest != "" {
		switch word, _, _ := strings.Cut(rest, " "); {
		case word[0] == '{' || word[0] == '[':
			q.Arguments, rest = []byte(rest), ""
		case strings.HasSuffix(word, ":"):
			q.Export = strings.TrimSuffix(next(), ":")
		case word[0] == '+':
			taint, err := ParseTaint([]string{next()[1:]})
			if err != nil {
				return q, err
			}
			q.Taint |= taint
		default:
			return q, fmt.Errorf("%q is neither an export, a taint nor arguments", word)
		}
	}
	return q, nil
}
