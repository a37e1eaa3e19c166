package content

import (
	"slices"
	"testing"
)

const goodTrace = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"

// S-017: reserved keys never pass, the caller's own always do, byte for byte.
func TestS017_SplitMeta(t *testing.T) {
	for _, tc := range []struct {
		name, meta, rest string
		stripped         []string
	}{
		{"nothing", ``, ``, nil},
		{"empty", `{}`, ``, nil},
		{"own only", `{ "com.example/a" : 1.0, "b":[ ] }`, `{ "com.example/a" : 1.0, "b":[ ] }`, nil},
		{"protocol fields", `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","x":1,"io.modelcontextprotocol/clientCapabilities":{},"progressToken":3}`, `{"x":1}`, nil},
		{"only reserved", `{"progressToken":"a"}`, ``, nil},
		{"other reserved", `{"a":1,"dev.mcp/x":2,"org.modelcontextprotocol.api/y":3,"com.mcp.tools/z":4}`, `{"a":1}`, []string{"dev.mcp/x", "org.modelcontextprotocol.api/y", "com.mcp.tools/z"}},
		{"reserved in 2025-11-25", `{"mcp.dev/x":1,"modelcontextprotocol.io/y":2,"api.mcp.com/z":3}`, ``, []string{"mcp.dev/x", "modelcontextprotocol.io/y", "api.mcp.com/z"}},
		{"by another case", `{"IO.ModelContextProtocol/x":1,"a":2}`, `{"a":2}`, []string{"IO.ModelContextProtocol/x"}},
		{"by an escape", `{"io.m\u006fdelcontextprotocol/serverInfo":1}`, ``, []string{"io.modelcontextprotocol/serverInfo"}},
		{"not reserved", `{"com.example.mcp/x":1,"mcp/y":2,"com.example/mcp":3,"mcp":4,"io.mcpx/z":5}`, `{"com.example.mcp/x":1,"mcp/y":2,"com.example/mcp":3,"mcp":4,"io.mcpx/z":5}`, nil},
		{"ours", `{"org.ostiary/outcome":{},"org.ostiary/frontier":{"s":1},"org.ostiary.x/y":1}`, `{"org.ostiary.x/y":1}`, []string{"org.ostiary/outcome"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var meta []byte
			if tc.meta != "" {
				meta = []byte(tc.meta)
			}
			r, rest, err := SplitMeta(meta)
			if err != nil {
				t.Fatal(err)
			}
			if string(rest) != tc.rest || (rest == nil) != (tc.rest == "") {
				t.Errorf("got rest %s, want %s", rest, tc.rest)
			}
			if !slices.Equal(r.Stripped, tc.stripped) || r.StrippedCount != len(tc.stripped) {
				t.Errorf("got stripped %q (%d), want %q", r.Stripped, r.StrippedCount, tc.stripped)
			}
		})
	}
}

func TestSplitMetaFields(t *testing.T) {
	r, rest, err := SplitMeta([]byte(`{"io.modelcontextprotocol/protocolVersion":"v","io.modelcontextprotocol/clientInfo":{"name":"n"},
		"io.modelcontextprotocol/clientCapabilities":{"x":{}},"io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/subscriptionId":"s",
		"progressToken":12345678901234567890,"org.ostiary/frontier":{"a":1},"org.ostiary/call":"c1","mine":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if r.ProtocolVersion != "v" || string(r.ClientInfo) != `{"name":"n"}` || string(r.ClientCapabilities) != `{"x":{}}` || r.LogLevel != "debug" ||
		string(r.SubscriptionID) != `"s"` || string(r.ProgressToken) != "12345678901234567890" || r.StrippedCount != 0 || r.Collect != "c1" || string(rest) != `{"mine":true}` {
		t.Errorf("got %+v, rest %s", r, rest)
	}
	for _, bad := range []string{
		`{"progressToken":null}`, `{"progressToken":{}}`, `{"io.modelcontextprotocol/protocolVersion":1}`, `{"io.modelcontextprotocol/clientInfo":"x"}`,
		`{"io.modelcontextprotocol/clientCapabilities":null}`, `{"io.modelcontextprotocol/logLevel":3}`, `[]`, `null`,
		`{"org.ostiary/call":1}`, `{"org.ostiary/call":""}`, `{"org.ostiary/call":null}`,
	} {
		if _, _, err := SplitMeta([]byte(bad)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

// S-018: trace context passes in W3C form or not at all.
func TestS018_TraceContext(t *testing.T) {
	for _, tc := range []struct{ name, meta, rest string }{
		{"good", `{"traceparent":"` + goodTrace + `","tracestate":"a=1,b=2","baggage":"k=v;p"}`, `{"traceparent":"` + goodTrace + `","tracestate":"a=1,b=2","baggage":"k=v;p"}`},
		{"later version", `{"traceparent":"01` + goodTrace[2:] + `-more"}`, `{"traceparent":"01` + goodTrace[2:] + `-more"}`},
		{"too long for version 00", `{"traceparent":"` + goodTrace + `-more"}`, ``},
		{"short", `{"traceparent":"00-1-2-01"}`, ``},
		{"upper case", `{"traceparent":"00-0AF7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"}`, ``},
		{"version ff", `{"traceparent":"ff` + goodTrace[2:] + `"}`, ``},
		{"zero trace id", `{"traceparent":"00-00000000000000000000000000000000-00f067aa0ba902b7-01"}`, ``},
		{"zero parent", `{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"}`, ``},
		{"no string", `{"traceparent":5,"a":1}`, `{"a":1}`},
		{"state without parent", `{"tracestate":"a=1","a":1}`, `{"a":1}`},
		{"state with a bad parent", `{"a":1,"traceparent":"x","tracestate":"a=1"}`, `{"a":1}`},
		{"bad state", `{"traceparent":"` + goodTrace + `","tracestate":"a"}`, `{"traceparent":"` + goodTrace + `"}`},
		{"bad baggage", `{"baggage":"a=\u0001"}`, ``},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, rest, err := SplitMeta([]byte(tc.meta))
			if err != nil || string(rest) != tc.rest {
				t.Errorf("got %s, %v, want %s", rest, err, tc.rest)
			}
		})
	}
}

// R1.6: every modern request says who we are, and the caller's own keys stay.
func TestR1_6_RequestMeta(t *testing.T) {
	m := RequestMeta{ProtocolVersion: "2026-07-28", ClientInfo: []byte(`{"name":"ostiary"}`), ClientCapabilities: []byte(`{}`), ProgressToken: []byte(`"g1"`), LogLevel: "info"}
	got := AppendRequestMeta(nil, []byte(`{ "mine" : 1.0 , "io.modelcontextprotocol/clientInfo":{"name":"evil"} }`), m)
	want := `{"mine" : 1.0,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"ostiary"},` +
		`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info","progressToken":"g1"}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := AppendRequestMeta(nil, nil, RequestMeta{ProgressToken: []byte("7")}); string(got) != `{"progressToken":7}` {
		t.Errorf("got %s", got)
	}
	if got := AppendRequestMeta(nil, nil, RequestMeta{}); string(got) != `{}` {
		t.Errorf("got %s", got)
	}
}

func TestParseCallParams(t *testing.T) {
	p, err := ParseCallParams([]byte(`{"name":"a\u0062","arguments":{ "x" : 9007199254740993 },"_meta":{"progressToken":"t"},"inputResponses":{"k":{}},"requestState":"\u0000s","Arguments":{"evil":1},"other":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "ab" || string(p.Arguments) != `{ "x" : 9007199254740993 }` || string(p.ProgressToken) != `"t"` || string(p.InputResponses) != `{"k":{}}` || string(p.RequestState) != `"\u0000s"` {
		t.Errorf("got %+v", p)
	}
	if p, err := ParseCallParams([]byte(`{"name":"a"}`)); err != nil || p.Arguments != nil || p.Meta != nil {
		t.Errorf("got %+v, %v", p, err)
	}
	for in, want := range map[string]error{
		`null`: ErrParams, `[]`: ErrParams, `{}`: ErrToolName, `{"name":""}`: ErrToolName, `{"name":5}`: ErrToolName, `{"Name":"a"}`: ErrToolName,
		`{"name":"a","arguments":null}`: ErrArguments, `{"name":"a","arguments":[]}`: ErrArguments, `{"name":"a","_meta":null}`: ErrMeta,
		`{"name":"a","_meta":{"progressToken":null}}`: ErrProgressToken, `{"name":"a","inputResponses":[]}`: ErrInputResponses, `{"name":"a","requestState":{}}`: ErrRequestState,
	} {
		if _, err := ParseCallParams([]byte(in)); err != want {
			t.Errorf("%s: got %v, want %v", in, err, want)
		}
	}
}

// No reserved key survives a split, and no own key is lost.
func FuzzSplitMeta(f *testing.F) {
	f.Add([]byte(`{"a":1,"io.mcp/x":{},"traceparent":"` + goodTrace + `","tracestate":"x"}`))
	f.Add([]byte(`{"progressToken":1 , "b" : [ ]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, rest, err := SplitMeta(b)
		out := AppendRequestMeta(nil, rest, RequestMeta{ProtocolVersion: "v", ProgressToken: []byte("1")})
		if CheckValue(b, FrameLimits{}) != nil || kind(b) != '{' || err != nil {
			return
		}
		want := map[string]string{}
		for k, v := range Members(b) {
			if r.keeps(k) {
				want[k] = string(v)
			}
		}
		if rest != nil {
			checkMembers(t, rest, want)
		} else if len(want) > 0 {
			t.Fatalf("lost %q", want)
		}
		want[keyProtocolVersion], want[keyProgressToken] = `"v"`, "1"
		checkMembers(t, out, want)
	})
}
