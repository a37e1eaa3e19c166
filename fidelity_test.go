package ostiary_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/internal/exampleserver"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// A value that every lossy step changes: integers beyond 2^53, numbers with a spelling of their own, order, escapes, null.
const fragile = `{"z":9007199254740993,"a":[1.0,1e2,-0,0.10],"n":null,"s":"<\u00e9\ud83d\ude00 >","big":123456789012345678901234567890,"e":{}}`

// client speaks raw JSON-RPC to the gateway in one era.
type client struct {
	t       *testing.T
	url     string
	modern  bool
	session string
	id      int
}

// do sends one request and returns the answer's frame.
func (c *client) do(method, name, members, meta string) content.Frame {
	c.t.Helper()
	c.id++
	if c.modern {
		meta += `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
	}
	params := fmt.Sprintf(`{%s"_meta":{%s}}`, members, strings.TrimPrefix(meta, ","))
	msg := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.id, method, params)
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, strings.NewReader(msg))
	if err != nil {
		c.t.Fatal(err)
	}
	h := map[string]string{"Authorization": "Bearer " + testToken, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
	if c.modern {
		h["Mcp-Protocol-Version"], h["Mcp-Method"] = "2026-07-28", method
		if name != "" {
			h["Mcp-Name"] = name
		}
	} else if c.session != "" {
		h["Mcp-Session-Id"], h["Mcp-Protocol-Version"] = c.session, "2025-11-25"
	}
	for k, v := range h {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		for line := range bytes.Lines(body) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && bytes.Contains(data, fmt.Appendf(nil, `"id":%d`, c.id)) {
				body = bytes.TrimSpace(data)
			}
		}
	}
	f, err := content.ParseFrame(body, content.FrameLimits{})
	if err != nil {
		c.t.Fatalf("%s: HTTP %d: %v: %.300s", method, resp.StatusCode, err, body)
	}
	return f
}

func (c *client) call(name, arguments, meta string) content.Frame {
	c.t.Helper()
	return c.do("tools/call", name, fmt.Sprintf(`"name":%q,"arguments":%s,`, name, arguments), meta)
}

// R1.13, R3.6: what the client receives is what the server sent, byte for byte where it is a value: over both transports,
// from servers of both eras, to clients of both eras.
func TestR1_13_ValuesStayWhatTheyAre(t *testing.T) {
	dir := t.TempDir()
	var tables strings.Builder
	var exports []string
	rich := map[string]string{}
	for _, era := range []exampleserver.Era{exampleserver.EraModern, exampleserver.EraLegacy} {
		up := httptest.NewServer(exampleserver.Handler(exampleserver.Options{Era: era}))
		t.Cleanup(up.Close)
		for transport, how := range map[string]string{
			"http":  fmt.Sprintf("transport = %q\nurl = %q", "http", up.URL+"/mcp"),
			"stdio": fmt.Sprintf("transport = %q\ncommand = %q\nargs = [\"--era\", %q]\nenv = { %s = %q }", "stdio", self(t), era, roleEnv, "example-server"),
		} {
			pkg := transport + "_" + era.String()
			fmt.Fprintf(&tables, "[provider.%s]\n%s\ntrust_tier = \"CONTROLLED_LOCAL\"\nallowed_tools = [\"echo\", \"meta\", \"kinds\", \"refuse\", \"rich\", \"fail\"]\n[provider.%s.policy]\navailable = true\napproval = \"never\"\n", pkg, how, pkg)
			for _, name := range []string{"echo", "meta", "kinds", "refuse", "rich", "fail"} {
				exports = append(exports, fmt.Sprintf("%q", "aur.mcp."+pkg+"."+name))
			}
			rich[pkg] = ""
		}
	}
	fmt.Fprintf(&tables, "[export.default]\nnaming = \"flat\"\ntools = [%s]\n", strings.Join(exports, ", "))
	h := startHost(t, writeConfig(t, dir, tables.String()))

	for _, modern := range []bool{true, false} {
		c := &client{t: t, url: "http://" + h.Addr() + "/v1/mcp", modern: modern}
		if !modern {
			c.do("initialize", "", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"},`, "")
		}
		listed := c.do("tools/list", "", "", "")
		for pkg := range rich {
			t.Run(fmt.Sprintf("%s/modern_client=%v", pkg, modern), func(t *testing.T) {
				c := &client{t: t, url: c.url, modern: modern, session: c.session, id: c.id + 1000}
				f := c.call(pkg+"__echo", fragile, "")
				if got := content.Member(f.Result, "structuredContent"); string(got) != fragile {
					t.Errorf("arguments and structured content:\ngot  %s\nsent %s", got, fragile)
				}
				outcome := content.Member(content.Member(f.Result, "_meta"), "org.ostiary/outcome")
				if !bytes.Contains(outcome, []byte(`"status":"succeeded"`)) {
					t.Errorf("outcome %s", outcome)
				}

				f = c.call(pkg+"__meta", `{}`, `"example.org/v":`+fragile)
				if !bytes.Contains(f.Result, []byte(`"example.org/v":`+fragile)) {
					t.Errorf("_meta: got %s", f.Result)
				}

				f = c.call(pkg+"__kinds", `{"kinds":["hologram","resource_link","text"]}`, "")
				if !bytes.Contains(f.Result, []byte(`"type":"hologram"`)) || !bytes.Contains(f.Result, []byte(`"type":"resource_link"`)) {
					t.Errorf("R3.7: an unknown kind was not passed: %s", f.Result)
				}

				f = c.call(pkg+"__refuse", `{"code":-32042}`, "")
				want := int64(-32042)
				if modern {
					want = -32603 // this revision forbids to emit the other (S-005); the data stays
				}
				if f.Error == nil || f.Error.Code != want || len(f.Error.Data) == 0 || !bytes.Contains(f.Error.Data, []byte("9007199254740993")) {
					t.Errorf("a JSON-RPC error with data: got %+v", f.Error)
				}

				f = c.call(pkg+"__fail", `{"message":"no"}`, "")
				if !bytes.Contains(f.Result, []byte(`"isError":true`)) || !bytes.Contains(f.Result, []byte(`"code":"tool_error"`)) {
					t.Errorf("R3.4: got %s", f.Result)
				}

				var def []byte
				for e := range content.Elements(content.Member(listed.Result, "tools")) {
					if n, _ := content.String(content.Member(e, "name")); n == pkg+"__rich" {
						def = e
					}
				}
				own := ownDefinition(t, "rich")
				if got := string(content.ReplaceMember(nil, def, "name", []byte(`"rich"`))); got != own {
					t.Errorf("a definition:\ngot  %s\nown  %s", got, own)
				}
			})
		}
	}
}

// ownDefinition is a tool's definition as the example server lists it.
func ownDefinition(t *testing.T, name string) string {
	t.Helper()
	srv := httptest.NewServer(exampleserver.Handler(exampleserver.Options{}))
	defer srv.Close()
	c := &client{t: t, url: srv.URL + "/mcp", modern: true}
	for e := range content.Elements(content.Member(c.do("tools/list", "", "", "").Result, "tools")) {
		if n, _ := content.String(content.Member(e, "name")); n == name {
			return string(e)
		}
	}
	t.Fatalf("the example server has no tool %s", name)
	return ""
}
