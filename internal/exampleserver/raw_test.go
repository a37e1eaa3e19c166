package exampleserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// rawPipe is a raw client over stdio.
type rawPipe struct {
	t  *testing.T
	r  *bufio.Scanner
	w  io.WriteCloser
	up <-chan error
}

func dial(t *testing.T, opts Options) *rawPipe {
	r, w, up := overStdio(t, opts)
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxMessage)
	return &rawPipe{t: t, r: sc, w: w, up: up}
}

func (p *rawPipe) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.w, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *rawPipe) next() string {
	p.t.Helper()
	if !p.r.Scan() {
		p.t.Fatalf("the output has ended: %v", p.r.Err())
	}
	return p.r.Text()
}

// call sends a modern call with the id 7.
func (p *rawPipe) call(tool, arguments string) {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `,` + modernMeta + `}}`)
}

func TestEchoKeepsBytes(t *testing.T) {
	p := dial(t, Options{})
	const args = `{"big":9007199254740993,"one":1.0,"hundred":1e2,"neg":-0,"esc":"\u00e9\/é","z":1,"a":[ 1 , 2 ]}`
	p.call("echo", args)
	if got := p.next(); !strings.Contains(got, `"structuredContent":`+args+`,`) {
		t.Errorf("the arguments did not come back as they were: %s", got)
	}
}

func TestAddIsExact(t *testing.T) {
	p := dial(t, Options{})
	p.call("add", `{"a":9007199254740993,"b":1}`)
	if got := p.next(); !strings.Contains(got, `"structuredContent":{"sum":9007199254740994}`) {
		t.Errorf("got %s", got)
	}
	p.call("add", `{"a":1.5,"b":1}`)
	if got := p.next(); !strings.Contains(got, `"code":-32602`) {
		t.Errorf("got %s", got)
	}
}

// Each answer of one call in the modern era, up to the parts that are the same in all.
func TestAnswers(t *testing.T) {
	const ok = `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":` + serverInfo + `},`
	for _, tc := range []struct{ name, tool, args, want string }{
		{"fail", "fail", `{"message":"no luck"}`, ok + `"content":[{"type":"text","text":"no luck"}],"isError":true}}`},
		{"refuse", "refuse", `{}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"refused, as asked"}}`},
		{"refuse with data", "refuse", `{"code":-32042,"message":"go there"}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32042,"message":"go there","data":{"elicitations":[{"mode":"url","elicitationId":"example-1","url":"https://example.org/connect","message":"Connect the account first."}],"x-exact":9007199254740993}}}`},
		{"unknown", "nope", `{}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"unknown tool: nope"}}`},
		{"one kind", "kinds", `{"kinds":["hologram"]}`, ok + `"content":[{"type":"hologram","depth":3,"x-exact":1.0}]}}`},
		{"big", "big", `{"bytes":3}`, ok + `"content":[{"type":"text","text":"All"}],"isError":false}}`},
		{"meta", "meta", `{}`, ok + `"content":[{"type":"text","text":"{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}"}],"structuredContent":{"meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}},"isError":false}}`},
		{"wrong id", "misbehave", `{"how":"wrong_id"}`, `{"jsonrpc":"2.0","id":"nobody-asked","result":{"content":[{"type":"text","text":"misbehaved"}]}}`},
		{"not JSON", "misbehave", `{"how":"not_json"}`, `{"jsonrpc":"2.0","id":7,"result":{"content":[`},
		{"asks whom it cannot", "ask", `{}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32021,"message":"this tool asks the user","data":{"requiredCapabilities":{"elicitation":{}}}}}`},
		{"no arguments", "slow", `[]`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"arguments: expected an object"}}`},
		{"out of bounds", "slow", `{"steps":0}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"steps: expected an integer from 1 to 1000"}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := dial(t, Options{})
			p.call(tc.tool, tc.args)
			if diff := cmp.Diff(tc.want, p.next()); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAskForcedIsInputRequired(t *testing.T) {
	p := dial(t, Options{})
	p.call("ask", `{"force":true}`)
	if got := p.next(); !strings.Contains(got, `"resultType":"input_required"`) || !strings.Contains(got, `"requestState"`) {
		t.Errorf("got %s", got)
	}
}

func TestNoiseComesBeforeTheAnswer(t *testing.T) {
	p := dial(t, Options{})
	p.call("noise", `{}`)
	if got := p.next(); got != "The server says hello, on standard output" {
		t.Errorf("the first line is %q", got)
	}
	for got := ""; !strings.Contains(got, "five lines of noise"); {
		got = p.next()
	}
}

func TestHangEndsWithItsCancellation(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "counter")
	p := dial(t, Options{Counter: counter})
	p.send(`{"jsonrpc":"2.0","id":"h","method":"tools/call","params":{"name":"hang","_meta":{"progressToken":"t",` + modernMeta[len(`"_meta":{`):] + `}}`)
	if got, want := p.next(), `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":0,"total":1,"message":"hanging"}}`; got != want {
		t.Fatalf("got %s\nwant %s", got, want)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"h"}}`)
	for i := 0; ; i++ { // no answer comes; what it did is told by the counter
		b, err := os.ReadFile(counter)
		if err == nil && string(b) == "hang\nhang cancelled\n" {
			break
		}
		if i == 500 {
			t.Fatalf("counter %q, %v", b, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.call("count", `{}`)
	if got := p.next(); !strings.Contains(got, `"count":1`) {
		t.Errorf("after the cancellation came %s", got)
	}
}

func TestStubbornHangAnswersLate(t *testing.T) {
	p := dial(t, Options{})
	p.call("hang", `{"ms":300,"stubborn":true}`)
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	if got := p.next(); !strings.Contains(got, "hung for 300 ms") {
		t.Errorf("got %s", got)
	}
}

func TestDieEndsTheConnectionAfterItsEffect(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "counter")
	p := dial(t, Options{Counter: counter})
	p.call("die", `{}`)
	if p.r.Scan() {
		t.Errorf("there was an answer: %s", p.r.Text())
	}
	if err := <-p.up; !errors.Is(err, ErrDied) {
		t.Errorf("ended with %v", err)
	}
	if b, _ := os.ReadFile(counter); string(b) != "die\n" {
		t.Errorf("counter %q", b)
	}
}

func TestDriftChangesWhatIsListed(t *testing.T) {
	p := dial(t, Options{})
	list := func() string {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`)
		return p.next()
	}
	before := list()
	for _, what := range []string{"description", "schema", "annotations"} {
		p.call("drift", `{"tool":"add","what":"`+what+`","announce":false}`)
		p.next()
		after := list()
		if after == before {
			t.Errorf("%s: nothing changed", what)
		}
		if _, fault := parseMessageLike(after); fault != nil {
			t.Errorf("%s: the list is no JSON any more: %v", what, fault)
		}
		before = after
	}
	again := dial(t, Options{Drifted: []string{"add"}})
	again.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`)
	if got := again.next(); !strings.Contains(got, `"added_1"`) {
		t.Error("a server that starts drifted shows no change")
	}
}

func parseMessageLike(line string) (object, error) { return parseObject([]byte(line)) }

func TestDriftAfterAnnounces(t *testing.T) {
	p := dial(t, Options{DriftAfter: 2})
	p.send(`{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modernMeta + `}}`)
	if got, want := p.next(), `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"notifications":{"toolsListChanged":true}}}`; got != want {
		t.Fatalf("got %s", got)
	}
	p.call("count", `{}`)
	p.next()
	p.call("count", `{}`)
	want := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}`
	if a, b := p.next(), p.next(); a != want && b != want {
		t.Errorf("got %s and %s", a, b)
	}
}

func TestEras(t *testing.T) {
	const (
		discover   = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + modernMeta + `}}`
		initialize = `{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	)
	for _, tc := range []struct {
		era                    Era
		discovered, initalized string
	}{
		{EraBoth, `"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`, `"protocolVersion":"2025-11-25"`},
		{EraModern, `"supportedVersions":["2026-07-28"]`, `"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28"]`},
		{EraLegacy, `"code":-32601`, `"protocolVersion":"2025-11-25"`},
	} {
		t.Run(tc.era.String(), func(t *testing.T) {
			p := dial(t, Options{Era: tc.era})
			p.send(discover)
			if got := p.next(); !strings.Contains(got, tc.discovered) {
				t.Errorf("discover: %s", got)
			}
			p.send(initialize)
			if got := p.next(); !strings.Contains(got, tc.initalized) {
				t.Errorf("initialize: %s", got)
			}
		})
	}
}

func TestStdioRefusesWhatIsNoMessage(t *testing.T) {
	p := dial(t, Options{})
	for line, code := range map[string]string{
		`{`:                               "-32700",
		`[]`:                              "-32700",
		`{"jsonrpc":"2.0","jsonrpc":"2"}`: "-32700",
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:       "-32600",
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:      "-32600",
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:         "-32600",
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`:   "-32600",
		`{"jsonrpc":"2.0","id":1,"method":"x","params":1}`: "-32600",
	} {
		p.send(line)
		if got := p.next(); !strings.Contains(got, code) {
			t.Errorf("%s: got %s, want %s", line, got, code)
		}
	}
}

// post sends one body and returns the status, the headers and the body of the answer.
func post(t *testing.T, url, body string, header map[string]string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		if k == "Host" {
			req.Host = v
		}
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, resp.Header, err.Error()
	}
	return resp.StatusCode, resp.Header, string(b)
}

func modernHeaders(method, name string) map[string]string {
	h := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if name != "" {
		h["Mcp-Name"] = name
	}
	return h
}

func TestHTTPChecks(t *testing.T) {
	srv := httptest.NewServer(Handler(Options{Bearer: "s3cret"}))
	defer srv.Close()
	call := func(name, args string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + args + `,` + modernMeta + `}}`
	}
	for _, tc := range []struct {
		name   string
		body   string
		header map[string]string
		status int
		want   string
	}{
		{"good", call("add", `{"a":1,"b":2}`), modernHeaders("tools/call", "add"), 200, `"sum":3`},
		{"encoded name", call("add", `{"a":1,"b":2}`), modernHeaders("tools/call", "=?base64?YWRk?="), 200, `"sum":3`},
		{"wrong name", call("add", `{"a":1,"b":2}`), modernHeaders("tools/call", "echo"), 400, `-32020`},
		{"no method", call("add", `{}`), modernHeaders("", "add"), 400, `-32020`},
		{"no version header", call("add", `{}`), map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "add"}, 400, `-32020`},
		{"mirrored", call("rich", `{"region":"é","priority":0,"dry":false}`),
			map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "rich", "Mcp-Param-Region": "=?base64?w6k=?=", "Mcp-Param-Priority": "0", "Mcp-Param-Dry-Run": "false"}, 200, `"region":"é"`},
		{"mirror missing", call("rich", `{"region":"eu"}`), modernHeaders("tools/call", "rich"), 400, `-32020`},
		{"null is not mirrored", call("rich", `{"region":null}`), modernHeaders("tools/call", "rich"), 200, `"region":null`},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{` + modernMeta + `}}`, modernHeaders("tasks/get", ""), 404, `-32601`},
		{"unknown version", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2030-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			map[string]string{"Mcp-Protocol-Version": "2030-01-01", "Mcp-Method": "tools/list"}, 400, `-32022`},
		{"no capabilities", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, modernHeaders("tools/list", ""), 400, `-32602`},
		{"no session", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil, 400, `no such session`},
		{"strange session", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": "x"}, 404, `no such session`},
		{"foreign origin", call("add", `{}`), map[string]string{"Origin": "https://evil.example"}, 403, ``},
		{"foreign host", call("add", `{}`), map[string]string{"Host": "evil.example"}, 403, ``},
		{"wrong token", call("add", `{}`), map[string]string{"Authorization": "Bearer other"}, 401, ``},
		{"cut", call("die", `{}`), modernHeaders("tools/call", "die"), 0, `EOF`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			header := map[string]string{"Authorization": "Bearer s3cret"}
			for k, v := range tc.header {
				header[k] = v
			}
			status, _, body := post(t, srv.URL, tc.body, header)
			if status != tc.status || !strings.Contains(body, tc.want) {
				t.Errorf("got %d %s\nwant %d %s", status, body, tc.status, tc.want)
			}
		})
	}
}

// A stream of events carries a value with line ends in it unharmed.
func TestStreamKeepsValues(t *testing.T) {
	srv := httptest.NewServer(Handler(Options{}))
	defer srv.Close()
	body := "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"slow\",\"arguments\":{\"steps\":1,\r\n\"ms\":0},\"_meta\":{\"progressToken\":\n5," + modernMeta[len(`"_meta":{`):] + "}}"
	status, header, got := post(t, srv.URL, body, modernHeaders("tools/call", "slow"))
	if status != 200 || header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %d %v %s", status, header, got)
	}
	if !strings.Contains(got, `"progressToken":5,"progress":1,"total":1`) || !strings.Contains(got, "1 steps") {
		t.Errorf("got %s", got)
	}
}

// The end of a modern request is its cancellation.
func TestHTTPDisconnectCancels(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "counter")
	srv := httptest.NewServer(Handler(Options{Counter: counter}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hang","_meta":{"progressToken":"t",` + modernMeta[len(`"_meta":{`):] + `}}`
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL, strings.NewReader(body))
	for k, v := range modernHeaders("tools/call", "hang") {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var first [64]byte
	if _, err := resp.Body.Read(first[:]); err != nil || !bytes.Contains(first[:], []byte("event: message")) {
		t.Fatalf("got %q, %v", first, err)
	}
	cancel()
	for i := 0; ; i++ {
		if b, _ := os.ReadFile(counter); string(b) == "hang\nhang cancelled\n" {
			return
		}
		if i == 500 {
			t.Fatal("the server did not notice")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, opts := range map[string]Options{
		"tools":   {Tools: -1},
		"page":    {Page: -1},
		"drifted": {Drifted: []string{"nope"}},
	} {
		if err := ServeStdio(t.Context(), strings.NewReader(""), io.Discard, opts); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := Run(t.Context(), []string{"--http", "192.0.2.1:80"}, nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("a public address: %v", err)
	}
	if err := Run(t.Context(), []string{"--era", "modern"}, strings.NewReader(""), io.Discard, io.Discard); err != nil {
		t.Errorf("an empty input: %v", err)
	}
}

func TestNotesAndExtras(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes")
	p := dial(t, Options{Notes: notes, Tools: 2, Odd: true})
	p.call("write_note", `{"text":"first \"note\""}`)
	p.next()
	p.call("read_notes", `{}`)
	if got := p.next(); !strings.Contains(got, `"structuredContent":{"notes":["first \"note\""]}`) {
		t.Errorf("got %s", got)
	}
	if b, _ := os.ReadFile(notes); string(b) != `"first \"note\""`+"\n" {
		t.Errorf("file %q", b)
	}
	for tool, want := range map[string]string{"extra_00002": `"text":"extra_00002"`, "extra_00003": "-32602", "extra_2": "-32602", "repo/search": `"text":"repo/search"`} {
		p.call(tool, `{}`)
		if got := p.next(); !strings.Contains(got, want) {
			t.Errorf("%s: %s", tool, got)
		}
	}
}

// FuzzParseMessage: what is taken for a message has its parts in the bytes it came from, and no input makes a panic.
func FuzzParseMessage(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1.0}}`, `{"jsonrpc":"2.0","method":"m"}`, `{"a":1,"a":2}`, `[]`, "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"m\"}", `{"jsonrpc":"2.0","id":1,"result":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, fault := parseMessage(b)
		if fault != nil {
			return
		}
		if m.method == "" || m.id != nil && !bytes.Contains(b, m.id) {
			t.Errorf("%q became %+v", b, m)
		}
		for name, v := range m.params {
			if !bytes.Contains(b, v) {
				t.Errorf("%q: %s became %q", b, name, v)
			}
		}
	})
}
