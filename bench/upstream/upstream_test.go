package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ostiary/ostiary/bench/internal/mcp"
)

func start(t *testing.T, extra, page int) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go newServer("/mcp", extra, page).serve(ln)
	return ln.Addr().String()
}

func client(t *testing.T, addr string, modern bool) *mcp.Client {
	t.Helper()
	c := mcp.NewClient(mcp.Endpoint{Addr: addr, Path: "/mcp", Modern: modern}, 10*time.Second)
	if err := c.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestCallsOfBothEras(t *testing.T) {
	addr := start(t, 0, 0)
	for _, modern := range []bool{true, false} {
		c := client(t, addr, modern)
		calls := map[string]*mcp.Call{
			"echo 5":            c.NewEcho("echo", 5, mcp.Plain),
			"echo 100":          c.NewEcho("echo", 100, mcp.Plain),
			"echo 300000 mixed": c.NewEcho("echo", 300000, mcp.Mixed),
			"blob 0":            c.NewBlob("blob", 0),
			"blob 3000000":      c.NewBlob("blob", 3000000),
			"slow 20":           c.NewSlow("slow", 20),
		}
		for name, call := range calls {
			for id := range int64(3) {
				if _, err := call.Do(1e12 + id); err != nil {
					t.Errorf("modern=%v %s: %v", modern, name, err)
				}
			}
		}
		if _, err := c.NewEcho("nothing", 10, mcp.Plain).Do(1e12); err == nil || !strings.Contains(err.Error(), "unknown tool") {
			t.Errorf("unknown tool: %v", err)
		}
	}
}

// The server stands up to net/http's client, which is how most gateways reach
// it, with bodies of known and of unknown length.
func TestNetHTTPClient(t *testing.T) {
	url := "http://" + start(t, 0, 0) + "/mcp"
	do := func(method string, body io.Reader, header ...string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequest(method, url, body)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if ct := resp.Header.Get("Content-Type"); ct == "application/json" && !json.Valid(b) {
			t.Errorf("not JSON: %s", b)
		}
		return resp, string(b)
	}
	chunked := func(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) }

	resp, b := do("POST", chunked(`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-06-18"}}`))
	session := resp.Header.Get("Mcp-Session-Id")
	if resp.StatusCode != 200 || session == "" || !strings.Contains(b, `"protocolVersion":"2025-06-18"`) || !strings.Contains(b, `"id":"a"`) {
		t.Fatalf("initialize: %d %q %s", resp.StatusCode, session, b)
	}
	long := strings.Repeat("é\\n", 50000)
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%s"}}}`, long)
	cases := []struct {
		name   string
		method string
		body   io.Reader
		header []string
		status int
		want   string
	}{
		{"legacy call", "POST", chunked(call), []string{"Mcp-Session-Id", session}, 200, long},
		{"no session", "POST", strings.NewReader(call), nil, 400, "no such session"},
		{"wrong session", "POST", strings.NewReader(call), []string{"Mcp-Session-Id", "x"}, 404, "no such session"},
		{"notification", "POST", strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), []string{"Mcp-Session-Id", session}, 202, ""},
		{"malformed", "POST", strings.NewReader(`{"jsonrpc":`), nil, 400, "-32700"},
		{"foreign origin", "POST", strings.NewReader(call), []string{"Origin", "https://example.com", "Mcp-Session-Id", session}, 403, "origin"},
		{"local origin", "POST", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), []string{"Origin", "http://localhost:3000", "Mcp-Session-Id", session}, 200, `"result"`},
		{"discover", "POST", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`),
			[]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "server/discover"}, 200, `"supportedVersions":["2026-07-28"`},
		{"headers and body differ", "POST", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`),
			[]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "blob"}, 400, "-32020"},
		{"unknown method", "POST", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x/y","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`),
			[]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "x/y"}, 404, "-32601"},
		{"delete", "DELETE", nil, []string{"Mcp-Session-Id", session}, 200, ""},
		{"deleted", "POST", strings.NewReader(call), []string{"Mcp-Session-Id", session}, 404, "no such session"},
	}
	for _, c := range cases {
		resp, b := do(c.method, c.body, c.header...)
		if resp.StatusCode != c.status || !strings.Contains(b, c.want) {
			t.Errorf("%s: %d %.200s, want %d with %.40s", c.name, resp.StatusCode, b, c.status, c.want)
		}
	}
}

func TestProgressComesBeforeTheAnswer(t *testing.T) {
	c := client(t, start(t, 0, 0), true)
	body := []byte(strings.Replace(string(c.Body("1", "tools/call", `"name":"slow","arguments":{"ms":30,"steps":3}`)), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1))
	r, err := c.Conn.Do(append(c.Head("POST", "tools/call", "slow", len(body)), body...))
	if err != nil || !r.Events {
		t.Fatal(r, err)
	}
	var got []string
	for {
		m, err := c.Conn.Next(r)
		if err == io.EOF {
			break
		}
		if err != nil || !json.Valid(m) {
			t.Fatalf("%s %v", m, err)
		}
		got = append(got, string(m))
	}
	if len(got) != 4 || !strings.Contains(got[0], `"progressToken":"p","progress":1,"total":3`) || !strings.Contains(got[3], "slept 30 ms") {
		t.Errorf("got %q", got)
	}
}

func TestIdleStreams(t *testing.T) {
	addr := start(t, 0, 0)
	c := client(t, addr, true)
	body := c.Body("9", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	r, err := c.Conn.Do(append(c.Head("POST", "subscriptions/listen", "", len(body)), body...))
	if err != nil || !r.Events {
		t.Fatal(r, err)
	}
	if m, err := c.Conn.Next(r); err != nil || !strings.Contains(string(m), `"io.modelcontextprotocol/subscriptionId":9`) {
		t.Errorf("%s %v", m, err)
	}
	l := client(t, addr, false)
	if r, err := l.Conn.Do(l.Head("GET", "", "", 0)); err != nil || r.Status != 200 || !r.Events {
		t.Error(r, err)
	}
}

func TestAdvertisedTools(t *testing.T) {
	c := client(t, start(t, 20, 10), true)
	var names []string
	members := ""
	for range 3 {
		raw, err := c.Request("tools/list", "", members)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
			}
			NextCursor string
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			if strings.HasPrefix(tool.Name, "extra_") && len(tool.InputSchema) != schemaSize {
				t.Errorf("%s: schema of %d bytes", tool.Name, len(tool.InputSchema))
			}
		}
		members = `"cursor":"` + list.NextCursor + `"`
		if list.NextCursor == "" {
			members = ""
		}
	}
	if len(names) != 23 || names[22] != "extra_00020" || members != "" {
		t.Errorf("%d tools, next %q", len(names), members)
	}
}

func TestStdio(t *testing.T) {
	long := strings.Repeat("y", 700_000)
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
{"jsonrpc":"2.0","method":"notifications/initialized"}

{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + long + `"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow","arguments":{"ms":10},"_meta":{"progressToken":5}}}
{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
not json
`
	pr, pw := io.Pipe()
	or, ow := io.Pipe()
	go func() { io.Copy(pw, strings.NewReader(in)); time.Sleep(100 * time.Millisecond); pw.Close() }()
	go func() { newServer("/mcp", 0, 0).serveStdio(pr, ow); ow.Close() }()
	var out bytes.Buffer
	sc := bufio.NewScanner(or)
	sc.Buffer(nil, 1<<20)
	n := 0
	for sc.Scan() {
		if !json.Valid(sc.Bytes()) {
			t.Errorf("not JSON: %.100s", sc.Bytes())
		}
		out.Write(sc.Bytes())
		n++
	}
	if n != 10 { // initialize, echo, discover, parse error, five of progress, slow
		t.Errorf("%d lines", n)
	}
	for _, want := range []string{`"id":1,"result"`, long, `"progressToken":5,"progress":5,"total":5`, "slept 10 ms", `"id":"d","result":{"resultType"`, "-32700"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %.60s", want)
		}
	}
}
