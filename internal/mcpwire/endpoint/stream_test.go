package endpoint

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
)

// R10.4, S-060: progress with the caller's own token byte for byte, before the answer; log messages at or above the level
// that was asked for; neither without being asked.
func TestR10_4_ProgressAndLog(t *testing.T) {
	f := serve(t, func(ctx context.Context, r call.Request) call.Reply {
		if r.Progress != nil {
			r.Progress(call.Progress{Progress: []byte("1.0"), Total: []byte("9007199254740993"), Message: "one\n<two>"})
			r.Progress(call.Progress{Progress: []byte("1"), Message: "not more"})
			r.Progress(call.Progress{Progress: []byte("0.5"), Message: "less"})
			r.Progress(call.Progress{Progress: []byte("2e0")})
		}
		if r.Log != nil {
			for _, level := range []string{"debug", "warning", "loud", "emergency"} {
				r.Log(call.LogMessage{Level: level, Logger: "db", Data: []byte("{\n\"n\":9007199254740993}")})
			}
		}
		return call.Reply{Outcome: okOutcome, Result: []byte(fmt.Sprintf(`{"content":[],"progress":%v,"log":%v}`, r.Progress != nil, r.Log != nil))}
	})
	session := f.initialize("2025-11-25")
	if got := f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}`, session...); got.at("error", "code") != "-32602" {
		t.Errorf("setLevel: %v", got)
	}
	const legacy = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"%s}}`
	if got := f.do("POST", fmt.Sprintf(legacy, ""), session...); got.at("result", "progress") != "false" || got.at("result", "log") != "false" {
		t.Errorf("legacy, nothing asked: %v", got)
	}
	if got := f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"warning"}}`, session...); got.at("result") != "{}" {
		t.Errorf("setLevel: %v", got)
	}
	if got := f.modernCall("{}", ""); got.at("result", "progress") != "false" || got.at("result", "log") != "false" {
		t.Errorf("modern, nothing asked: %v", got)
	}
	want := []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"\u0074<ok>","progress":1.0,"total":9007199254740993,"message":"one\n<two>"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"\u0074<ok>","progress":2e0}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"db","data":{ "n":9007199254740993}}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"emergency","logger":"db","data":{ "n":9007199254740993}}}`,
	}
	for name, got := range map[string]reply{
		"modern": f.modernCall("{}", `"progressToken":"\u0074<ok>","io.modelcontextprotocol/logLevel":"warning"`),
		"legacy": f.do("POST", fmt.Sprintf(legacy, `,"_meta":{"progressToken":"\u0074<ok>"}`), session...),
	} {
		if !strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") || got.header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("%s: headers %v", name, got.header)
		}
		var lines []string
		for line := range strings.Lines(got.body) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				lines = append(lines, strings.ReplaceAll(strings.TrimSpace(data), `"data":{"n"`, `"data":{ "n"`))
			}
		}
		if len(lines) != 5 || strings.Join(lines[:4], "\n") != strings.Join(want, "\n") {
			t.Errorf("%s:\n%s", name, strings.Join(lines, "\n"))
		}
		if got.at("result", "progress") != "true" || got.at("result", "log") != "true" {
			t.Errorf("%s: %s", name, got.message())
		}
	}
}

// A call that lasts shows that it lives: headers before the answer, and comments, whether or not it has something to tell.
func TestStreamsOpenEarlyAndKeepAlive(t *testing.T) {
	release := make(chan struct{})
	f := serve(t, func(ctx context.Context, r call.Request) call.Reply { <-release; return echo(ctx, r) },
		func(o *Options) { o.KeepAlive = 30 * time.Millisecond })
	session := f.initialize("2025-11-25")
	body := modernBody("1", "tools/call", `"name":"echo"`, "")
	asked := modernBody("1", "tools/call", `"name":"echo"`, `"progressToken":1`)
	good := modernHeaders("tools/call", "echo")
	var streams []*events
	for _, resp := range []struct {
		body  string
		edits []edit
	}{{body, []edit{good}}, {asked, []edit{good}}, {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`, session}} {
		r := f.open(t.Context(), "POST", resp.body, resp.edits...) // returns with the headers: the call still runs
		defer r.Body.Close()
		e := eventsOf(t, r)
		for range 2 {
			if !e.comment() {
				t.Error("no comment")
			}
		}
		streams = append(streams, e)
	}
	close(release)
	for _, e := range streams {
		if got := e.next(); !strings.Contains(got, `"result"`) {
			t.Errorf("answer: %s", got)
		}
	}
}

// S-046, F-49: a client that goes away cancels its call within a second, whether the answer has begun or not.
func TestS046_DisconnectCancels(t *testing.T) {
	started, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	f := serve(t, func(ctx context.Context, r call.Request) call.Reply {
		started <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return echo(ctx, r)
	})
	for name, meta := range map[string]string{"plain": "", "streamed": `"progressToken":1`} {
		ctx, cancel := context.WithCancel(t.Context())
		gone, begun := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(gone)
			r, err := httpPost(ctx, f, modernBody("1", "tools/call", `"name":"echo"`, meta), modernHeaders("tools/call", "echo"))
			if err == nil {
				close(begun) // the headers are here
				<-ctx.Done()
				r.Body.Close()
			}
		}()
		<-started
		if name == "streamed" {
			<-begun
		}
		begin := time.Now()
		cancel()
		select {
		case <-ended:
			if took := time.Since(begin); took > time.Second {
				t.Errorf("%s: cancelled after %v", name, took)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: not cancelled", name)
		}
		<-gone
	}
}

// In the legacy era a lost stream is no cancellation, a notification is.
func TestR10_4_LegacyCancellation(t *testing.T) {
	started, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	f := serve(t, func(ctx context.Context, r call.Request) call.Reply {
		started <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return echo(ctx, r)
	})
	session := f.initialize("2025-11-25")
	other := f.initialize("2025-11-25")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		r, err := httpPost(ctx, f, `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"echo"}}`, session...)
		if err == nil {
			r.Body.Close()
		}
	}()
	<-started
	cancel()
	const note = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`
	f.do("POST", note, other...) // another session's id x
	select {
	case <-ended:
		t.Fatal("cancelled by a lost stream or by another session")
	case <-time.After(100 * time.Millisecond):
	}
	if got := f.do("POST", note, session...); got.status != 202 {
		t.Errorf("cancelled: %v", got)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("not cancelled")
	}
}

// DELETE ends the calls of a session; it does not wait for them.
func TestDeleteCancelsCalls(t *testing.T) {
	started, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	f := serve(t, func(ctx context.Context, r call.Request) call.Reply {
		started <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return echo(ctx, r)
	})
	session := f.initialize("2025-11-25")
	go func() {
		if r, err := httpPost(t.Context(), f, `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"echo"}}`, session...); err == nil {
			r.Body.Close()
		}
	}()
	<-started
	if got := f.do("DELETE", "", session...); got.status != 204 {
		t.Errorf("DELETE: %v", got)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("not cancelled")
	}
}

// S-061: the acknowledgement comes first and names only what is offered; every message has the subscription's id; what was
// not asked for is not sent; shutdown ends the stream with its result.
func TestS061_Listen(t *testing.T) {
	f := serve(t, echo, func(o *Options) { o.KeepAlive = 20 * time.Millisecond })
	listen := func(filter string) *events {
		resp := f.open(t.Context(), "POST", modernBody(`"l1"`, "subscriptions/listen", `"notifications":`+filter, ""), modernHeaders("subscriptions/listen", ""))
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
			t.Fatalf("listen: %d %v", resp.StatusCode, resp.Header)
		}
		return eventsOf(t, resp)
	}
	const id = `{"io.modelcontextprotocol/subscriptionId":"l1"}`
	asked, unasked := listen(`{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["x"]}`), listen(`{"resourcesListChanged":true}`)
	if got := asked.next(); got != `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":`+id+`,"notifications":{"toolsListChanged":true}}}` {
		t.Errorf("ack: %s", got)
	}
	if got := unasked.next(); got != `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":`+id+`,"notifications":{}}}` {
		t.Errorf("ack: %s", got)
	}
	if !asked.comment() || !unasked.comment() {
		t.Error("no keep-alive")
	}
	before := f.modern("tools/list", "", "", "")
	if err := f.SetTools("default", []Tool{tool("two", `{"name":"two","inputSchema":{"type":"object"}}`)}); err != nil {
		t.Fatal(err)
	}
	if got := asked.next(); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":`+id+`}}` {
		t.Errorf("change: %s", got)
	}
	if after := f.modern("tools/list", "", "", ""); after.body == before.body || !strings.Contains(after.body, `"two"`) {
		t.Errorf("list after the change: %v", after)
	}
	closed := make(chan error, 1)
	go func() { closed <- f.Close(context.Background()) }()
	for _, e := range []*events{asked, unasked} {
		if got := e.next(); got != `{"jsonrpc":"2.0","id":"l1","result":{"resultType":"complete","_meta":`+id+`}}` {
			t.Errorf("end: %s", got)
		}
		if got := e.next(); got != "" {
			t.Errorf("after the end: %s", got)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if got := f.modernCall("{}", ""); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("after Close: %v", got)
	}
}

// R10.3: sessions of the legacy era hear of changes on their GET stream; it ends when the endpoint closes.
func TestR10_3_LegacyListChanged(t *testing.T) {
	changed := make(chan struct{}, 1)
	f := serve(t, echo, func(o *Options) {
		o.KeepAlive = 20 * time.Millisecond
		o.Changed = func(context.Context, string) <-chan struct{} { return changed }
	})
	session := f.initialize("2025-11-25")
	resp := f.open(t.Context(), "GET", "", session...)
	defer resp.Body.Close()
	e := eventsOf(t, resp)
	for range 2 {
		if !e.comment() {
			t.Error("no keep-alive")
		}
	}
	for range 2 {
		changed <- struct{}{}
		if got := e.next(); !strings.Contains(got, `"notifications/tools/list_changed"`) {
			t.Errorf("change: %s", got)
		}
	}
	if got := f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, session...); strings.Contains(got.body, `"changed"`) {
		t.Errorf("the marker shows: %v", got)
	}
	if got := f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"changed"}}`, session...); got.at("error", "message") != `"Unknown tool: \"changed\""` {
		t.Errorf("the marker can be called: %v", got)
	}
	go func() { _ = f.Close(context.Background()) }()
	if got := e.next(); got != "" {
		t.Errorf("after Close: %s", got)
	}
}

// Subscriptions are bounded.
func TestListensAreBounded(t *testing.T) {
	f := serve(t, echo, func(o *Options) { o.MaxListens = 1 })
	body, edits := modernBody("1", "subscriptions/listen", `"notifications":{}`, ""), modernHeaders("subscriptions/listen", "")
	ctx, cancel := context.WithCancel(t.Context())
	first := f.open(ctx, "POST", body, edits)
	defer first.Body.Close()
	if got := f.do("POST", body, edits); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("second: %v", got)
	}
	cancel()
	for deadline := time.Now().Add(10 * time.Second); f.listens.n.Load() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a subscription whose client has gone is still held")
		}
	}
	if n := len(f.exports["default"].hub.listeners); n != 0 {
		t.Errorf("%d listeners", n)
	}
}

// L-3: an idle subscription holds less than 100 KiB, with all that net/http and both ends of the connection need.
func TestL3_IdleSubscriptionsAreSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("opens many connections")
	}
	const n = 200
	f := serve(t, echo)
	body := modernBody("1", "subscriptions/listen", `"notifications":{"toolsListChanged":true},"pad":"`+strings.Repeat("x", 200<<10)+`"`, "")
	memory := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before, goroutines := memory(), runtime.NumGoroutine()
	for range n {
		resp := f.open(t.Context(), "POST", body, modernHeaders("subscriptions/listen", ""))
		defer resp.Body.Close()
		if eventsOf(t, resp).next() == "" {
			t.Fatal("no ack")
		}
	}
	each := (memory() - before) / n
	perStream := float64(runtime.NumGoroutine()-goroutines) / n
	t.Logf("%d bytes and %.1f goroutines for each subscription, both ends counted", each, perStream)
	if each > 100<<10 {
		t.Errorf("%d bytes for each", each)
	}
	if perStream > 5 { // two of the server's and two of the client's, by net/http
		t.Errorf("%.1f goroutines for each", perStream)
	}
}

// S-060: whatever a provider reports, its caller sees a strictly increasing subsequence, with the last increase in it, and
// nothing after the end; the rate holds.
func TestS060_RelayProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(0, 0)
		var got []string
		r := newRelay(&toolCall{request: &request{}, progressToken: []byte("1"), post: func(_ string, params []byte) { got = append(got, get(string(params), "progress")) }},
			func() time.Time { return now })
		values := rapid.SliceOfN(rapid.IntRange(0, 1000), 0, 300).Draw(t, "values")
		best, elapsed := -1, time.Duration(0)
		for _, v := range values {
			step := time.Duration(rapid.IntRange(0, 12).Draw(t, "ms")) * time.Millisecond
			now = now.Add(step)
			elapsed += step
			r.progress(call.Progress{Progress: []byte(fmt.Sprint(v))})
			best = max(best, v)
		}
		r.end()
		n := len(got)
		r.progress(call.Progress{Progress: []byte("5000")})
		if len(got) != n {
			t.Fatal("progress after the end")
		}
		last := -1
		for _, s := range got {
			var v int
			if _, err := fmt.Sscan(s, &v); err != nil || v <= last {
				t.Fatalf("not increasing: %v", got)
			}
			last = v
		}
		if last != best {
			t.Fatalf("the last increase, %d, was not told: %v", best, got)
		}
		if bound := relayBurst + int(elapsed/relayEvery) + 1; len(got) > bound {
			t.Fatalf("%d notifications in %v", len(got), elapsed)
		}
	})
}
