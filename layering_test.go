package ostiary_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write generated documents instead of comparing them")

const module = "github.com/ostiary/ostiary"

// may says what each package may import: ours by their path below the module ("" is the root package), and outside modules
// by the prefix of their path. The standard library is free to all, but for what denied lists. A package without a row
// fails: decide what it may know.
var may = map[string]struct{ ours, outside []string }{
	"call": {},

	// For authors of MCP servers: it knows the extensions' rules and the SDK, and nothing of the gateway.
	"contract": {ours: []string{"call", "internal/world"}, outside: []string{sdk, jsonLib, "github.com/google/jsonschema-go"}},

	// The steps of the path: pure, or declaring what they need.
	"internal/policy":   {ours: []string{"call"}, outside: []string{"cel.dev/cel-go", jsonLib}},
	"internal/drift":    {ours: []string{"call"}, outside: []string{jsonLib}},
	"internal/firewall": {ours: []string{"call"}, outside: []string{jsonLib, "github.com/zricethezav/gitleaks/v8", "github.com/pelletier/go-toml/v2", "golang.org/x/text"}},
	"internal/ledger":   {ours: []string{"call", "internal/durable"}, outside: []string{jsonLib, "golang.org/x/mod/sumdb"}},
	"internal/provider": {ours: []string{"call", "internal/drift", "internal/world"}, outside: []string{jsonLib, "github.com/google/jsonschema-go", "golang.org/x/sync/errgroup"}},
	"internal/identity": {ours: []string{"call"}},
	"internal/world":    {ours: []string{"call"}, outside: []string{jsonLib}},

	// Secrets at rest, and what was held.
	"internal/durable":  {},
	"internal/vault":    {ours: []string{"internal/durable"}, outside: []string{jsonLib, "filippo.io/age", "github.com/zalando/go-keyring", "golang.org/x/sys"}},
	"internal/evidence": {ours: []string{"call"}},

	"internal/review":    {},
	"internal/builtin":   {ours: []string{"call", "internal/policy", "internal/provider", "internal/world"}, outside: []string{jsonLib}},
	"internal/admission": {ours: []string{"call", "internal/drift", "internal/review"}, outside: []string{jsonLib, "github.com/pelletier/go-toml/v2"}},
	"internal/approval":  {ours: []string{"call", "internal/review"}, outside: []string{jsonLib}},

	"internal/store": {ours: []string{"call", "internal/admission", "internal/approval", "internal/evidence", "internal/ledger", "internal/policy", "internal/world"}},
	"internal/store/sqlstore": {ours: []string{"call", "internal/admission", "internal/approval", "internal/durable", "internal/evidence", "internal/ledger", "internal/policy", "internal/store", "internal/world"},
		outside: []string{"modernc.org/sqlite", "github.com/pressly/goose/v3", "golang.org/x/mod/sumdb", "golang.org/x/sys"}},
	"internal/store/storetest": {ours: []string{"call", "internal/admission", "internal/approval", "internal/evidence", "internal/ledger", "internal/policy", "internal/store", "internal/world"}, outside: []string{"github.com/google/go-cmp", "pgregory.net/rapid"}},

	"internal/gate": {ours: []string{"call", "internal/admission", "internal/approval", "internal/drift", "internal/evidence", "internal/firewall", "internal/ledger", "internal/policy", "internal/provider", "internal/review", "internal/store", "internal/world"},
		outside: []string{jsonLib}},

	// The adapter: only this tree speaks MCP with others (R1.13, R6.12).
	"internal/mcpwire": {ours: []string{"call", "internal/gate", "internal/provider", "internal/mcpwire/content", "internal/mcpwire/session", "internal/mcpwire/transport"}},
	"internal/mcpwire/transport": {ours: []string{"call", "internal/mcpwire/content"},
		outside: []string{sdk, jsonLib, "code.dny.dev/ssrf", "golang.org/x/sys"}},
	"internal/mcpwire/session":    {ours: []string{"call", "internal/provider", "internal/mcpwire/content", "internal/mcpwire/transport"}, outside: []string{sdk, jsonLib}},
	"internal/mcpwire/content":    {ours: []string{"call"}, outside: []string{jsonLib}},
	"internal/mcpwire/endpoint":   {ours: []string{"call", "internal/identity", "internal/mcpwire/content", "internal/world"}, outside: []string{sdk, jsonLib}},
	"internal/exampleserver":      {outside: []string{sdk, jsonLib}},
	"internal/exampleserver/chat": {ours: []string{"contract"}, outside: []string{sdk}},

	"internal/config": {ours: []string{"call", "internal/builtin", "internal/firewall", "internal/policy", "internal/provider", "internal/vault", "internal/world"}, outside: []string{"github.com/pelletier/go-toml/v2"}},

	// The host and the edges.
	"": {ours: []string{"call", "internal/admission", "internal/approval", "internal/builtin", "internal/config", "internal/evidence", "internal/firewall", "internal/gate", "internal/httpd",
		"internal/identity", "internal/ledger", "internal/mcpwire", "internal/mcpwire/content", "internal/mcpwire/endpoint", "internal/policy", "internal/provider", "internal/review", "internal/store", "internal/store/sqlstore", "internal/vault", "internal/world"},
		outside: []string{jsonLib, "golang.org/x/mod/sumdb"}},
	"internal/httpd":    {ours: []string{"call", "internal/identity"}},
	"internal/adminapi": {ours: []string{"", "call"}},
	"internal/cli": {ours: []string{"", "call", "internal/adminapi", "internal/config", "internal/exampleserver", "internal/exampleserver/chat", "internal/vault"},
		outside: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/sys", "golang.org/x/term", jsonLib}},
	"cmd/ostiary": {ours: []string{"internal/cli"}},
}

const (
	sdk     = "github.com/modelcontextprotocol/go-sdk"
	jsonLib = "github.com/go-json-experiment/json"
)

// tooling holds trees that are no part of the product: they may import what they like, and nothing may import them.
var tooling = []string{"bench", "interop"}

// denied are standard packages that only the named packages may import. S-015: what reads schemas has no way to fetch one.
var denied = map[string][]string{
	"net/http": {"", "contract", "internal/adminapi", "internal/cli", "internal/config", "internal/exampleserver", "internal/httpd", "internal/identity", "internal/mcpwire/content",
		"internal/mcpwire/endpoint", "internal/mcpwire/session", "internal/mcpwire/transport"},
	"os/exec":      {"internal/mcpwire/transport", "internal/cli"},
	"database/sql": {"internal/store/sqlstore"},

	// F-63: they would open routes of their own, or let memory be read.
	"net/http/pprof": {},
	"expvar":         {},
	"runtime/pprof":  {},
	"runtime/trace":  {},
	"net/rpc":        {},
	"net/http/cgi":   {},
}

// Every package imports what its row lets it import, and nothing else. R1.13, R6.12: the SDK stands in mcpwire and in the
// packages that are MCP servers; no edge opens MCP connections.
func TestR6_12_Layering(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	seen := map[string]bool{}
	for dec.More() {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		name := below(p.ImportPath)
		if isTooling(name) {
			continue
		}
		seen[name] = true
		row, ok := may[name]
		if !ok {
			t.Errorf("package %q has no row: decide what it may know", name)
			continue
		}
		for _, imp := range p.Imports {
			switch {
			case imp == module || strings.HasPrefix(imp, module+"/"):
				if !slices.Contains(row.ours, below(imp)) {
					t.Errorf("%q imports %q", name, below(imp))
				}
			case strings.Contains(strings.Split(imp, "/")[0], "."):
				if !slices.ContainsFunc(row.outside, func(m string) bool { return imp == m || strings.HasPrefix(imp, m+"/") }) {
					t.Errorf("%q imports %s", name, imp)
				}
			default:
				if who, ok := denied[imp]; ok && !slices.Contains(who, name) {
					t.Errorf("%q imports %s", name, imp)
				}
			}
		}
	}
	for name := range may {
		if !seen[name] {
			t.Errorf("the row of %q stands for no package", name)
		}
	}
}

func below(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

func isTooling(name string) bool {
	return slices.ContainsFunc(tooling, func(t string) bool { return name == t || strings.HasPrefix(name, t+"/") })
}

// The table in docs/ARCHITECTURE.md is printed from the same rows.
func TestArchitectureTable(t *testing.T) {
	const path, begin, end = "docs/ARCHITECTURE.md", "<!-- layering:begin -->\n", "<!-- layering:end -->"
	var b strings.Builder
	b.WriteString("| package | may import (ours) | (outside) |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(may)) {
		row := may[name]
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", orRoot(name), list(row.ours), list(row.outside))
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(doc), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	want := before + begin + b.String() + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(doc) {
		t.Errorf("%s: the table is out of date; go test . -run TestArchitectureTable -update", path)
	}
}

func orRoot(name string) string {
	if name == "" {
		return "ostiary"
	}
	return name
}

func list(names []string) string {
	if len(names) == 0 {
		return "–"
	}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = orRoot(n)
	}
	return strings.Join(out, ", ")
}
