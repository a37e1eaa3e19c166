package endpoint

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/world"
)

// Whatever the body and the headers are, the answer is one valid JSON value (or nothing), the arguments that reach the path
// are a valid object, the tool is one of the export's, and a resource is one that may be read.
func FuzzHTTP(f *testing.F) {
	o := Options{
		Caller: callerFunc(func(_ context.Context, r call.Request) call.Reply {
			if r.Tool == readTool.ID {
				uri, _ := content.String(content.Member(r.Arguments, "uri"))
				if s, err := world.ParseURI(uri); err != nil || !strings.HasPrefix(string(s), "qq:") {
					panic("what reached the path may not be read")
				}
			} else if r.Tool != "aur.mcp.files.echo" {
				panic("another tool reached the path")
			}
			if r.Arguments != nil && !jsontext.Value(r.Arguments).IsValid() || r.Meta != nil && !jsontext.Value(r.Meta).IsValid() {
				panic("what reached the path was not checked")
			}
			return call.Reply{Outcome: okOutcome, Result: []byte(`{"content":[]}`)}
		}),
		Authenticate: func(context.Context, string) (call.Principal, bool) { return call.Principal{ID: "alice"}, true },
		Exports:      []Export{{Name: "x", Tools: []Tool{echoTool()}}},
	}
	withWorld(newPlanet())(&o)
	e, err := New(o)
	if err != nil {
		f.Fatal(err)
	}
	h := e.Handler("x")
	call := modernBody("1", "tools/call", `"name":"echo","arguments":{"a":1}`, `"progressToken":1`)
	f.Add(call, "2026-07-28", "tools/call", "echo")
	f.Add(modernBody(`"x"`, "tools/list", `"cursor":""`, ""), "2026-07-28", "tools/list", "")
	f.Add(modernBody("1", "server/discover", "", ""), "2026-07-28", "server/discover", "")
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, "", "", "")
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`, "2025-11-25", "", "=?base64?ZWNobw==?=")
	f.Add(modernBody("1", "resources/read", `"uri":"ostiary://world/qq%3A1"`, ""), "2026-07-28", "resources/read", "ostiary://world/qq%3A1")
	f.Add(modernBody("1", "resources/list", `"cursor":"cXE6MQ"`, ""), "2026-07-28", "resources/list", "")
	f.Add("[]", "2027-01-01", "\xff", "\x00")
	f.Fuzz(func(t *testing.T, body, version, method, name string) {
		if strings.Contains(body, methodListen) || strings.Contains(body, `\u`) {
			return // a subscription does not end by itself
		}
		r := httptest.NewRequest("POST", "http://localhost/v1/mcp", strings.NewReader(body))
		r.Header = http.Header{"Authorization": {"Bearer x"}, "Content-Type": {"application/json"}, "Mcp-Method": {method}, "Mcp-Name": {name}}
		if version != "" {
			r.Header["Mcp-Protocol-Version"] = []string{version}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		answer := w.Body.Bytes()
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			answer = reply{header: w.Header(), body: w.Body.String()}.message()
		}
		if w.Code == http.StatusInternalServerError {
			t.Fatalf("a fault: %s", answer)
		}
		if w.Code != http.StatusAccepted && !jsontext.Value(answer).IsValid() {
			t.Fatalf("%d: %q", w.Code, answer)
		}
	})
}

// Lines are the input cut at its line ends, without the empty ones; no line is longer than the bound.
func FuzzReadLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n  \nc"), 10)
	f.Add([]byte(strings.Repeat("x", 100_000)+"\ny"), 70_000)
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		var want []string
		for piece := range bytes.SplitSeq(in, []byte("\n")) {
			if len(piece) > limit+1 {
				want = append(want, "too long")
			} else if s := strings.TrimRight(string(piece), "\r\t \n"); s != "" {
				want = append(want, s)
			}
		}
		var got []string
		readLines(bytes.NewReader(in), int64(limit), func(l line) bool {
			if l.tooLong {
				got = append(got, "too long")
			} else {
				got = append(got, string(l.b))
			}
			return true
		})
		// At the very bound the end of input and a line end differ by a byte: compare what is clearly on either side.
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] && len(want[i]) < limit && want[i] != "too long" {
				t.Fatalf("line %d: %.100q, want %.100q", i, got[i], want[i])
			}
		}
		for _, l := range got {
			if len(l) > limit+2 && l != "too long" {
				t.Fatalf("a line of %d bytes, bound %d", len(l), limit)
			}
		}
	})
}
