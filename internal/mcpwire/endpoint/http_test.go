package endpoint

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
)

// Each row breaks one rule of the HTTP front. None may reach the caller.
func TestHTTPRules(t *testing.T) {
	called := false
	f := serve(t, func(ctx context.Context, r call.Request) call.Reply { called = true; return echo(ctx, r) }, func(o *Options) {
		o.MaxBody = 4096
		o.Exports[0].Tools = []Tool{echoTool(), tool("näme", `{"name":"näme","inputSchema":{"type":"object"}}`),
			tool("mirror", `{"name":"mirror","inputSchema":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"},"s":{"type":"string","x-mcp-header":"S"}}}}`)}
	})
	call := modernBody("1", "tools/call", `"name":"echo","arguments":{}`, "")
	good := modernHeaders("tools/call", "echo")
	mirror := func(args string) string {
		return modernBody("1", "tools/call", `"name":"mirror","arguments":`+args, "")
	}
	mirrored := modernHeaders("tools/call", "mirror")
	for _, c := range []struct {
		name, method, body string
		edits              []edit
		status             int
		code               string // of the JSON-RPC error; "" for a body that is none
	}{
		{"S-031 evil origin", "POST", call, []edit{good, set("Origin", "https://evil")}, 403, "-32600"},
		{"S-031 null origin", "POST", call, []edit{good, set("Origin", "null")}, 403, "-32600"},
		{"S-031 look-alike origin", "POST", call, []edit{good, set("Origin", "http://localhost.evil")}, 403, "-32600"},
		{"S-031 evil origin on GET", "GET", "", []edit{set("Origin", "https://evil")}, 403, "-32600"},
		{"A-42 rebound host", "POST", call, []edit{good, func(r *http.Request) { r.Host = "rebind.evil" }}, 403, "-32600"},
		{"F-48 cross-site without origin", "POST", call, []edit{good, set("Sec-Fetch-Site", "cross-site")}, 403, "-32600"},
		{"F-48 preflight", "OPTIONS", "", nil, 405, "-32600"},
		{"F-48 PUT", "PUT", call, []edit{good}, 405, "-32600"},
		{"S-050 GET without a session", "GET", "", nil, 405, "-32600"},
		{"S-050 modern GET", "GET", "", []edit{set("MCP-Protocol-Version", "2026-07-28"), set("Mcp-Session-Id", "x")}, 405, "-32600"},
		{"S-050 modern DELETE", "DELETE", "", []edit{set("MCP-Protocol-Version", "2026-07-28"), set("Mcp-Session-Id", "x")}, 405, "-32600"},
		{"R10.1 no token", "POST", call, []edit{good, del("Authorization")}, 401, ""},
		{"R10.1 bad token", "POST", call, []edit{good, set("Authorization", "Bearer nonsense")}, 401, ""},
		{"R10.1 no token on GET", "GET", "", []edit{del("Authorization"), set("Mcp-Session-Id", "x")}, 401, ""},
		{"F-47 token in the query", "POST", call, []edit{good, func(r *http.Request) { r.URL.RawQuery = "access_token=" + aliceToken }}, 400, ""},
		{"F-48 text/plain", "POST", call, []edit{good, set("Content-Type", "text/plain")}, 415, "-32600"},
		{"F-48 form", "POST", call, []edit{good, set("Content-Type", "application/x-www-form-urlencoded")}, 415, "-32600"},
		{"no content type", "POST", call, []edit{good, del("Content-Type")}, 415, "-32600"},
		{"two content types", "POST", call, []edit{good, add("Content-Type", "text/plain")}, 415, "-32600"},
		{"compressed", "POST", call, []edit{good, set("Content-Encoding", "gzip")}, 415, "-32600"},
		{"charset", "POST", call, []edit{good, set("Content-Type", "application/json; charset=utf-16")}, 415, "-32600"},
		{"F-46 too large", "POST", `{"a":"` + strings.Repeat("a", 5000) + `"}`, []edit{good}, 413, "-32600"},
		{"F-46 too large without a length", "POST", `{"a":"` + strings.Repeat("a", 5000) + `"}`, []edit{good, func(r *http.Request) { r.ContentLength = -1 }}, 413, "-32600"},
		{"empty", "POST", "", []edit{good}, 400, "-32700"},
		{"no JSON", "POST", "{", []edit{good}, 400, "-32700"},
		{"A-36 folded key", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","METHOD":"tools/call"}`, []edit{good}, 400, "-32600"},
		{"A-37 NUL key", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","method\u0000":"tools/call"}`, []edit{good}, 400, "-32600"},
		{"duplicate key", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}`, []edit{good}, 400, "-32700"},
		{"S-001 null id", "POST", `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, []edit{good}, 400, "-32600"},
		{"R10.2 batch", "POST", "[" + call + "]", nil, 400, "-32600"},
		{"R10.2 modern batch", "POST", "[" + call + "]", []edit{good}, 400, "-32600"},
		{"response", "POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, []edit{good}, 400, "-32600"},
		{"S-036 no version header", "POST", call, []edit{good, del("MCP-Protocol-Version")}, 400, "-32020"},
		{"S-036 version header of another era", "POST", call, []edit{good, set("MCP-Protocol-Version", "2025-11-25")}, 400, "-32020"},
		{"S-036 version header mismatch", "POST", call, []edit{good, set("MCP-Protocol-Version", "2027-01-01")}, 400, "-32020"},
		{"S-036 two version headers", "POST", call, []edit{good, add("MCP-Protocol-Version", "2026-07-28")}, 400, "-32020"},
		{"S-037 no method header", "POST", call, []edit{good, del("Mcp-Method")}, 400, "-32020"},
		{"S-037 method mismatch", "POST", call, []edit{good, set("Mcp-Method", "tools/list")}, 400, "-32020"},
		{"S-038 method in another case", "POST", call, []edit{good, set("Mcp-Method", "Tools/Call")}, 400, "-32020"},
		{"S-037 two method headers", "POST", call, []edit{good, add("Mcp-Method", "tools/call")}, 400, "-32020"},
		{"S-037 no name header", "POST", call, []edit{good, del("Mcp-Name")}, 400, "-32020"},
		{"S-037 name mismatch", "POST", call, []edit{good, set("Mcp-Name", "safe_tool")}, 400, "-32020"},
		{"S-037 two name headers", "POST", call, []edit{good, add("Mcp-Name", "echo")}, 400, "-32020"},
		{"S-037 bad base64", "POST", call, []edit{good, set("Mcp-Name", "=?base64?!!?=")}, 400, "-32020"},
		{"S-037 other name in base64", "POST", call, []edit{good, set("Mcp-Name", "=?base64?cm1fYWxs?=")}, 400, "-32020"},
		{"S-044 mirror missing", "POST", mirror(`{"n":1}`), []edit{mirrored}, 400, "-32020"},
		{"S-044 mirror mismatch", "POST", mirror(`{"n":1}`), []edit{mirrored, set("Mcp-Param-N", "2")}, 400, "-32020"},
		{"S-044 mirror without a value", "POST", mirror(`{}`), []edit{mirrored, set("Mcp-Param-N", "2")}, 400, "-32020"},
		{"S-044 mirror twice", "POST", mirror(`{"n":1}`), []edit{mirrored, set("Mcp-Param-N", "1"), add("Mcp-Param-N", "1")}, 400, "-32020"},
		{"S-044 bad characters", "POST", mirror(`{"s":"ä"}`), []edit{mirrored, set("Mcp-Param-S", "ä")}, 400, "-32020"},
		{"S-039 unsupported version", "POST", strings.ReplaceAll(call, "2026-07-28", "2027-01-01"), []edit{good, set("MCP-Protocol-Version", "2027-01-01")}, 400, "-32022"},
		{"S-039 ancient version", "POST", strings.ReplaceAll(call, "2026-07-28", "1900-01-01"), []edit{good, set("MCP-Protocol-Version", "1900-01-01")}, 400, "-32022"},
		{"S-007 no _meta", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, []edit{modernHeaders("tools/list", "")}, 400, "-32602"},
		{"S-007 no params", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []edit{modernHeaders("tools/list", "")}, 400, "-32602"},
		{"S-007 no version", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}}`, []edit{modernHeaders("tools/list", "")}, 400, "-32602"},
		{"S-007 no capabilities", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, []edit{modernHeaders("tools/list", "")}, 400, "-32602"},
		{"S-007 capabilities of a wrong type", "POST", strings.Replace(call, `Capabilities":{}`, `Capabilities":[]`, 1), []edit{good}, 400, "-32602"},
		{"unknown log level", "POST", modernBody("1", "tools/call", `"name":"echo"`, `"io.modelcontextprotocol/logLevel":"loud"`), []edit{good}, 400, "-32602"},
		{"progress token of a wrong type", "POST", modernBody("1", "tools/call", `"name":"echo"`, `"progressToken":{}`), []edit{good}, 400, "-32602"},
		{"S-039 unknown method", "POST", modernBody("1", "tools/delete", "", ""), []edit{modernHeaders("tools/delete", "")}, 404, "-32601"},
		{"removed: initialize", "POST", modernBody("1", "initialize", "", ""), []edit{modernHeaders("initialize", "")}, 404, "-32601"},
		{"removed: ping", "POST", modernBody("1", "ping", "", ""), []edit{modernHeaders("ping", "")}, 404, "-32601"},
		{"removed: logging/setLevel", "POST", modernBody("1", "logging/setLevel", "", ""), []edit{modernHeaders("logging/setLevel", "")}, 404, "-32601"},
		{"not offered: resources/list", "POST", modernBody("1", "resources/list", "", ""), []edit{modernHeaders("resources/list", "")}, 404, "-32601"},
		{"not offered: completion", "POST", modernBody("1", "completion/complete", "", ""), []edit{modernHeaders("completion/complete", "")}, 404, "-32601"},
		{"arguments of a wrong type", "POST", modernBody("1", "tools/call", `"name":"echo","arguments":[]`, ""), []edit{good}, 400, "-32602"},
		{"no tool name", "POST", modernBody("1", "tools/call", "", ""), []edit{good}, 400, "-32602"},
		{"unknown tool", "POST", modernBody("1", "tools/call", `"name":"rm"`, ""), []edit{modernHeaders("tools/call", "rm")}, 200, "-32602"},
		{"bad cursor", "POST", modernBody("1", "tools/list", `"cursor":"AAAA"`, ""), []edit{modernHeaders("tools/list", "")}, 200, "-32602"},
		{"cursor of a wrong type", "POST", modernBody("1", "tools/list", `"cursor":1`, ""), []edit{modernHeaders("tools/list", "")}, 200, "-32602"},
		{"listen without a filter", "POST", modernBody("1", "subscriptions/listen", "", ""), []edit{modernHeaders("subscriptions/listen", "")}, 400, "-32602"},
		{"listen for a number", "POST", modernBody("1", "subscriptions/listen", `"notifications":{"toolsListChanged":1}`, ""), []edit{modernHeaders("subscriptions/listen", "")}, 400, "-32602"},
		{"R10.2 initialize with a session", "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, []edit{set("Mcp-Session-Id", "x")}, 400, "-32600"},
		{"R10.2 no session", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil, 400, "-32600"},
		{"R10.2 unknown session", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []edit{set("Mcp-Session-Id", "x")}, 404, "-32600"},
		{"R10.2 two sessions", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []edit{set("Mcp-Session-Id", "x"), add("Mcp-Session-Id", "y")}, 400, "-32600"},
		{"legacy initialize without a version", "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, nil, 200, "-32602"},
		{"unknown session on GET", "GET", "", []edit{set("Mcp-Session-Id", "x")}, 404, "-32600"},
		{"unknown session on DELETE", "DELETE", "", []edit{set("Mcp-Session-Id", "x")}, 404, "-32600"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := f.do(c.method, c.body, c.edits...)
			if got.status != c.status || got.at("error", "code") != c.code {
				t.Errorf("got %v\nwant %d with %s", got, c.status, c.code)
			}
			if c.status == 401 && !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("WWW-Authenticate: %q", got.header.Get("WWW-Authenticate"))
			}
			if c.status == 405 && got.header.Get("Allow") == "" {
				t.Error("no Allow")
			}
			if got.header.Get("Mcp-Session-Id") != "" {
				t.Error("a session was made")
			}
		})
	}
	if called {
		t.Error("a refused request reached the caller")
	}
}

// Each row is odd but allowed.
func TestHTTPTolerance(t *testing.T) {
	f := serve(t, echo, withTools(echoTool(), tool("näme", `{"name":"näme","inputSchema":{"type":"object"}}`),
		tool("mirror", `{"name":"mirror","inputSchema":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"},"s":{"type":"string","x-mcp-header":"S"}}}}`)))
	good := modernHeaders("tools/call", "echo")
	for _, c := range []struct {
		name, body string
		edits      []edit
		status     int
	}{
		{"plain", modernBody("1", "tools/call", `"name":"echo"`, ""), []edit{good}, 200},
		{"same origin", modernBody("1", "tools/call", `"name":"echo"`, ""), []edit{good, func(r *http.Request) { r.Header.Set("Origin", "http://"+r.URL.Host) }}, 200},
		{"charset", modernBody("1", "tools/call", `"name":"echo"`, ""), []edit{good, set("Content-Type", "Application/JSON; charset=UTF-8")}, 200},
		{"JSON alone", modernBody("1", "tools/call", `"name":"echo"`, `"progressToken":1`), []edit{good, set("Accept", "application/json")}, 200},
		{"no Accept", modernBody("1", "tools/call", `"name":"echo"`, ""), []edit{good, del("Accept")}, 200},
		{"S-050 session id and last event id are ignored", modernBody("1", "tools/call", `"name":"echo"`, ""), []edit{good, set("Mcp-Session-Id", "x"), set("Last-Event-ID", "1")}, 200},
		{"S-037 name in base64", modernBody("1", "tools/call", `"name":"näme"`, ""), []edit{modernHeaders("tools/call", "=?base64?bsOkbWU=?=")}, 200},
		{"S-037 plain name in base64", modernBody("1", "tools/call", `"name":"echo"`, ""), []edit{modernHeaders("tools/call", "=?base64?ZWNobw==?=")}, 200},
		{"S-044 integer as a number", modernBody("1", "tools/call", `"name":"mirror","arguments":{"n":42}`, ""), []edit{modernHeaders("tools/call", "mirror"), set("Mcp-Param-N", "42.0")}, 200},
		{"S-044 null has no header", modernBody("1", "tools/call", `"name":"mirror","arguments":{"n":null}`, ""), []edit{modernHeaders("tools/call", "mirror")}, 200},
		{"S-044 empty string", modernBody("1", "tools/call", `"name":"mirror","arguments":{"s":""}`, ""), []edit{modernHeaders("tools/call", "mirror"), set("Mcp-Param-S", "=?base64??=")}, 200},
		{"S-045 unknown mirror", modernBody("1", "tools/call", `"name":"echo"`, ""), []edit{good, set("Mcp-Param-Other", "x")}, 200},
		{"S-035 notification", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, []edit{set("MCP-Protocol-Version", "2026-07-28")}, 202},
		{"mcp-remote says Mcp-Method on a legacy initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, []edit{set("Mcp-Method", "initialize")}, 200},
		{"an initialize of a later revision", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":1,"version":[]}}}`, nil, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := f.do("POST", c.body, c.edits...)
			if got.status != c.status || got.status == 200 && got.at("result") == "" || got.status == 202 && got.body != "" {
				t.Errorf("got %v, want %d", got, c.status)
			}
		})
	}
}

// F-46, L-5: bounds on calls, for one principal and in all; what is beyond them is told to the model, and ends with the
// call that was in the way.
func TestF46_CallsAreBounded(t *testing.T) {
	release, entered := make(chan struct{}), make(chan struct{}, 8)
	f := serve(t, func(ctx context.Context, r call.Request) call.Reply {
		entered <- struct{}{}
		<-release
		return echo(ctx, r)
	}, func(o *Options) { o.MaxConcurrent, o.MaxConcurrentPerPrincipal = 2, 1 })
	done := make(chan reply, 2)
	bob := set("Authorization", "Bearer "+bobToken)
	go func() { done <- f.modernCall("{}", "") }()
	<-entered
	over := f.modernCall("{}", "")
	if over.at("result", "isError") != "true" || over.at("result", "_meta", "org.ostiary/outcome", "code") != `"overloaded"` || over.at("result", "_meta", "org.ostiary/outcome", "delivery") != `"not_sent"` {
		t.Errorf("beyond one principal's bound: %v", over)
	}
	go func() { done <- f.modernCall("{}", "", bob) }()
	<-entered
	close(release)
	for range 2 {
		if r := <-done; r.at("result", "isError") != "" {
			t.Errorf("a call within the bound: %v", r)
		}
	}
	if r := f.modernCall("{}", ""); r.at("result", "isError") != "" {
		t.Errorf("after the others: %v", r)
	}
}

// F-64: a panic on the path is an error of that one call, in either era, and its value is not shown.
func TestF64_PanicOnThePath(t *testing.T) {
	f := serve(t, func(ctx context.Context, r call.Request) call.Reply {
		if r.Arguments != nil {
			panic("secret: " + string(r.Arguments))
		}
		return echo(ctx, r)
	})
	session := f.initialize("2025-11-25")
	if got := f.modernCall(`{"a":1}`, ""); got.status != 500 || got.at("error", "code") != "-32603" || strings.Contains(got.body, "secret") {
		t.Errorf("modern: %v", got)
	}
	const legacy = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"%s}}`
	if got := f.do("POST", fmt.Sprintf(legacy, `,"arguments":{"a":1}`), session...); got.at("error", "code") != "-32603" || strings.Contains(got.body, "secret") {
		t.Errorf("legacy: %v", got)
	}
	if got := f.do("POST", fmt.Sprintf(legacy, ""), session...); got.at("result") == "" {
		t.Errorf("after the panic: %v", got)
	}
	if strings.Contains(f.logs.String(), "secret") {
		t.Error("the log shows what the panic said")
	}
}

// R10.8: an export exists for those who may use it, and for others it is like one that does not.
func TestR10_8_ExportsHavePrincipals(t *testing.T) {
	f := serve(t, echo, func(o *Options) {
		o.Exports[0].Principals = map[string]bool{"alice": true}
		o.Exports = append(o.Exports, Export{Name: "other", Path: "/v1/mcp/other", Tools: []Tool{tool("two", `{"name":"two","inputSchema":{"type":"object"}}`)}})
	})
	bob := set("Authorization", "Bearer "+bobToken)
	denied := f.modernCall("{}", "", bob)
	f.url = f.http.URL + "/nowhere"
	absent := f.modernCall("{}", "", bob)
	if denied.status != 404 || denied.body != absent.body || absent.status != 404 {
		t.Errorf("denied %v\nabsent %v", denied, absent)
	}
	f.url = f.http.URL + "/v1/mcp/other"
	got := f.modern("tools/list", "", "", "", bob)
	if got.status != 200 || !strings.Contains(got.at("result", "tools"), `"two"`) || strings.Contains(got.body, `"echo"`) {
		t.Errorf("R10.3, the other export: %v", got)
	}
	if got := f.modern("tools/call", "echo", `"name":"echo"`, "", bob); got.at("error", "message") != `"Unknown tool: \"echo\""` {
		t.Errorf("a tool of another export: %v", got)
	}
}

// S-118: somebody else's session is as absent as one that never was.
func TestS118_SessionsBelongToTheirPrincipal(t *testing.T) {
	f := serve(t, echo)
	session := f.initialize("2025-11-25")
	bob := append(session, set("Authorization", "Bearer "+bobToken))
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	stolen, absent := f.do("POST", list, bob...), f.do("POST", list, set("Mcp-Session-Id", "nope"))
	if stolen.status != 404 || stolen.body != absent.body {
		t.Errorf("stolen %v\nabsent %v", stolen, absent)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if got := f.do(method, "", bob...); got.status != 404 {
			t.Errorf("%s: %v", method, got)
		}
	}
	if got := f.do("POST", list, session...); got.at("result") == "" {
		t.Errorf("its own principal: %v", got)
	}
	if got := f.do("DELETE", "", session...); got.status != 204 {
		t.Errorf("DELETE: %v", got)
	}
	if got := f.do("POST", list, session...); got.status != 404 {
		t.Errorf("after DELETE: %v", got)
	}
}

// Sessions are bounded: the principal's own idle ones make room, nobody else's.
func TestSessionsAreBounded(t *testing.T) {
	f := serve(t, echo, func(o *Options) { o.MaxSessions = 2 })
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	bob := set("Authorization", "Bearer "+bobToken)
	first, second := f.initialize("2025-11-25"), f.initialize("2025-11-25")
	f.do("POST", list, first...) // now the second is the one that idles longest
	third := f.initialize("2025-11-25")
	for i, c := range []struct {
		session []edit
		status  int
	}{{first, 200}, {second, 404}, {third, 200}} {
		if got := f.do("POST", list, c.session...); got.status != c.status {
			t.Errorf("session %d: %v, want %d", i+1, got, c.status)
		}
	}
	init := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	if got := f.do("POST", init, bob); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("bob, without room: %v", got)
	}
}

// A session ends when it is idle, but not while its client listens.
func TestSessionTimeout(t *testing.T) {
	f := serve(t, echo, func(o *Options) { o.SessionTimeout = 100 * time.Millisecond })
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	idle, listening := f.initialize("2025-11-25"), f.initialize("2025-11-25")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp := f.open(ctx, "GET", "", listening...)
	defer resp.Body.Close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if len(f.exports["default"].legacy.sessionIDs()) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the idle session did not end")
		}
	}
	if got := f.do("POST", ping, idle...); got.status != 404 {
		t.Errorf("idle: %v", got)
	}
	if got := f.do("POST", ping, listening...); got.status != 200 {
		t.Errorf("listening: %v", got)
	}
}

func (l *legacy) sessionIDs() []string {
	l.sessions.mu.Lock()
	defer l.sessions.mu.Unlock()
	var ids []string
	for id := range l.sessions.byID {
		ids = append(ids, id)
	}
	return ids
}

// F-52, R6.9: what a client says is quoted and cut in the log, and its values and credentials are not there at all.
func TestF52_LogInjection(t *testing.T) {
	var told []string
	f := serve(t, echo, func(o *Options) {
		o.OnRefused = func(kind, principal, detail string) { told = append(told, kind+" "+principal+" "+detail) }
	})
	name := "x\r\nlevel=ERROR msg=\"forged\"\x1b[31m" + strings.Repeat("A", 5000)
	got := f.modern("tools/call", "=?base64?"+"eA0K"+"?=", `"name":"echo","arguments":{"password":"hunter2-value"}`, "")
	if got.at("error", "code") != "-32020" {
		t.Fatalf("mismatch: %v", got)
	}
	session := f.initialize("2025-11-25")
	got = f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":`+jsonString(name)+`,"arguments":{"password":"hunter2-value"}}}`, session...)
	if msg := got.at("error", "message"); got.at("error", "code") != "-32602" || !strings.Contains(msg, "Unknown tool") || len(msg) > 600 || strings.Contains(msg, "\x1b") {
		t.Errorf("unknown tool: %v", got)
	}
	logs := f.logs.String()
	for line := range strings.Lines(logs) {
		if len(line) > 2000 || strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\r\n\x1b") {
			t.Errorf("log line of %d bytes: %.200q", len(line), line)
		}
	}
	for _, secret := range []string{"hunter2-value", aliceToken, "\nlevel=ERROR"} {
		if strings.Contains(logs, secret) || strings.Contains(strings.Join(told, "\n"), secret) {
			t.Errorf("%q is in the log or in the ledger", secret)
		}
	}
	if len(told) != 2 || !strings.HasPrefix(told[0], "header_mismatch alice ") || !strings.HasPrefix(told[1], "unknown_tool alice ") {
		t.Errorf("told: %q", told)
	}
}

// R6.9: the caller's credential stops at the edge; nothing below is handed a header.
func TestR6_9_CredentialStopsAtTheEdge(t *testing.T) {
	seen := make(chan call.Request, 2)
	f := serve(t, func(ctx context.Context, r call.Request) call.Reply { seen <- r; return echo(ctx, r) })
	session := f.initialize("2025-11-25")
	f.modernCall("{}", "")
	f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`, session...)
	for range 2 {
		r := <-seen
		if all := fmt.Sprintf("%+v %s %s", r, r.Arguments, r.Meta); strings.Contains(all, aliceToken) || r.Principal.ID != "alice" || r.Export != "default" || r.Tool != "aur.mcp.files.echo" {
			t.Errorf("request: %s", all)
		}
	}
}

// no header selects anything inside, above all not those that the edge uses for itself.
func TestA43_InternalHeadersCannotBeSent(t *testing.T) {
	seen := make(chan call.Request, 1)
	f := serve(t, func(ctx context.Context, r call.Request) call.Reply { seen <- r; return echo(ctx, r) })
	session := append(f.initialize("2025-11-25"), func(r *http.Request) {
		r.Header[edgePrincipal] = []string{"bob"}
		r.Header["Ostiary-Principal"] = []string{"bob"}
	})
	f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}`, session...)
	if r := <-seen; r.Principal.ID != "alice" || string(r.Arguments) != `{"a":1}` {
		t.Errorf("request: %+v", r)
	}
}
