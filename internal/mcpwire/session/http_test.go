//go:build unix

package session

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/mcpwire/transport"
	"github.com/ostiary/ostiary/internal/provider"
)

// webPeer is an MCP server on HTTP; each test says how it answers.
type webPeer struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string // "METHOD rpc-method", in order
}

func (w *webPeer) received() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

func (w *webPeer) has(what string) bool { return slices.Contains(w.received(), what) }

func newWebPeer(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, f content.Frame)) *webPeer {
	t.Helper()
	p := &webPeer{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f, _ := content.ParseFrame(body, content.FrameLimits{})
		what := r.Method
		switch {
		case f.Kind == content.Response || f.Kind == content.ErrorResponse:
			what += " answer"
		case f.Method != "":
			what += " " + f.Method
		}
		p.mu.Lock()
		p.seen = append(p.seen, what)
		p.mu.Unlock()
		handle(w, r, f)
	}))
	t.Cleanup(p.Close)
	return p
}

func answerJSON(w http.ResponseWriter, status int, format string, args ...any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, format, args...)
}

func event(w http.ResponseWriter, format string, args ...any) {
	fmt.Fprintf(w, "data: "+format+"\n\n", args...)
	w.(http.Flusher).Flush()
}

func openHTTP(t *testing.T, p *webPeer, change func(*Options)) (*Session, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	o := Options{Endpoint: p.URL + "/mcp", Limits: provider.Limits{Connect: 3 * time.Second, Close: time.Second}}
	if change != nil {
		change(&o)
	}
	s, err := Open(ctx, func(_ context.Context, sink Sink) (transport.Carrier, error) {
		return transport.NewHTTP(transport.HTTPOptions{
			URL: o.Endpoint, OnNotification: sink.Notification, OnRequest: sink.Request, CloseTimeout: time.Second,
		})
	}, o)
	if err == nil {
		t.Cleanup(func() { s.Close(context.WithoutCancel(t.Context())) })
	}
	return s, err
}

// viaPeer lets the traits of the stdio peer answer over HTTP, one message a request.
func viaPeer(p *peer, mu *sync.Mutex, w http.ResponseWriter, f content.Frame) {
	mu.Lock()
	defer mu.Unlock()
	if f.Kind != content.Request {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	var out string
	p.say = func(line string) { out = line }
	p.handle(f)
	answerJSON(w, http.StatusOK, "%s", out)
}

// R1.5: what leads back to initialize on HTTP, and what never does.
func TestR1_5_NegotiationOnHTTP(t *testing.T) {
	t.Parallel()
	modernError := `{"jsonrpc":"2.0","id":%s,"error":{"code":-32021,"message":"no"}}`
	for name, c := range map[string]struct {
		status int
		body   string // %s: the id
		kind   string
		want   string // the revision; "" : the start fails
		says   string
	}{
		"200 modern":                {200, `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}`, "application/json", "2026-07-28", ""},
		"200 lists legacy":          {200, `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2025-11-25"],"capabilities":{}}}`, "application/json", "2025-11-25", ""},
		"200 method not found":      {200, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, "application/json", "2025-11-25", ""},
		"200 internal error":        {200, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no"}}`, "application/json", "", "-32603"},
		"200 without versions":      {200, `{"jsonrpc":"2.0","id":%s,"result":{}}`, "application/json", "", "supportedVersions"},
		"200 text":                  {200, "hello", "text/html", "", ""},
		"400 empty":                 {400, "", "", "2025-11-25", ""},
		"400 not initialized":       {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`, "application/json", "2025-11-25", ""},
		"400 with our id":           {400, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"no"}}`, "application/json", "2025-11-25", ""},
		"400 html":                  {400, "<html>", "text/html", "2025-11-25", ""},
		"404 text":                  {404, "404 page not found", "text/plain", "2025-11-25", ""},
		"405":                       {405, "", "", "2025-11-25", ""},
		"400 modern error":          {400, modernError, "application/json", "", "-32021"},
		"404 modern error":          {404, modernError, "application/json", "", "-32021"},
		"400 modern error, null id": {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"no"}}`, "application/json", "", "-32020"},
		"400 -32022 future":         {400, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2031-01-01"]}}}`, "application/json", "", "2031-01-01"},
		"400 -32022 legacy":         {400, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18"]}}}`, "application/json", "2025-11-25", ""},
		"401":                       {401, "", "", "", "401"},
		"403":                       {403, "", "", "", "403"},
		"407":                       {407, "", "", "", "407"},
		"429":                       {429, "", "", "", "429"},
		"500":                       {500, "", "", "", "500"},
		"502":                       {502, "<html>", "text/html", "", "502"},
		"503":                       {503, modernError, "application/json", "", "503"},
		"302":                       {302, "", "", "", "302"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			p := &peer{is: url.Values{"init": {"2025-11-25"}, "caps": {`"tools":{}`}}}
			web := newWebPeer(t, func(w http.ResponseWriter, r *http.Request, f content.Frame) {
				switch {
				case r.Method != http.MethodPost:
					w.WriteHeader(http.StatusMethodNotAllowed)
				case f.Method == "server/discover":
					if v := r.Header.Get("Mcp-Protocol-Version") + r.Header.Get("Mcp-Method"); v != "2026-07-28server/discover" {
						t.Errorf("headers of the probe: %s", v)
					}
					w.Header().Set("Content-Type", c.kind)
					w.WriteHeader(c.status)
					fmt.Fprint(w, strings.Replace(c.body, "%s", string(f.ID), 1))
				default:
					viaPeer(p, &mu, w, f)
				}
			})
			s, err := openHTTP(t, web, nil)
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("got %v, want it to say %q", err, c.says)
				}
				if got := web.received(); len(got) != 1 {
					t.Errorf("after a refusal there were %v", got)
				}
				if c.status == 500 && !strings.Contains(failureOf(t, err).Advice, `protocol = "2025-11-25"`) {
					t.Errorf("advice: %q", failureOf(t, err).Advice)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Negotiated().Revision; got != c.want {
				t.Errorf("got %s", got)
			}
			if l, err := s.List(t.Context()); err != nil || len(l.Tools) != 1 {
				t.Errorf("list: %v, %v", l, err)
			}
		})
	}
	t.Run("refused connection", func(t *testing.T) {
		t.Parallel()
		web := newWebPeer(t, func(http.ResponseWriter, *http.Request, content.Frame) {})
		web.Close()
		if _, err := openHTTP(t, web, nil); err == nil {
			t.Error("started")
		}
	})
}

// modernWeb answers discover and listen, and leaves the rest to the test.
func modernWeb(t *testing.T, caps string, rest func(w http.ResponseWriter, r *http.Request, f content.Frame)) *webPeer {
	return newWebPeer(t, func(w http.ResponseWriter, r *http.Request, f content.Frame) {
		switch f.Method {
		case "server/discover":
			answerJSON(w, 200, `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{%s}}}`, f.ID, caps)
		default:
			rest(w, r, f)
		}
	})
}

// R1.7, S-042: a tool with an illegal annotation is left out with its reason, and the others mirror their arguments.
func TestR1_7_MirroredArguments(t *testing.T) {
	t.Parallel()
	good := `{"name":"good","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"Count"}}}}`
	bad := `{"name":"bad","inputSchema":{"type":"object","properties":{"x":{"type":"number","x-mcp-header":"X"}}}}`
	var header http.Header
	web := modernWeb(t, `"tools":{}`, func(w http.ResponseWriter, r *http.Request, f content.Frame) {
		if f.Method == "tools/list" {
			answerJSON(w, 200, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s,%s]}}`, f.ID, bad, good)
			return
		}
		header = r.Header
		answerJSON(w, 200, `{"jsonrpc":"2.0","id":%s,"result":{"content":[],"resultType":"complete"}}`, f.ID)
	})
	s, err := openHTTP(t, web, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.List(t.Context())
	if err != nil || len(l.Tools) != 1 || len(l.Warnings) != 1 || l.Warnings[0].Tool != "bad" || l.Warnings[0].Reason == "" {
		t.Fatalf("got %+v, %v", l, err)
	}
	d := descriptor("good")
	d.InputSchema = content.Member([]byte(good), "inputSchema")
	evil := descriptor("bad")
	evil.InputSchema = content.Member([]byte(bad), "inputSchema")
	s.SetTools([]*call.Descriptor{d, evil})
	if a := s.Call(t.Context(), Call{Tool: evil}); a.Fault != call.CodeToolNotAllowed || a.Delivery != call.NotSent {
		t.Errorf("round the back: %+v", a)
	}
	a := s.Call(t.Context(), Call{Tool: d, Arguments: []byte(`{"region":"a\r\nX-Evil: 1","n":0}`)})
	if a.Fault != "" || a.Delivery != call.Confirmed {
		t.Fatalf("got %+v", a)
	}
	want := map[string]string{
		"Mcp-Method": "tools/call", "Mcp-Name": "good", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Param-Count": "0",
		"Mcp-Param-Region": "=?base64?" + base64.StdEncoding.EncodeToString([]byte("a\r\nX-Evil: 1")) + "?=", "X-Evil": "",
		"Mcp-Session-Id": "",
	}
	for k, v := range want {
		if got := header.Get(k); got != v {
			t.Errorf("%s: got %q, want %q", k, got, v)
		}
	}
	if a := s.Call(t.Context(), Call{Tool: d, Arguments: []byte(`{"n":9007199254740993}`)}); a.Fault != call.CodeInvalidArguments || a.Delivery != call.NotSent {
		t.Errorf("beyond 2^53: %+v", a)
	}
}

// R1.8: on modern HTTP the end of the stream cancels; nothing is posted.
func TestR1_8_ModernCancellation(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	web := modernWeb(t, `"tools":{}`, func(w http.ResponseWriter, r *http.Request, f content.Frame) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(200)
		event(w, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, f.ID)
		<-r.Context().Done()
		close(ended)
	})
	s, err := openHTTP(t, web, nil)
	if err != nil {
		t.Fatal(err)
	}
	allow(s, "slow")
	ctx, cancel := context.WithCancel(t.Context())
	a := s.Call(ctx, Call{Tool: descriptor("slow"), Progress: func(call.Progress) { cancel() }})
	if a.Fault != call.CodeCancelled || a.Delivery != call.DeliveryUnknown {
		t.Errorf("got %+v", a)
	}
	<-ended
	s.Close(t.Context())
	for _, m := range web.received() {
		if strings.Contains(m, "cancelled") || strings.HasPrefix(m, "DELETE") {
			t.Errorf("sent %s", m)
		}
	}
}

// R2.2, S-061: the subscription of modern HTTP has a stream of its own; what comes on other streams is no change.
func TestModernListenOnHTTP(t *testing.T) {
	t.Parallel()
	change := make(chan struct{})
	web := modernWeb(t, `"tools":{"listChanged":true}`, func(w http.ResponseWriter, r *http.Request, f content.Frame) {
		if f.Method != "subscriptions/listen" {
			w.Header().Set("Content-Type", "text/event-stream")
			event(w, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			event(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[],"tools":[]}}`, f.ID)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		event(w, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		event(w, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"toolsListChanged":true}}}`, f.ID)
		select {
		case <-change:
			event(w, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, f.ID)
		case <-r.Context().Done():
		}
		<-r.Context().Done()
	})
	s, err := openHTTP(t, web, nil)
	if err != nil {
		t.Fatal(err)
	}
	allow(s, "any")
	if !s.Stats().Listening {
		t.Error("not listening")
	}
	s.Call(t.Context(), Call{Tool: descriptor("any")})
	select {
	case <-s.Changed():
		t.Error("heard on a stream that cannot carry it")
	default:
	}
	if v := s.Stats().Violations; v < 2 {
		t.Errorf("counted %d", v)
	}
	close(change)
	select {
	case <-s.Changed():
	case <-time.After(10 * time.Second):
		t.Error("not heard")
	}
	s.Close(t.Context())
}

// legacyWeb is a server of sessions; the SDK shakes hands with it.
func legacyWeb(t *testing.T, get func(w http.ResponseWriter, r *http.Request), rest func(w http.ResponseWriter, r *http.Request, f content.Frame)) *webPeer {
	return newWebPeer(t, func(w http.ResponseWriter, r *http.Request, f content.Frame) {
		switch {
		case f.Method == "server/discover":
			w.WriteHeader(http.StatusBadRequest)
		case f.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s1")
			answerJSON(w, 200, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"x":12345678901234567890},"serverInfo":{"name":"l","version":"1"}}}`, f.ID)
		case r.Header.Get("Mcp-Session-Id") != "s1" || r.Header.Get("Mcp-Protocol-Version") != "2025-11-25":
			t.Errorf("%s %s without the session: %v", r.Method, f.Method, r.Header)
			w.WriteHeader(http.StatusBadRequest)
		case r.Method == http.MethodGet:
			get(w, r)
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusOK)
		case f.Kind != content.Request:
			w.WriteHeader(http.StatusAccepted)
		default:
			rest(w, r, f)
		}
	})
}

func noStream(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }

// R1.8: the legacy session: its header on everything, pings answered, cancellation by notification, DELETE at the end.
func TestR1_8_LegacySession(t *testing.T) {
	t.Parallel()
	web := legacyWeb(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		event(w, `{"jsonrpc":"2.0","id":"p1","method":"ping"}`)
		event(w, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		<-r.Context().Done()
	}, func(w http.ResponseWriter, r *http.Request, f content.Frame) {
		w.Header().Set("Content-Type", "text/event-stream")
		event(w, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, f.ID)
		<-r.Context().Done()
	})
	s, err := openHTTP(t, web, nil)
	if err != nil {
		t.Fatal(err)
	}
	allow(s, "slow")
	if !strings.Contains(string(s.Negotiated().Capabilities), `"x":12345678901234567890`) {
		t.Errorf("capabilities are not the server's own bytes: %s", s.Negotiated().Capabilities)
	}
	if !s.Stats().Listening {
		t.Error("not listening")
	}
	<-s.Changed()
	eventually(t, "the ping is answered", func() bool { return web.has("POST answer") })
	ctx, cancel := context.WithCancel(t.Context())
	if a := s.Call(ctx, Call{Tool: descriptor("slow"), Progress: func(call.Progress) { cancel() }}); a.Fault != call.CodeCancelled {
		t.Errorf("got %+v", a)
	}
	eventually(t, "the server is told", func() bool { return web.has("POST notifications/cancelled") })
	s.Close(t.Context())
	if !web.has("DELETE") {
		t.Errorf("no farewell: %v", web.received())
	}
}

// R2.7: a session that the server has ended is over; it is not opened again.
func TestR2_7_LegacySessionEnds(t *testing.T) {
	t.Parallel()
	web := legacyWeb(t, noStream, func(w http.ResponseWriter, _ *http.Request, _ content.Frame) {
		w.WriteHeader(http.StatusNotFound)
	})
	s, err := openHTTP(t, web, nil)
	if err != nil {
		t.Fatal(err)
	}
	allow(s, "any")
	if s.Stats().Listening {
		t.Error("it says that it listens, though the server has no stream")
	}
	if a := s.Call(t.Context(), Call{Tool: descriptor("any")}); a.Fault != call.CodeProviderRefused || a.HTTPStatus != 404 {
		t.Errorf("got %+v", a)
	}
	<-s.Done()
	if a := s.Call(t.Context(), Call{Tool: descriptor("any")}); a.Fault != call.CodeProviderUnavailable || a.Delivery != call.NotSent {
		t.Errorf("after the end: %+v", a)
	}
	n := 0
	for _, m := range web.received() {
		if m == "POST initialize" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("initialized %d times", n)
	}
}

// A server that accepts and then says nothing fails its start at the deadline, in either era (go-sdk issue class: connect
// waits where the context does not reach).
func TestR2_1_SilentHTTP(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]string{"modern": "server/discover", "legacy": "initialize"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := newWebPeer(t, func(w http.ResponseWriter, r *http.Request, f content.Frame) {
				if f.Method == silent {
					<-r.Context().Done()
					return
				}
				w.WriteHeader(http.StatusNotFound)
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			_, err := Open(ctx, func(_ context.Context, sink Sink) (transport.Carrier, error) {
				return transport.NewHTTP(transport.HTTPOptions{URL: web.URL})
			}, Options{Endpoint: web.URL})
			if err == nil || ctx.Err() == nil {
				t.Errorf("got %v", err)
			}
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}
