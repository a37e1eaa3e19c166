//go:build unix

package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/mcpwire/transport"
	"github.com/ostiary/ostiary/internal/provider"
)

// peerEnv makes the test binary play an MCP server on stdio: its value says, as a URL query, what the server is like.
const peerEnv = "OSTIARY_TEST_PEER"

func TestMain(m *testing.M) {
	if q := os.Getenv(peerEnv); q != "" {
		v, err := url.ParseQuery(q)
		if err != nil {
			os.Exit(9)
		}
		p := &peer{is: v, say: func(line string) { fmt.Fprintln(os.Stdout, line) }}
		p.serve(bufio.NewReader(os.Stdin))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// peer is a server made of a few traits. It writes what it receives to stderr, so that a test can see it.
type peer struct {
	is     url.Values
	say    func(line string)
	listen string // raw id of the open subscription
	lists  int
	asked  int // server/discover so far
	inits  int
	held   []byte // id of a call that waits
}

func (p *peer) serve(in *bufio.Reader) {
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if p.is.Has("stays") {
				time.Sleep(time.Hour)
			}
			return
		}
		f, err := content.ParseFrame(line, content.FrameLimits{})
		if err != nil {
			fmt.Fprintln(os.Stderr, "bad", err)
			os.Exit(9)
		}
		switch {
		case f.Method == "notifications/cancelled":
			id, _ := content.String(content.Member(f.Params, "requestId"))
			fmt.Fprintln(os.Stderr, "got", f.Method, id)
		case f.Kind == content.Response || f.Kind == content.ErrorResponse:
			code := int64(0)
			if f.Error != nil {
				code = f.Error.Code
			}
			fmt.Fprintln(os.Stderr, "got answer", string(f.ID), code)
		default:
			fmt.Fprintln(os.Stderr, "got", f.Method)
		}
		for _, caps := range [][]byte{content.Member(f.Params, "capabilities"), content.Member(content.Member(f.Params, "_meta"), keyCapabilities)} {
			if e := content.Member(caps, "extensions"); e != nil {
				fmt.Fprintln(os.Stderr, "offered", string(e))
			}
		}
		p.handle(f)
	}
}

func (p *peer) result(id []byte, members string) {
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{%s}}`, id, members))
}

func (p *peer) fail(id []byte, code int, data string) {
	if data != "" {
		data = `,"data":` + data
	}
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"%s}}`, id, code, data))
}

func (p *peer) changed(id string) {
	if id != "" {
		id = `"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}},`
	}
	p.say(`{"jsonrpc":"2.0",` + id + `"method":"notifications/tools/list_changed"}`)
}

const serverTools = `"tools":{"listChanged":true},"logging":{}`

func (p *peer) caps() string {
	if p.is.Has("caps") {
		return p.is.Get("caps")
	}
	return serverTools
}

const eventMessage = `{"jsonrpc":"2.0","method":"notifications/org.aurorabot/world-events/event","params":{"event_id":"e1","n":12345678901234567890}}`

func loggedBy(logger string) string {
	return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"` + logger + `","data":{"event_id":"l1","n":12345678901234567890}}}`
}

func (p *peer) handle(f content.Frame) {
	id := f.ID
	if f.Method == "server/discover" || f.Method == "initialize" {
		both := eventMessage + "\n" + loggedBy("aurora/event")
		if p.is.Get("events") == "early" {
			p.say(both)
		}
		if say := p.say; p.is.Get("events") == "at-once" { // in one write with the answer
			p.say = func(line string) { say(line + "\n" + both) }
			defer func() { p.say = say }()
		}
	}
	switch f.Method {
	case "server/discover":
		p.asked++
		p.discover(id)
	case "initialize":
		p.inits++
		switch v := p.is.Get("init"); v {
		case "silent":
		case "refuse":
			p.fail(id, -32022, `{"supported":["2026-07-28"],"requested":"2025-11-25"}`)
		case "":
			p.fail(id, -32601, "")
		default:
			p.result(id, `"protocolVersion":"`+v+`","capabilities":{`+p.caps()+`},"serverInfo":{"name":"legacy","version":"1"},"instructions":"be kind"`)
		}
	case "subscriptions/listen":
		p.listen = string(id)
		sub := `"_meta":{"io.modelcontextprotocol/subscriptionId":` + p.listen + `}`
		switch p.is.Get("listen") {
		case "refuse":
			p.fail(id, -32601, "")
		case "silent":
		case "without":
			p.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + sub + `,"notifications":{}}}`)
		case "foreign":
			p.changed(`"g999"`)
			fallthrough
		default:
			p.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + sub + `,"notifications":{"toolsListChanged":true}}}`)
		}
	case "tools/list":
		p.lists++
		p.list(f)
	case "tools/call":
		p.call(f)
	case "logging/setLevel", "ping":
		p.result(id, "")
	default:
		if f.Kind == content.Request {
			p.fail(id, -32601, "")
		}
	}
}

func (p *peer) discover(id []byte) {
	modern := `"supportedVersions":["2026-07-28"],"capabilities":{` + p.caps() + `},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"modern","version":"2"}}`
	switch v := p.is.Get("discover"); v {
	case "modern", "":
		p.result(id, modern)
	case "legacy-list":
		p.result(id, `"supportedVersions":["2025-11-25","2025-06-18"],"capabilities":{}`)
	case "future-list":
		p.result(id, `"supportedVersions":["2031-01-01"],"capabilities":{}`)
	case "no-versions":
		p.result(id, `"capabilities":{}`)
	case "32022-legacy":
		p.fail(id, -32022, `{"supported":["2025-11-25"],"requested":"2026-07-28"}`)
	case "32022-once", "32022-always":
		if p.asked > 1 && v == "32022-once" {
			p.result(id, modern)
		} else {
			p.fail(id, -32022, `{"supported":["2026-07-28"],"requested":"2026-07-28"}`)
		}
	case "32022-future":
		p.fail(id, -32022, `{"supported":["2031-01-01"],"requested":"2026-07-28"}`)
	case "silent":
	case "late": // the answer comes when something else has been asked
		time.AfterFunc(1200*time.Millisecond, func() { p.result(id, modern) })
	case "second":
		if p.asked > 1 {
			p.result(id, modern)
		}
	case "garbage":
		p.say(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":7}`)
	case "exit":
		os.Exit(5)
	default:
		n, _ := strconv.Atoi(v)
		p.fail(id, n, "")
	}
}

func tool(name string) string {
	return `{"name":"` + name + `","inputSchema":{"type":"object"},"x":12345678901234567890}`
}

func (p *peer) list(f content.Frame) {
	cursor, has := content.String(content.Member(f.Params, "cursor"))
	page := func(tools string, next string) {
		p.result(f.ID, `"tools":[`+tools+`]`+next)
	}
	switch p.is.Get("list") {
	case "pages": // "" is a cursor
		switch {
		case !has:
			page(tool("a"), `,"nextCursor":""`)
		case cursor == "":
			page(tool("b"), `,"nextCursor":"x"`)
		default:
			page(tool("c"), `,"nextCursor":null`)
		}
	case "constant":
		page(tool("a"), `,"nextCursor":"x"`)
	case "cycle":
		page(tool("a"), map[string]string{"": `,"nextCursor":"x"`, "x": `,"nextCursor":"y"`, "y": `,"nextCursor":"x"`}[cursor])
	case "forever":
		page(tool("a"), fmt.Sprintf(`,"nextCursor":"%d"`, p.lists))
	case "many":
		page(strings.Repeat(tool("a")+",", 49)+tool("a"), "")
	case "huge-cursor":
		page("", `,"nextCursor":"`+strings.Repeat("c", 100<<10)+`"`)
	case "number-cursor":
		page("", `,"nextCursor":7`)
	case "null-tool":
		page("null", "")
	case "no-tools":
		p.result(f.ID, "")
	case "evil-type":
		p.result(f.ID, `"tools":[],"resultType":"input_required"`)
	case "stale": // the cursor is refused once
		switch {
		case !has:
			page(tool("a"), `,"nextCursor":"x"`)
		case p.lists == 2:
			p.fail(f.ID, -32602, "")
		default:
			page(tool("b"), "")
		}
	case "always-stale":
		if !has {
			page(tool("a"), `,"nextCursor":"x"`)
		} else {
			p.fail(f.ID, -32602, "")
		}
	case "changes-once": // F-39: a change between pages
		switch {
		case !has && p.lists == 1:
			page(tool("old"), `,"nextCursor":"x"`)
		case has && p.lists == 2:
			p.changed(p.listen)
			page(tool("mixed"), "")
		default:
			page(tool("new"), "")
		}
	case "unstable":
		p.changed(p.listen)
		page(tool("a"), "")
	case "grows": // another tool each time
		page(tool(fmt.Sprintf("t%d", p.lists)), "")
	case "unknown":
		p.fail(f.ID, -32601, "")
	case "silent":
	default:
		page(tool("a"), "")
	}
}

func (p *peer) call(f content.Frame) {
	id := f.ID
	name, _ := content.String(content.Member(f.Params, "name"))
	text := func(s string) { p.result(id, `"content":[{"type":"text","text":"`+s+`"}]`) }
	token := string(content.Member(content.Member(f.Params, "_meta"), "progressToken"))
	progress := func(n string) {
		p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":` + n + `,"total":9,"message":"m` + n + `"}}`)
	}
	logged := func(level, data string) {
		p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level + `","data":"` + data + `"}}`)
	}
	switch name {
	case "ok":
		text("fine")
	case "params":
		p.result(id, `"content":[],"structuredContent":`+string(f.Params))
	case "silent":
		p.held = id
	case "release": // answers the silent one late, then this one
		p.result(p.held, `"content":[]`)
		text("released")
	case "is-error":
		p.result(id, `"content":[],"isError":true`)
	case "evil-type":
		p.result(id, `"content":[],"resultType":"evil"`)
	case "refused":
		p.fail(id, -32602, "")
	case "exit":
		os.Exit(3)
	case "cut":
		p.say(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":{"content":[{"ty`)
	case "progress":
		for _, n := range []string{"1", "1", "2.5", "2", "1e1", "11"} {
			progress(n)
		}
		p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"g0","progress":5}}`)
		text("done")
		progress("99")
	case "progress-flood":
		for i := range 10000 {
			progress(strconv.Itoa(i))
		}
		text("done")
	case "logs":
		logged("debug", "quiet")
		logged("error", "loud")
		text("done")
	case "change":
		p.changed(p.listen)
		text("done")
	case "change-forged":
		p.changed(`"forged"`)
		p.changed("")
		text("done")
	case "change-storm":
		for range 10000 {
			p.changed(p.listen)
		}
		text("done")
	case "end-listen":
		p.result([]byte(p.listen), `"resultType":"complete"`)
		text("done")
	case "cancel-listen":
		p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + p.listen + `}}`)
		text("done")
	case "ask": // requests of the server
		p.say(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
		p.say(`{"jsonrpc":"2.0","id":"r8","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`)
		text("asked")
	case "events":
		p.say(eventMessage)
		p.say(loggedBy("aurora/event"))
		p.say(loggedBy("other"))
		p.say(`{"jsonrpc":"2.0","method":"notifications/org.aurorabot/world-events/Event","params":{}}`)
		text("done")
	case "vendor":
		p.say(`{"jsonrpc":"2.0","method":"notifications/vendor","params":{"n":12345678901234567890}}`)
		text("done")
	case "stop-reading":
		time.Sleep(time.Hour)
	}
}

// opened starts a session with a peer of these traits.
func opened(t *testing.T, traits string, change func(*Options)) (*Session, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return openedWithin(ctx, t, traits, change)
}

func openedWithin(ctx context.Context, t *testing.T, traits string, change func(*Options)) (*Session, error) {
	t.Helper()
	o := Options{Limits: provider.Limits{Connect: 20 * time.Second, Close: time.Second}, ClientName: "test"}
	if change != nil {
		change(&o)
	}
	s, err := Open(ctx, func(ctx context.Context, sink Sink) (transport.Carrier, error) {
		return transport.StartStdio(ctx, transport.StdioOptions{
			Command: os.Args[0], Env: append(os.Environ(), peerEnv+"="+traits), CloseTimeout: o.Limits.Close,
			OnNotification: sink.Notification, OnRequest: sink.Request,
		})
	}, o)
	if err == nil {
		t.Cleanup(func() { s.Close(context.WithoutCancel(t.Context())) })
	}
	return s, err
}

// mustOpen is opened for tests whose matter comes after the start. All the given tools may be called.
func mustOpen(t *testing.T, traits string, tools ...string) *Session {
	t.Helper()
	s, err := opened(t, traits, nil)
	if err != nil {
		t.Fatal(err)
	}
	allow(s, tools...)
	return s
}

func allow(s *Session, tools ...string) {
	var list []*call.Descriptor
	for _, name := range tools {
		list = append(list, descriptor(name))
	}
	s.SetTools(list)
}

func descriptor(name string) *call.Descriptor {
	return &call.Descriptor{RawName: name, Name: name, InputSchema: []byte(`{"type":"object"}`)}
}

// received is what the peer has been sent so far, method by method.
func received(s *Session) []string {
	var got []string
	for _, line := range s.Stats().StderrTail {
		if m, ok := strings.CutPrefix(line, "got "); ok {
			got = append(got, m)
		}
	}
	return got
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if cond() {
			return
		}
	}
	t.Fatalf("never came true: %s", what)
}

// stderrOf keeps the carrier of a failed start within reach.
type keptCarrier struct {
	mu sync.Mutex
	c  *transport.StdioCarrier
}

func (k *keptCarrier) dial(traits string) Dial {
	return func(ctx context.Context, sink Sink) (transport.Carrier, error) {
		c, err := transport.StartStdio(ctx, transport.StdioOptions{
			Command: os.Args[0], Env: append(os.Environ(), peerEnv+"="+traits), CloseTimeout: time.Second,
			OnNotification: sink.Notification, OnRequest: sink.Request,
		})
		if err != nil {
			return nil, err
		}
		k.mu.Lock()
		k.c = c
		k.mu.Unlock()
		return c, nil
	}
}

func failureOf(t *testing.T, err error) *Failure {
	t.Helper()
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		t.Fatalf("got %v, want a failure", err)
	}
	return f
}
