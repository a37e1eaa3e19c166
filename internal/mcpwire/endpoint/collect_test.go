package endpoint

import (
	"context"
	"testing"

	"github.com/ostiary/ostiary/call"
)

// R8.1: the call whose result is asked for reaches the path from every front, and never a provider; what is no id of a call is
// refused, and never taken for a new call.
func TestR8_1_CollectFromEveryFront(t *testing.T) {
	placed := 0
	caller := func(ctx context.Context, r call.Request) call.Reply {
		placed++
		reply := echo(ctx, r)
		reply.Outcome.CallID = "asked for " + r.Collect
		return reply
	}
	f := serve(t, caller)
	legacyHTTP := f.initialize("2025-11-25")
	p := pipeTo(t, f.Endpoint)
	if got := p.ask(initializeStdio); get(got, "result") == "" {
		t.Fatal(got)
	}
	legacy := func(meta string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{` + meta + `,"own":1}}}`
	}
	modern := func(meta string) string {
		return modernBody("7", "tools/call", `"name":"echo","arguments":{}`, meta+`,"own":1`)
	}
	for name, ask := range map[string]func(string) string{
		"modern HTTP": func(meta string) string {
			return string(f.do("POST", modern(meta), modernHeaders("tools/call", "echo")).message())
		},
		"legacy HTTP": func(meta string) string { return string(f.do("POST", legacy(meta), legacyHTTP...).message()) },
		"modern pipe": func(meta string) string { return p.ask(modern(meta)) },
		"legacy pipe": func(meta string) string { return p.ask(legacy(meta)) },
	} {
		if got := ask(`"org.ostiary/call":"c9"`); get(got, "result", "_meta", "org.ostiary/outcome", "call") != `"asked for c9"` || get(got, "result", "sawMeta") != `{"own":1}` {
			t.Errorf("%s: %s", name, got)
		}
		before := placed
		for _, bad := range []string{`"org.ostiary/call":9`, `"org.ostiary/call":""`, `"org.ostiary/call":null`} {
			if got := ask(bad); get(got, "error", "code") != "-32602" || placed != before {
				t.Errorf("%s, %s: %s", name, bad, got)
			}
		}
	}
}
