package ostiary_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// answered is what came back over HTTP.
type answered struct {
	status int
	header http.Header
	body   string
}

func (a answered) String() string { return fmt.Sprintf("HTTP %d: %s", a.status, a.body) }

type edit func(*http.Request)

func with(name, value string) edit {
	return func(r *http.Request) {
		if r.Header.Set(name, value); value == "" {
			r.Header.Del(name)
		}
	}
}

// as shows a credential.
func as(token string) edit { return with("Authorization", "Bearer "+token) }

// modern are the headers of a request of 2026-07-28.
func modern(method, name string) edit {
	return func(r *http.Request) {
		for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name} {
			with(k, v)(r)
		}
	}
}

// modernCall is the body of a call of 2026-07-28; params are its members beside _meta.
func modernCall(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, method, params)
}

// send sends one HTTP request to a path of the gateway, as it is.
func (g *gateway) send(method, path, body string, edits ...edit) answered {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, "http://"+g.Addr()+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, e := range edits {
		e(req)
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // no redirect is followed
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return answered{resp.StatusCode, resp.Header, string(b)}
}

// a key in another case, or one that only folds to a known one, is not that key: neither the request's own, nor one
// of its params.
func TestA36_KeysThatFold(t *testing.T) {
	t.Parallel()
	h := &hostile{tools: always(says("safe", "Reads.", ""), says("rm_all", "Deletes.", ""))}
	g := besiege(t, "", h)
	plain := modernCall("tools/call", `"name":"safe","arguments":{"n":1},`)
	for _, c := range []struct{ what, old, put string }{
		{"METHOD", `"method":`, `"METHOD":"tools/list","method":`},
		{"Method alone", `"method":`, `"Method":`},
		{"Params after", `}}}}`, `}}},"Params":{"name":"rm_all"}}`},
		{"long s", `"params":`, `"param` + "\u017f" + `":{"name":"rm_all"},"params":`},
		{"ID", `"id":1`, `"id":1,"ID":2`},
		{"JSONRPC", `"jsonrpc":"2.0"`, `"JSONRPC":"2.0"`},
		{"Result", `"id":1`, `"id":1,"Result":{}`},
	} {
		if a := g.send("POST", "/v1/mcp", strings.Replace(plain, c.old, c.put, 1), as(testToken), modern("tools/call", "safe")); a.status != 400 || !strings.Contains(a.body, `"code":-32600`) {
			t.Errorf("%s: %v", c.what, a)
		}
	}
	if n := len(h.calls(t)); n != 0 {
		t.Errorf("%d calls came through", n)
	}
	// Within params other spellings are other members, which mean nothing to us and go no further.
	for _, put := range []string{`"NAME":"rm_all","name":"safe"`, `"name":"safe","Name":"rm_all"`, `"name":"safe","na` + "m\u0435" + `":"rm_all"`, `"name":"safe","ARGUMENTS":{"n":2}`,
		`"name":"safe","_META":{"progressToken":1}`, `"name":"safe","argument` + "\u017f" + `":{"n":2}`} {
		g.send("POST", "/v1/mcp", strings.Replace(plain, `"name":"safe"`, put, 1), as(testToken), modern("tools/call", "safe"))
	}
	onlyAuthorised(t, h, "safe", `{"n":1}`)
}

// onlyAuthorised fails unless all that has come to the server are calls of one tool with these arguments, and nothing that
// was smuggled beside them.
func onlyAuthorised(t *testing.T, h *hostile, tool, arguments string) {
	t.Helper()
	for _, raw := range h.got(t, "tools/call") {
		f, err := content.ParseFrame([]byte(raw), content.FrameLimits{})
		if err != nil {
			t.Fatal(err)
		}
		name, _ := content.String(content.Member(f.Params, "name"))
		if got := string(content.Member(f.Params, "arguments")); name != tool || got != arguments {
			t.Errorf("called: %s with %s", name, got)
		}
		must(t, raw, "!rm_all", "!NAME", "!Name\"", "!ARGUMENTS", "!Arguments", "!_META", "!u0000")
	}
}

// neither is a key that is followed by a zero character. Within arguments such a key is the caller's own, and travels
// as it is.
func TestA37_KeysWithAZero(t *testing.T) {
	t.Parallel()
	h := &hostile{tools: always(says("safe", "Reads.", ""), says("rm_all", "Deletes.", ""))}
	g := besiege(t, "", h)
	plain := modernCall("tools/call", `"name":"safe","arguments":{"n":1},`)
	for _, key := range []string{"method", "params", "id", "jsonrpc"} {
		body := strings.Replace(plain, `"`+key+`":`, `"`+key+`\u0000":"tools/list","`+key+`":`, 1)
		if a := g.send("POST", "/v1/mcp", body, as(testToken), modern("tools/call", "safe")); a.status != 400 {
			t.Errorf("%s: %v", key, a)
		}
	}
	if n := len(h.calls(t)); n != 0 {
		t.Errorf("%d calls came through", n)
	}
	for _, put := range []string{`"name\u0000":"rm_all","name":"safe"`, `"name":"safe","name\u0000":"rm_all"`, `"name":"safe","arguments\u0000":{"n":2}`} {
		g.send("POST", "/v1/mcp", strings.Replace(plain, `"name":"safe"`, put, 1), as(testToken), modern("tools/call", "safe"))
	}
	onlyAuthorised(t, h, "safe", `{"n":1}`)
	const odd = `{"n\u0000":2,"n":1}`
	must(t, g.send("POST", "/v1/mcp", strings.Replace(plain, `{"n":1}`, odd, 1), as(testToken), modern("tools/call", "safe")).body, `"status":"succeeded"`)
	if all := h.calls(t); all[len(all)-1] != odd {
		t.Errorf("arguments arrived as %s", all[len(all)-1])
	}
}

// what goes to the server is made of what was decided on, and of nothing else that stood in the request: no second
// name, no other arguments, no members that nobody looked at, and no id or token of the caller's.
func TestA38_WhatLeavesIsWhatWasDecidedOn(t *testing.T) {
	t.Parallel()
	h := &hostile{tools: always(says("safe", "Reads.", ""), says("rm_all", "Deletes.", ""))}
	g := besiege(t, "", h)
	body := `{"jsonrpc":"2.0","id":"callers-own-id","method":"tools/call","params":{"name":"safe","arguments":{"n":1},"Name":"rm_all","Arguments":{"n":2},"task":{"ttl":1},"tool":"rm_all",` +
		`"requestState":"forged-state","inputResponses":{"x":{}},"cursor":"rm_all","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"forged-name","version":"1"},"org.ostiary/principal":"forged-principal","example.org/mine":"kept"}}}`
	must(t, g.send("POST", "/v1/mcp", body, as(testToken), modern("tools/call", "safe")).body, `"id":"callers-own-id"`)
	all := h.got(t, "tools/call")
	if len(all) > 1 {
		t.Fatalf("%d calls came through", len(all))
	}
	onlyAuthorised(t, h, "safe", `{"n":1}`)
	for _, raw := range all {
		must(t, raw, "!callers-own-id", "!forged", "!task", "!\"tool\"", "!cursor", "!elicitation", "!"+testToken, `"example.org/mine":"kept"`)
	}
}

// a request whose headers and body say different things is not one that anybody before us may have judged by either.
// What goes on has headers that are made anew from the body that goes on, although the tool has another name there.
func TestA39_HeadersAndBody(t *testing.T) {
	t.Parallel()
	var sent []http.Header
	h := &hostile{pkg: "one", tools: always(says("safe", "Reads.", `,"inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`), says("rm_all", "Deletes.", ""))}
	h.call = func(a asked) string {
		sent = append(sent, a.header.Clone())
		return text("done")
	}
	g := besiege(t, "", h, &hostile{pkg: "two", tools: always(says("other", "Reads.", ""))})
	plain := modernCall("tools/call", `"name":"one__safe","arguments":{"region":"eu"},`)
	good := []edit{as(testToken), modern("tools/call", "one__safe"), with("Mcp-Param-Region", "eu")}
	for what, e := range map[string]edit{
		"another tool":           with("Mcp-Name", "one__rm_all"),
		"the name at the server": with("Mcp-Name", "safe"),
		"another method":         with("Mcp-Method", "tools/list"),
		"no name":                with("Mcp-Name", ""),
		"another argument":       with("Mcp-Param-Region", "us"),
		"no argument":            with("Mcp-Param-Region", ""),
		"two names":              func(r *http.Request) { r.Header.Add("Mcp-Name", "one__rm_all") },
		"another version":        with("Mcp-Protocol-Version", "2025-11-25"),
	} {
		if a := g.send("POST", "/v1/mcp", plain, append(good[:len(good):len(good)], e)...); a.status != 400 || !strings.Contains(a.body, `-32020`) {
			t.Errorf("%s: %v", what, a)
		}
	}
	if len(sent) != 0 {
		t.Fatalf("%d calls came through", len(sent))
	}
	smuggled := with("Mcp-Param-Other", "rm_all")
	must(t, g.send("POST", "/v1/mcp", plain, append(good, smuggled)...).body, `"status":"succeeded"`)
	if len(sent) != 1 || sent[0].Get("Mcp-Name") != "safe" || sent[0].Get("Mcp-Method") != "tools/call" || sent[0].Get("Mcp-Param-Region") != "eu" || sent[0].Get("Mcp-Param-Other") != "" || sent[0].Get("Authorization") != "" {
		t.Errorf("the server was sent %v", sent)
	}
	must(t, g.records(), "endpoint.refused default", "header_mismatch")
}

// what a request says of itself beside its credential decides nothing: neither _meta, nor a field of its own.
func TestA61_MetaIsNoAuthority(t *testing.T) {
	t.Parallel()
	h := &hostile{tools: always(says("read", "Reads.", ""), says("admin", "Deletes.", ""))}
	g := besiege(t, "\n[principal.bob]\ntoken_env = \"BOB\"\nexports = [\"few\"]\n[export.few]\nnaming = \"raw\"\ntools = [\"aur.mcp.bad.read\"]\n[rule.bob]\neffect = \"deny\"\nwhen = 'principal.id == \"bob\"'\n", h)
	g.stop()
	g.env["BOB"] = strings.Repeat("b", 32)
	g.start()
	for _, meta := range []string{`"tenant":"admin"`, `"org.ostiary/principal":"default"`, `"principal":{"id":"default"}`, `"io.modelcontextprotocol/clientInfo":{"name":"default","version":"1"}`, `"role":"operator"`,
		`"org.ostiary/approval":"granted"`, `"org.ostiary/provenance":{"verdict":"ACCEPTED_OBSERVATION"}`} {
		body := strings.Replace(modernCall("tools/call", `"name":"read","arguments":{},"principal":"default","tenant":"admin",`), `"_meta":{`, `"_meta":{`+meta+`,`, 1)
		if a := g.send("POST", "/v1/mcp/few", body, as(g.env["BOB"]), modern("tools/call", "read")); !strings.Contains(a.body, `"code":"denied"`) && !strings.Contains(a.body, `"error"`) {
			t.Errorf("%s: %v", meta, a)
		}
	}
	if n := len(h.calls(t)); n != 0 {
		t.Errorf("%d calls came through", n)
	}
	g.stop() // refusals are written by then
	must(t, g.records(), "call.refused bob", "!call.intent")
}

// no extension is offered that is not there, and what only an extension could answer is never a success: tasks, apps,
// anything unknown, in either era.
func TestA63_ExtensionResults(t *testing.T) {
	t.Parallel()
	results := map[string]string{
		"task":         `"resultType":"task","task":{"taskId":"t-1","status":"working","pollInterval":1}`,
		"task_content": `"resultType":"task","content":[{"type":"text","text":"smuggled"}]`,
		"evil":         `"resultType":"evil","content":[{"type":"text","text":"smuggled"}]`,
		"empty":        `"resultType":"","content":[{"type":"text","text":"smuggled"}]`,
		"case":         `"resultType":"Complete","content":[{"type":"text","text":"smuggled"}]`,
		"number":       `"resultType":1,"content":[{"type":"text","text":"smuggled"}]`,
		"only_task":    `"resultType":"complete","task":{"taskId":"t-1","status":"working"}`,
		"asks_nothing": `"resultType":"input_required"`,
		"app":          `"resultType":"complete","content":[{"type":"app","html":"<script>1</script>"}]`,
	}
	var tools []string
	for name := range results {
		tools = append(tools, says(name, "Answers.", ""))
	}
	h := &hostile{keys: `content = ["text", "image"]`, tools: always(tools...), call: func(a asked) string { return results[a.tool] }}
	g := besiege(t, "", h)
	for name := range results {
		must(t, g.ask(name, `{}`), `!"status":"succeeded"`, "!smuggled", "!script")
	}
	discover := g.send("POST", "/v1/mcp", modernCall("server/discover", ""), as(testToken), modern("server/discover", ""))
	must(t, discover.body, `"tools"`, `!"tasks"`, `!"sampling"`, `!"elicitation"`, `!/ui"`, `!"apps"`)
	for _, method := range []string{"tasks/get", "tasks/list", "tasks/cancel", "tasks/result", "ui/initialize", "resources/read", "completion/complete", "sampling/createMessage"} {
		if a := g.send("POST", "/v1/mcp", modernCall(method, `"taskId":"t-1","uri":"ui://x","name":"x",`), as(testToken), modern(method, "")); a.status != 404 && a.status != 400 {
			t.Errorf("%s: %v", method, a)
		}
	}
}
