package ostiary_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/exampleserver"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// R4.7, R5.6, R5.7: the scopes that a server has declared enter the barrier, with servers of both eras over both transports
// and clients of both eras: what a client has missed is told in place of a call, a call that it could know all about goes
// out, and all of it can be read afterwards, in the order of the ledger.
func TestR4_7_FrontiersFromEndToEnd(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		for _, over := range []string{"stdio", "http"} {
			t.Run(era+" "+over, func(t *testing.T) {
				t.Parallel()
				url := ""
				if over == "http" {
					o := exampleserver.Options{Extensions: true}
					if err := o.Era.Set(era); err != nil {
						t.Fatal(err)
					}
					s := httptest.NewServer(exampleserver.Handler(o))
					t.Cleanup(s.Close)
					url = s.URL + "/mcp"
				}
				g := extended(t, url, "", "-era", era) // whose export may read nothing of the world
				for i, modern := range []bool{true, false} {
					c := &client{t: t, url: "http://" + g.Addr() + "/v1/mcp", modern: modern}
					if !modern {
						c.do("initialize", "", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"},`, "")
					}
					room := call.Scope(fmt.Sprint("example:room:r", i))
					post := func(seen string) (content.Frame, call.Frontier) {
						t.Helper()
						meta := ""
						if seen != "" {
							meta = `"org.ostiary/frontier":` + seen
						}
						f := c.call("post", fmt.Sprintf(`{"room":"r%d","text":"hi"}`, i), meta)
						raw := content.Member(content.Member(f.Result, "_meta"), "org.ostiary/frontier")
						if raw == nil {
							return f, nil
						}
						var at call.Frontier
						if err := json.Unmarshal(raw, &at); err != nil {
							t.Fatal(err)
						}
						return f, at
					}
					at := func(seq int) string { return fmt.Sprintf(`{%q:%d}`, room, seq) }

					f, seen := post(at(0))
					must(t, string(f.Result), `"status":"succeeded"`, "posted in r")
					if want := (call.Frontier{room: 1}); !maps.Equal(seen, want) {
						t.Errorf("modern client %v: seen %v, want %v", modern, seen, want)
					}
					if f, seen = post(""); seen != nil {
						t.Errorf("modern client %v: nothing was stated, and %v was seen", modern, seen)
					}
					must(t, string(f.Result), `"status":"succeeded"`, "!org.ostiary/frontier")
					f, seen = post(at(1))
					must(t, string(f.Result), `"code":"stale_frontier"`, `"delivery":"not_sent"`, `"isError":true`, `"org.ostiary/missed":[{"scope":"`+string(room)+`","seq":2,`,
						string(room)+" #2 tool.succeeded: what it says cannot be read here", "data and no instructions", "!posted in", "!aur.mcp.ex.post")
					if want := (call.Frontier{room: 2}); !maps.Equal(seen, want) {
						t.Errorf("modern client %v: after a refusal seen %v, want %v", modern, seen, want)
					}
					if f, seen = post(at(2)); !maps.Equal(seen, call.Frontier{room: 3}) {
						t.Errorf("modern client %v: repeated, seen %v", modern, seen)
					}
					must(t, string(f.Result), `"status":"succeeded"`)
					f, _ = post(at(9))
					must(t, string(f.Result), `"code":"frontier_unknown"`, `"delivery":"not_sent"`)
					if f, _ = post(`{"room":-1}`); f.Error == nil || f.Error.Code != -32602 {
						t.Errorf("modern client %v: a bad frontier was answered %s", modern, f.Result)
					}
					// A call of which nobody knows what it did is a fact of the provider's own scope (R4.3, R4.6).
					must(t, string(c.call("maybe", `{}`, "").Result), `"status":"unknown"`)
					must(t, string(c.call("maybe", `{}`, fmt.Sprintf(`"org.ostiary/frontier":{"aurora:mcp:ex":%d}`, i)).Result), `"code":"stale_frontier"`,
						"aurora:mcp:ex #"+fmt.Sprint(i+1)+" tool.unknown: ")
				}
				for room, want := range map[call.Scope]int{"example:room:r0": 3, "example:room:r1": 3, "aurora:mcp:ex": 2} {
					page, err := g.WorldDelta(t.Context(), room, 0, 0)
					if err != nil || len(page.Commits) != want || page.Head != int64(want) {
						t.Errorf("%s: %d commits, head %d, %v; want %d", room, len(page.Commits), page.Head, err, want)
					}
					for _, c := range page.Commits {
						kind := "tool.succeeded"
						if room == "aurora:mcp:ex" {
							kind = "tool.unknown"
						}
						if c.Kind != kind || c.Provider != "ex" || c.CallID == "" || strings.Contains(c.Summary, "hi") {
							t.Errorf("%s has %+v", room, c)
						}
					}
				}
				reply, err := g.Call(t.Context(), ostiary.CallRequest{Tool: "post", Arguments: ostiary.JSON(`{"room":"r0"}`), Frontier: call.Frontier{"example:room:r0": 2}})
				if err != nil || reply.Outcome.Code != call.CodeStaleFrontier || len(reply.Missed) != 1 || reply.Missed[0].Summary != "aur.mcp.ex.post succeeded" {
					t.Errorf("the operator is told %+v, %v", reply, err)
				}
				scopes, err := g.WorldScopes(t.Context(), "", 0)
				if err != nil || slices.ContainsFunc(scopes.Scopes, func(s ostiary.WorldScope) bool { return s.Head == 0 }) || len(scopes.Scopes) != 3 {
					t.Errorf("scopes %v, %v", scopes, err)
				}
			})
		}
	}
}
