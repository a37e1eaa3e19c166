package endpoint

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/identity"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

const (
	aliceToken = "alice-token-0123456789"
	bobToken   = "bob-token-9876543210xyz"
)

// callerFunc is a path of calls of one step.
type callerFunc func(ctx context.Context, r call.Request) call.Reply

func (f callerFunc) Call(ctx context.Context, r call.Request) call.Reply { return f(ctx, r) }

var okOutcome = call.Outcome{Status: call.Succeeded, Delivery: call.Confirmed, CallID: "c1"}

// echo answers with the arguments and the meta as they arrived.
func echo(_ context.Context, r call.Request) call.Reply {
	o := content.NewObject(nil).Raw("content", []byte("[]"))
	if r.Arguments != nil {
		o.Raw("structuredContent", r.Arguments)
	}
	if r.Meta != nil {
		o.Raw("sawMeta", r.Meta)
	}
	return call.Reply{Outcome: okOutcome, Result: o.End()}
}

func tool(name, definition string) Tool {
	d := &call.Descriptor{ID: call.NewToolID("files", name), Package: "files", RawName: name, Name: name, Definition: []byte(definition)}
	if schema := content.Member(d.Definition, "inputSchema"); schema != nil {
		d.InputSchema = schema
	}
	return Tool{Name: name, Descriptor: d}
}

func echoTool() Tool {
	return tool("echo", `{"name":"echo","description":"says it again","inputSchema":{"type":"object"}}`)
}

// fixture is an endpoint behind a real listener.
type fixture struct {
	*Endpoint
	t    *testing.T
	url  string // of the export "default"
	http *httptest.Server
	logs *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func serve(t *testing.T, caller callerFunc, edit ...func(*Options)) *fixture {
	t.Helper()
	tokens, err := identity.NewTokens([]identity.Credential{{Principal: "alice", Token: aliceToken}, {Principal: "bob", Token: bobToken}})
	if err != nil {
		t.Fatal(err)
	}
	logs := &syncBuffer{}
	o := Options{
		ServerName: "ostiary", ServerVersion: "test", Authenticate: tokens.Authenticate, Caller: caller,
		Exports: []Export{{Name: "default", Path: "/v1/mcp", Instructions: "Be careful.", Tools: []Tool{echoTool()}}},
		Logger:  slog.New(slog.NewJSONHandler(io.MultiWriter(logs, t.Output()), nil)),
	}
	for _, f := range edit {
		f(&o)
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, x := range o.Exports {
		mux.Handle(x.Path, e.Handler(x.Name))
	}
	mux.Handle("/nowhere", e.Handler("nowhere"))
	srv := httptest.NewServer(mux)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = e.Close(ctx) // a test that hangs a call is cancelled here
		srv.CloseClientConnections()
		srv.Close()
	})
	return &fixture{Endpoint: e, t: t, url: srv.URL + "/v1/mcp", http: srv, logs: logs}
}

func withTools(tools ...Tool) func(*Options) {
	return func(o *Options) { o.Exports[0].Tools = tools }
}

// reply is an HTTP answer, read whole.
type reply struct {
	status int
	header http.Header
	body   string
}

// message is the JSON-RPC message of a reply: its body, or the last event of its stream.
func (r reply) message() []byte {
	if strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
		var last []byte
		for line := range strings.Lines(r.body) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				last = []byte(strings.TrimSuffix(data, "\n"))
			}
		}
		return last
	}
	return []byte(r.body)
}

func (r reply) at(path ...string) string {
	b := r.message()
	for _, key := range path {
		b = content.Member(b, key)
	}
	return string(b)
}

func (r reply) String() string { return fmt.Sprintf("%d %v %s", r.status, r.header, r.body) }

type edit func(*http.Request)

func set(name, value string) edit {
	return func(r *http.Request) { r.Header[http.CanonicalHeaderKey(name)] = []string{value} }
}
func add(name, value string) edit { return func(r *http.Request) { r.Header.Add(name, value) } }
func del(name string) edit        { return func(r *http.Request) { r.Header.Del(name) } }

func (f *fixture) do(method, body string, edits ...edit) reply {
	f.t.Helper()
	resp := f.open(f.t.Context(), method, body, edits...)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(b)}
}

func (f *fixture) open(ctx context.Context, method, body string, edits ...edit) *http.Response {
	f.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, f.url, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+aliceToken)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, e := range edits {
		e(r)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		f.t.Fatal(err)
	}
	return resp
}

const modernMetaJSON = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`

// modernBody is a modern request; params are the members beside _meta, meta the members of _meta beside the required ones.
func modernBody(id, method, params, meta string) string {
	if meta != "" {
		meta = "," + meta
	}
	if params != "" {
		params = "," + params
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{"_meta":{` + modernMetaJSON + meta + `}` + params + `}}`
}

func modernHeaders(method, name string) edit {
	return func(r *http.Request) {
		r.Header.Set("MCP-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", method)
		if name != "" {
			r.Header.Set("Mcp-Name", name)
		}
	}
}

func (f *fixture) modern(method, name, params, meta string, edits ...edit) reply {
	f.t.Helper()
	return f.do("POST", modernBody("1", method, params, meta), append([]edit{modernHeaders(method, name)}, edits...)...)
}

func (f *fixture) modernCall(arguments, meta string, edits ...edit) reply {
	f.t.Helper()
	return f.modern("tools/call", "echo", `"name":"echo","arguments":`+arguments, meta, edits...)
}

// initialize begins a legacy session and gives the edits that its requests need.
func (f *fixture) initialize(version string, edits ...edit) []edit {
	f.t.Helper()
	r := f.do("POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, edits...)
	id := r.header.Get("Mcp-Session-Id")
	if r.status != 200 || id == "" || r.at("result", "protocolVersion") != `"`+version+`"` {
		f.t.Fatalf("initialize: %v", r)
	}
	out := append([]edit{set("Mcp-Session-Id", id)}, edits...)
	if version >= "2025-06-18" {
		out = append(out, set("MCP-Protocol-Version", version))
	}
	if r := f.do("POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, out...); r.status != 202 {
		f.t.Fatalf("initialized: %v", r)
	}
	return out
}

// events reads the events of a stream as they come.
type events struct {
	t *testing.T
	s *bufio.Scanner
}

func eventsOf(t *testing.T, resp *http.Response) *events {
	s := bufio.NewScanner(resp.Body)
	s.Buffer(nil, 16<<20)
	return &events{t, s}
}

// next is the data of the next event; comments are skipped. "" at the end.
func (e *events) next() string {
	for e.s.Scan() {
		if data, ok := strings.CutPrefix(e.s.Text(), "data: "); ok {
			if !json.Valid([]byte(data)) {
				e.t.Errorf("event is no JSON: %s", data)
			}
			return data
		}
	}
	return ""
}

// comment waits for a comment line.
func (e *events) comment() bool {
	for e.s.Scan() {
		if strings.HasPrefix(e.s.Text(), ":") {
			return true
		}
	}
	return false
}

func jsonString(s string) string { return string(content.AppendString(nil, s)) }

func httpPost(ctx context.Context, f *fixture, body string, edits ...edit) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", f.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+aliceToken)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, e := range edits {
		e(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}
