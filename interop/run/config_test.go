//go:build unix

package main

import (
	"testing"

	"github.com/ostiary/ostiary/interop/mcpraw"
)

func tool(t *testing.T, raw string) mcpraw.Tool {
	t.Helper()
	o, err := mcpraw.ParseObject([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return mcpraw.Tool{Name: o.Text("name"), Raw: []byte(raw), Object: o}
}

func TestAdmitGivesAliasesAndLeavesOut(t *testing.T) {
	e := admit(&peer{ID: "p"}, []mcpraw.Tool{
		tool(t, `{"name":"plain-name_1","inputSchema":{"type":"object"}}`),
		tool(t, `{"name":"greet (with Icons)","inputSchema":{"type":"object"}}`),
		tool(t, `{"name":"9lives","inputSchema":{"type":"object"}}`),
		tool(t, `{"name":"","inputSchema":{"type":"object"}}`),
		tool(t, `{"name":"twice","inputSchema":{"type":"object"}}`),
		tool(t, `{"name":"twice","inputSchema":{"type":"object"}}`),
		tool(t, `{"name":"list","inputSchema":{"type":"array"}}`),
	})
	if len(e.tools) != 3 || len(e.left) != 3 || len(e.aliases) != 2 {
		t.Fatalf("%d tools, left %q, aliases %v", len(e.tools), e.left, e.aliases)
	}
	for raw, alias := range e.aliases {
		if !fits(alias) {
			t.Errorf("%q became %q, which does not fit either", raw, alias)
		}
	}
	if got := e.flat(e.tools[0]); got != "p__plain-name_1" {
		t.Errorf("flat name %q", got)
	}
}
