package endpoint

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// client is the other end of a pipe.
type client struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Scanner
	done chan error
}

func pipeTo(t *testing.T, e *Endpoint) *client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client{t: t, in: inW, out: bufio.NewScanner(outR), done: make(chan error, 1)}
	c.out.Buffer(nil, 16<<20)
	go func() {
		err := e.ServeStdio(context.Background(), "default", call.Principal{ID: "alice"}, inR, outW)
		outW.Close()
		c.done <- err
	}()
	t.Cleanup(func() { inW.Close(); outR.Close() })
	return c
}

func (c *client) send(messages ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, strings.Join(messages, "\n")+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// next is the next line, "" at the end. Whatever is on it must be one MCP message.
func (c *client) next() string {
	c.t.Helper()
	if !c.out.Scan() {
		return ""
	}
	if _, err := content.ParseFrame(c.out.Bytes(), content.FrameLimits{}); err != nil {
		c.t.Errorf("a line that is no message: %q: %v", c.out.Text(), err)
	}
	return c.out.Text()
}

// ask sends messages and gives the next line.
func (c *client) ask(messages ...string) string {
	c.t.Helper()
	c.send(messages...)
	return c.next()
}

func (c *client) end() error {
	c.t.Helper()
	c.in.Close()
	for c.next() != "" {
	}
	select {
	case err := <-c.done:
		return err
	case <-time.After(10 * time.Second):
		c.t.Fatal("ServeStdio did not return")
		return nil
	}
}

func get(message string, path ...string) string {
	b := []byte(message)
	for _, key := range path {
		b = content.Member(b, key)
	}
	return string(b)
}

const initializeStdio = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func quiet(t *testing.T, caller callerFunc, edit ...func(*Options)) *Endpoint {
	return serve(t, caller, edit...).Endpoint
}

// R10.6: both eras on one pipe, each with its own shape, ids and values byte for byte.
func TestR10_6_BothErasOnOnePipe(t *testing.T) {
	c := pipeTo(t, quiet(t, echo))
	if got := c.ask(modernBody("9007199254740993", "server/discover", "", "")); get(got, "id") != "9007199254740993" || get(got, "result", "resultType") != `"complete"` {
		t.Errorf("discover: %s", got)
	}
	if got := c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); get(got, "error", "code") != "-32602" {
		t.Errorf("neither era: %s", got)
	}
	if got := c.ask(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); get(got, "result") != "{}" {
		t.Errorf("ping before initialize: %s", got)
	}
	if got := c.ask(initializeStdio); get(got, "id") != `"i"` || get(got, "result", "protocolVersion") != `"2025-11-25"` {
		t.Fatalf("initialize: %s", got)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	const args = `{"n":9007199254740993,"f":1.0,"e":1e2,"u":"<b>"}`
	for name, era := range map[string]struct {
		body   string
		result string
	}{
		"legacy": {`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"echo","arguments":` + args + `,"_meta":{"k":9007199254740993}}}`, ""},
		"modern": {modernBody("9007199254740993", "tools/call", `"name":"echo","arguments":`+args, `"k":9007199254740993`), `"complete"`},
	} {
		got := c.ask(era.body)
		if get(got, "id") != "9007199254740993" || get(got, "result", "structuredContent") != args || get(got, "result", "sawMeta") != `{"k":9007199254740993}` ||
			get(got, "result", "resultType") != era.result || get(got, "result", "_meta", "org.ostiary/outcome", "status") != `"succeeded"` {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := c.ask(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`); get(got, "result", "resultType") != "" || !strings.Contains(get(got, "result", "tools"), "says it again") {
		t.Errorf("legacy list: %s", got)
	}
	if got := c.ask(`{"jsonrpc":"2.0","id":4,"method":"prompts/list"}`); get(got, "error", "code") != "-32601" {
		t.Errorf("legacy prompts: %s", got)
	}
	if got := c.ask(modernBody("5", "prompts/list", "", "")); get(got, "error", "code") != "-32601" {
		t.Errorf("modern prompts: %s", got)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// F-22, S-001: what is no message is answered as such, and the pipe goes on.
func TestStdioHostileLines(t *testing.T) {
	release := make(chan struct{})
	c := pipeTo(t, quiet(t, func(ctx context.Context, r call.Request) call.Reply { <-release; return echo(ctx, r) }, func(o *Options) { o.MaxBody = 4096 }))
	for line, want := range map[string]string{
		`{`:     "-32700",
		`hello`: "-32700",
		"\xff":  "-32700",
		`[]`:    "-32600",
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`:            "-32600",
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:           "-32600",
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:            "-32600",
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}`: "-32700",
		`{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"x"}`: "-32600",
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}`: "-32600",
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:              "-32600",
		`{"a":"` + strings.Repeat("x", 5000) + `"}`:             "-32600",
		strings.Repeat("[", 2000):                               "-32600",
	} {
		if got := c.ask(line); get(got, "error", "code") != want {
			t.Errorf("%.60q: %s, want %s", line, got, want)
		}
	}
	call := modernBody("7", "tools/call", `"name":"echo","arguments":{}`, "")
	c.send("", "  ", call)
	if got := c.ask(call); get(got, "error", "code") != "-32600" {
		t.Errorf("S-001, the id is in flight: %s", got)
	}
	close(release)
	if got := c.next(); get(got, "id") != "7" || get(got, "result") == "" {
		t.Errorf("the call after all that: %s", got)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// R10.4: notifications/cancelled ends the call in either era, and nothing more is said about it.
func TestR10_4_StdioCancel(t *testing.T) {
	ended := make(chan struct{}, 1)
	started := make(chan struct{}, 1)
	c := pipeTo(t, quiet(t, func(ctx context.Context, r call.Request) call.Reply {
		started <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return echo(ctx, r)
	}))
	c.ask(initializeStdio)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for name, body := range map[string]string{
		"modern": modernBody(`"x"`, "tools/call", `"name":"echo"`, ""),
		"legacy": `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"echo"}}`,
	} {
		c.send(body)
		<-started
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`) // names nothing
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0078"}}`)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Fatalf("%s: not cancelled", name)
		}
		if got := c.ask(`{"jsonrpc":"2.0","id":"p","method":"ping"}`); get(got, "id") != `"p"` {
			t.Errorf("%s: after the cancellation came %s", name, got)
		}
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// Progress and log messages share the pipe, before the answer, with the caller's own token.
func TestStdioProgress(t *testing.T) {
	c := pipeTo(t, quiet(t, func(ctx context.Context, r call.Request) call.Reply {
		r.Progress(call.Progress{Progress: []byte("1.0"), Message: "a"})
		r.Log(call.LogMessage{Level: "error", Data: []byte("\"x\"")})
		return echo(ctx, r)
	}))
	c.send(modernBody("1", "tools/call", `"name":"echo"`, `"progressToken":"\u0074ok","io.modelcontextprotocol/logLevel":"warning"`))
	if got := c.next(); get(got, "method") != `"notifications/progress"` || get(got, "params", "progressToken") != `"\u0074ok"` || get(got, "params", "progress") != "1.0" {
		t.Errorf("progress: %s", got)
	}
	if got := c.next(); get(got, "method") != `"notifications/message"` {
		t.Errorf("message: %s", got)
	}
	if got := c.next(); get(got, "id") != "1" {
		t.Errorf("answer: %s", got)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// S-061 on stdio, and the graceful end of a subscription.
func TestStdioListen(t *testing.T) {
	e := quiet(t, echo)
	c := pipeTo(t, e)
	ack := c.ask(modernBody(`"s"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["file:///x"]}`, ""))
	if get(ack, "method") != `"notifications/subscriptions/acknowledged"` || get(ack, "params", "notifications") != `{"toolsListChanged":true}` ||
		get(ack, "params", "_meta", keySubscriptionID) != `"s"` {
		t.Fatalf("ack: %s", ack)
	}
	if err := e.SetTools("default", []Tool{echoTool(), tool("two", `{"name":"two","inputSchema":{"type":"object"}}`)}); err != nil {
		t.Fatal(err)
	}
	if got := c.next(); get(got, "method") != `"notifications/tools/list_changed"` || get(got, "params", "_meta", keySubscriptionID) != `"s"` {
		t.Errorf("change: %s", got)
	}
	closed := make(chan error, 1)
	go func() { closed <- e.Close(context.Background()) }()
	if got := c.next(); get(got, "method") != `"notifications/cancelled"` || get(got, "params", "requestId") != `"s"` {
		t.Errorf("end: %s", got)
	}
	if got := c.next(); get(got, "id") != `"s"` || get(got, "result", "_meta", keySubscriptionID) != `"s"` {
		t.Errorf("result: %s", got)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := c.end(); !errors.Is(err, errClosed) {
		t.Errorf("ServeStdio: %v", err)
	}
}

// After the end of input, running calls are answered; one-shot use through a shell pipe works.
func TestStdioOneShot(t *testing.T) {
	e := quiet(t, func(ctx context.Context, r call.Request) call.Reply {
		time.Sleep(20 * time.Millisecond)
		return echo(ctx, r)
	})
	var out strings.Builder
	in := strings.NewReader(initializeStdio + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\r\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}` + "\n" + modernBody("3", "tools/call", `"name":"echo"`, ""))
	if err := e.ServeStdio(t.Context(), "default", call.Principal{ID: "alice"}, in, &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("%d lines: %s", n, out.String())
	}
	for _, id := range []string{`"id":"i"`, `"id":2`, `"id":3`} {
		if !strings.Contains(out.String(), id) {
			t.Errorf("no answer with %s: %s", id, out.String())
		}
	}
}

func TestStdioRefusesAndStops(t *testing.T) {
	e := quiet(t, func(ctx context.Context, r call.Request) call.Reply { <-ctx.Done(); return echo(ctx, r) },
		func(o *Options) { o.Exports[0].Principals = map[string]bool{"alice": true} })
	if err := e.ServeStdio(t.Context(), "default", call.Principal{ID: "bob"}, strings.NewReader(""), io.Discard); err == nil {
		t.Error("bob may use alice's export")
	}
	if err := e.ServeStdio(t.Context(), "nope", call.Principal{ID: "alice"}, strings.NewReader(""), io.Discard); err == nil {
		t.Error("an export that does not exist was served")
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- e.ServeStdio(ctx, "default", call.Principal{ID: "alice"}, r, io.Discard) }()
	fmt.Fprintln(w, modernBody("3", "tools/call", `"name":"echo"`, ""))
	fmt.Fprintln(w, initializeStdio)
	fmt.Fprintln(w, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo"}}`)
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("ServeStdio goes on after its context has ended")
	}
}

// The official client over a pipe, in each era.
func TestStdioSDKClient(t *testing.T) {
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			e := quiet(t, echo)
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			done := make(chan error, 1)
			go func() { done <- e.ServeStdio(context.Background(), "default", call.Principal{ID: "alice"}, inR, outW) }()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			cs, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(ctx,
				&mcp.IOTransport{Reader: outR, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			if got := cs.InitializeResult().ProtocolVersion; got != revision {
				t.Errorf("negotiated %s", got)
			}
			res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"a": 1}})
			if err != nil || res.IsError {
				t.Errorf("call: %+v, %v", res, err)
			}
			if b, _ := json.Marshal(res.StructuredContent); string(b) != `{"a":1}` {
				t.Errorf("result: %s", b)
			}
			_ = cs.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
