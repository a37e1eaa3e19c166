package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
)

const okResult = `{"jsonrpc":"2.0","id":"g1","result":{"content":[]}}`

// rawServer speaks bytes: whatever handle writes is the answer, and the connection ends when handle returns.
func rawServer(t *testing.T, handle func(conn net.Conn, r *http.Request, body string)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[conn] = true
			mu.Unlock()
			wg.Add(1)
			go func() {
				defer wg.Done()
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				body, _ := io.ReadAll(req.Body)
				handle(conn, req, string(body))
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return "http://" + l.Addr().String() + "/mcp"
}

func newCarrier(t *testing.T, o HTTPOptions) *HTTPCarrier {
	t.Helper()
	c, err := NewHTTP(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func modernRequest(d *Delivery) *Request {
	return &Request{
		ID: "g1", Method: "tools/call", Params: []byte(`{"name":"x"}`), Delivery: d,
		Header: http.Header{"Mcp-Protocol-Version": {modernRevision}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"x"}},
	}
}

func jsonResponse(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func sseResponse(events string) string {
	return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + events
}

func wantFault(t *testing.T, err error) *Fault {
	t.Helper()
	f, ok := errors.AsType[*Fault](err)
	if !ok {
		t.Fatalf("got %v, want a Fault", err)
	}
	return f
}

// F-21, F-22, F-25, F-32 to F-35, R3.2: what a bad answer becomes. The request has left, so that its delivery is unknown
// unless an answer with its id came.
func TestHTTP_BadAnswers(t *testing.T) {
	big := strings.Repeat("x", 40_000)
	for _, tc := range []struct {
		name, answer string
		code         call.Code
		status       int
		check        func(*Fault) bool
	}{
		{name: "close before the status", answer: "", code: call.CodeProviderLost},
		{name: "close in the header", answer: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n", code: call.CodeProviderLost},
		{name: "no HTTP", answer: "SSH-2.0-OpenSSH_9\r\n\r\n", code: call.CodeProtocolError},
		{name: "json cut", answer: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"jsonrpc\"", code: call.CodeProviderLost},
		{name: "chunked json cut", answer: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"jso\r\n", code: call.CodeProviderLost},
		{name: "chunked garbage", answer: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", code: call.CodeProtocolError},
		{name: "two lengths", answer: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", code: call.CodeProtocolError},
		{name: "wrong id", answer: jsonResponse(`{"jsonrpc":"2.0","id":"g2","result":{}}`), code: call.CodeProtocolError, status: 200},
		{name: "integer id", answer: jsonResponse(`{"jsonrpc":"2.0","id":1,"result":{}}`), code: call.CodeProtocolError, status: 200},
		{name: "error without id", answer: jsonResponse(`{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`), code: call.CodeProtocolError, status: 200},
		{name: "a request", answer: jsonResponse(`{"jsonrpc":"2.0","id":"g1","method":"ping"}`), code: call.CodeProtocolError, status: 200},
		{name: "a notification", answer: jsonResponse(`{"jsonrpc":"2.0","method":"notifications/x"}`), code: call.CodeProtocolError, status: 200},
		{name: "a batch", answer: jsonResponse("[" + okResult + "]"), code: call.CodeProtocolError},
		{name: "result and error", answer: jsonResponse(`{"jsonrpc":"2.0","id":"g1","result":{},"error":{"code":1,"message":""}}`), code: call.CodeProtocolError},
		{name: "duplicate keys", answer: jsonResponse(`{"jsonrpc":"2.0","id":"g1","result":{"a":1,"a":2}}`), code: call.CodeProtocolError},
		{name: "no JSON", answer: jsonResponse("<html>"), code: call.CodeProtocolError},
		{name: "byte order mark", answer: jsonResponse("\xef\xbb\xbf" + okResult), code: call.CodeProtocolError},
		{name: "invalid UTF-8", answer: jsonResponse("{\"jsonrpc\":\"2.0\",\"id\":\"g1\",\"result\":{\"a\":\"\xff\"}}"), code: call.CodeProtocolError},
		{name: "empty 200", answer: jsonResponse(""), code: call.CodeProtocolError, status: 200},
		{name: "204", answer: "HTTP/1.1 204 No Content\r\n\r\n", code: call.CodeProtocolError, status: 204},
		{name: "202", answer: "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", code: call.CodeProtocolError, status: 202},
		{name: "html 200", answer: "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi", code: call.CodeProtocolError, status: 200},
		{name: "no content type", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", code: call.CodeProtocolError, status: 200},
		{name: "two content types", answer: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n{}", code: call.CodeProtocolError, status: 200},
		{name: "gzip", answer: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", code: call.CodeProtocolError, status: 200},
		{name: "nested encodings", answer: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: identity\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}", code: call.CodeProtocolError, status: 200},
		{name: "too large by length", answer: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n", code: call.CodeResultTooLarge},
		{name: "too large", answer: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + big, code: call.CodeResultTooLarge},
		{name: "header too large", answer: "HTTP/1.1 200 OK\r\nX: " + big + "\r\n\r\n", code: call.CodeProtocolError},
		{name: "informational storm", answer: strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: <"+strings.Repeat("x", 900)+">\r\n\r\n", 40) + jsonResponse(okResult), code: call.CodeProtocolError},
		{name: "401", answer: "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer resource_metadata=\"https://x\"\r\nContent-Length: 4\r\n\r\nnope", code: call.CodeProviderRefused, status: 401,
			check: func(f *Fault) bool {
				return f.WWWAuthenticate == `Bearer resource_metadata="https://x"` && string(f.Body) == "nope"
			}},
		{name: "403", answer: "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", code: call.CodeProviderRefused, status: 403},
		{name: "404", answer: "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n404", code: call.CodeProviderRefused, status: 404},
		{name: "413", answer: "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", code: call.CodeProviderRefused, status: 413},
		{name: "429", answer: "HTTP/1.1 429 Slow\r\nRetry-After: 1000000000\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n<p>", code: call.CodeProviderRefused, status: 429,
			check: func(f *Fault) bool { return f.RetryAfter == "1000000000" }},
		{name: "500", answer: "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", code: call.CodeProviderRefused, status: 500},
		{name: "503 with an endless body", answer: "HTTP/1.1 503 Busy\r\n\r\n" + strings.Repeat("y", 200_000), code: call.CodeProviderRefused, status: 503,
			check: func(f *Fault) bool { return len(f.Body) == faultBody }},
		{name: "400 with another's error", answer: "HTTP/1.1 400 Bad\r\n\r\n" + `{"jsonrpc":"2.0","id":"zz","error":{"code":-32600,"message":"no"}}`, code: call.CodeProviderRefused, status: 400,
			check: func(f *Fault) bool { return bytes.Contains(f.Body, []byte("-32600")) }},
		{name: "400 with a result", answer: "HTTP/1.1 400 Bad\r\n\r\n" + okResult, code: call.CodeProviderRefused, status: 400},
		{name: "redirect", answer: "HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", code: call.CodeProviderRefused, status: 307,
			check: func(f *Fault) bool { return strings.HasPrefix(f.Detail, "redirect_refused") }},
		{name: "304", answer: "HTTP/1.1 304 Not Modified\r\n\r\n", code: call.CodeProviderRefused, status: 304},
		{name: "sse without an answer", answer: sseResponse(": hello\n\n"), code: call.CodeProviderLost},
		{name: "sse cut in the answer", answer: sseResponse("data: " + okResult[:30]), code: call.CodeProviderLost},
		{name: "sse without the empty line", answer: sseResponse("data: " + okResult + "\n"), code: call.CodeProviderLost},
		{name: "sse with another id", answer: sseResponse("data: {\"jsonrpc\":\"2.0\",\"id\":\"g9\",\"result\":{}}\n\ndata: " + okResult + "\n\n"), code: call.CodeProtocolError, status: 200},
		{name: "sse with garbage", answer: sseResponse("data: hi\n\ndata: " + okResult + "\n\n"), code: call.CodeProtocolError},
		{name: "sse with a batch", answer: sseResponse("data: [" + okResult + "]\n\n"), code: call.CodeProtocolError},
		{name: "sse event too large", answer: sseResponse("data: " + big + "\n\n"), code: call.CodeResultTooLarge},
		{name: "sse of comments without end", answer: sseResponse(strings.Repeat(":xxxxxxxxxxxxxxx\n", 10_000)), code: call.CodeResultTooLarge},
		{name: "sse with another event type", answer: sseResponse("event: endpoint\ndata: /messages\n\n"), code: call.CodeProviderLost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			url := rawServer(t, func(conn net.Conn, _ *http.Request, _ string) { io.WriteString(conn, tc.answer) })
			c := newCarrier(t, HTTPOptions{URL: url, MaxMessage: 20_000, MaxResponseHeader: 16_000})
			var d Delivery
			_, err := c.Do(testContext(t), modernRequest(&d))
			f := wantFault(t, err)
			if f.Code != tc.code || f.HTTPStatus != tc.status {
				t.Errorf("got %q status %d (%s), want %q status %d", f.Code, f.HTTPStatus, f.Detail, tc.code, tc.status)
			}
			if tc.check != nil && !tc.check(f) {
				t.Errorf("fault %+v", f)
			}
			if d.State() != call.DeliveryUnknown {
				t.Errorf("got delivery %v, want unknown", d.State())
			}
		})
	}
}

// S-034, S-048, S-049: what a good answer is, however it comes.
func TestHTTP_GoodAnswers(t *testing.T) {
	progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"g1","progress":12345678901234567890}}`
	for _, tc := range []struct {
		name, answer  string
		notifications int
		violations    int64
		rpcError      int64
		status        int
	}{
		{name: "json", answer: jsonResponse(okResult), status: 200},
		{name: "json with blanks", answer: jsonResponse("\n " + okResult + " \n"), status: 200},
		{name: "json until close", answer: "HTTP/1.1 200 OK\r\nContent-Type: Application/JSON; charset=utf-8\r\n\r\n" + okResult, status: 200},
		{name: "json identity", answer: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: identity\r\n\r\n" + okResult, status: 200},
		{name: "sse", answer: sseResponse("event: message\nid: 5\ndata: " + okResult + "\n\n"), status: 200},
		{name: "sse with progress", answer: sseResponse(":\n\ndata: " + progress + "\n\n: keep\r\n\r\ndata: " + progress + "\r\n\r\ndata: " + okResult + "\n\n"), notifications: 2, status: 200},
		{name: "sse in lines", answer: sseResponse("data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":\"g1\",\ndata: \"result\":{\"content\":[]}}\n\n"), status: 200},
		{name: "sse with a request of the server", answer: sseResponse("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\"}\n\ndata: " + okResult + "\n\n"), violations: 1, status: 200},
		{name: "session id in the modern era", answer: "HTTP/1.1 200 OK\r\nMcp-Session-Id: evil\r\nContent-Type: application/json\r\n\r\n" + okResult, status: 200},
		{name: "rpc error", answer: jsonResponse(`{"jsonrpc":"2.0","id":"g1","error":{"code":-32602,"message":"m"}}`), rpcError: -32602, status: 200},
		{name: "rpc error in 400", answer: "HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\n\r\n" + `{"jsonrpc":"2.0","id":"g1","error":{"code":-32020,"message":"m"}}`, rpcError: -32020, status: 400},
		{name: "rpc error in 404", answer: "HTTP/1.1 404 Bad\r\n\r\n" + `{"jsonrpc":"2.0","id":"g1","error":{"code":-32601,"message":"m"}}`, rpcError: -32601, status: 404},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			url := rawServer(t, func(conn net.Conn, r *http.Request, body string) {
				if r.Method != "POST" || body != `{"jsonrpc":"2.0","id":"g1","method":"tools/call","params":{"name":"x"}}` {
					t.Errorf("%s %s", r.Method, body)
				}
				for name, want := range map[string]string{
					"Accept": "application/json, text/event-stream", "Content-Type": "application/json", "Accept-Encoding": "identity",
					"Mcp-Protocol-Version": modernRevision, "Mcp-Method": "tools/call", "Mcp-Name": "x", "Mcp-Session-Id": "", "Cookie": "",
				} {
					if got := strings.Join(r.Header.Values(name), "|"); got != want {
						t.Errorf("header %s: got %q, want %q", name, got, want)
					}
				}
				io.WriteString(conn, tc.answer)
			})
			c := newCarrier(t, HTTPOptions{URL: url, MaxMessage: 20_000})
			c.SetSession("never", modernRevision)
			var d Delivery
			r := modernRequest(&d)
			n := 0
			r.OnNotification = func(method string, params []byte) {
				if n++; method != "notifications/progress" || !bytes.Contains(params, []byte("12345678901234567890")) {
					t.Errorf("notification %s %s", method, params)
				}
			}
			resp, err := c.Do(testContext(t), r)
			if err != nil {
				t.Fatal(err)
			}
			if d.State() != call.Confirmed || resp.HTTPStatus != tc.status || n != tc.notifications {
				t.Errorf("delivery %v, status %d, %d notifications", d.State(), resp.HTTPStatus, n)
			}
			if tc.rpcError == 0 && (resp.Error != nil || !bytes.HasPrefix(resp.Result, []byte(`{"content"`))) || tc.rpcError != 0 && (resp.Error == nil || resp.Error.Code != tc.rpcError) {
				t.Errorf("got result %s error %+v", resp.Result, resp.Error)
			}
			if resp.Header.Get("Mcp-Session-Id") != "" {
				t.Error("a session id came through")
			}
			if s := c.Stats(); s.Violations != tc.violations {
				t.Errorf("got %d violations, want %d", s.Violations, tc.violations)
			}
		})
	}
}

// R3.1: what never left this process is not_sent, and says so with certainty.
func TestR3_1_NotSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + l.Addr().String()
	l.Close()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	noTLS := rawServer(t, func(net.Conn, *http.Request, string) {})
	for _, tc := range []struct {
		name string
		ctx  context.Context
		o    HTTPOptions
		code call.Code
		want string
	}{
		{name: "connection refused", o: HTTPOptions{URL: refused}, code: call.CodeProviderLost, want: "refused"},
		{name: "no TLS there", o: HTTPOptions{URL: strings.Replace(noTLS, "http:", "https:", 1), DialTimeout: time.Second}, code: call.CodeProviderLost},
		{name: "blocked address", o: HTTPOptions{URL: "https://10.0.0.1/"}, code: call.CodeProviderRefused, want: "address_blocked"},
		{name: "metadata address", o: HTTPOptions{URL: "https://169.254.169.254/", AllowPrivateNet: true}, code: call.CodeProviderRefused, want: "address_blocked"},
		{name: "no credential", o: HTTPOptions{URL: refused, Credential: func() (string, error) { return "", errors.New("vault is locked") }}, code: call.CodeProviderUnavailable, want: "vault is locked"},
		{name: "credential with a line break", o: HTTPOptions{URL: refused, Credential: func() (string, error) { return "a\r\nX: y", nil }}, code: call.CodeProviderUnavailable},
		{name: "cancelled before", ctx: cancelled, o: HTTPOptions{URL: refused}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx := tc.ctx
			if ctx == nil {
				ctx = testContext(t)
			}
			var d Delivery
			_, err := newCarrier(t, tc.o).Do(ctx, modernRequest(&d))
			if d.State() != call.NotSent {
				t.Errorf("got delivery %v, want not_sent (%v)", d.State(), err)
			}
			if tc.ctx != nil {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want the context's error", err)
				}
				return
			}
			if f := wantFault(t, err); f.Code != tc.code || !strings.Contains(f.Detail, tc.want) || strings.Contains(f.Detail, "X: y") {
				t.Errorf("got %q %q, want %q %q", f.Code, f.Detail, tc.code, tc.want)
			}
		})
	}
	t.Run("closed carrier", func(t *testing.T) {
		c := newCarrier(t, HTTPOptions{URL: refused})
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		var d Delivery
		_, err := c.Do(testContext(t), modernRequest(&d))
		if f := wantFault(t, err); f.Code != call.CodeProviderLost || d.State() != call.NotSent || c.Err() == nil {
			t.Errorf("got %v, delivery %v", f, d.State())
		}
	})
}

// F-30, F-31: silence, comments and progress end with the call's own deadline, at once when it comes.
func TestF31_DeadlineHolds(t *testing.T) {
	for name, talk := range map[string]func(net.Conn) error{
		"silence":  func(net.Conn) error { return nil },
		"comments": func(c net.Conn) error { _, err := io.WriteString(c, ":\n\n"); return err },
		"progress": func(c net.Conn) error {
			_, err := io.WriteString(c, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n")
			return err
		},
		"one byte at a time": func(c net.Conn) error { _, err := io.WriteString(c, "d"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gone := make(chan struct{})
			url := rawServer(t, func(conn net.Conn, _ *http.Request, _ string) {
				defer close(gone)
				if name != "silence" {
					io.WriteString(conn, sseResponse(""))
				}
				done := make(chan struct{})
				go func() { io.Copy(io.Discard, conn); close(done) }() // ends when the client hangs up
				tick := time.NewTicker(5 * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-done:
						return
					case <-tick.C:
						if talk(conn) != nil {
							<-done
							return
						}
					}
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			defer cancel()
			var d Delivery
			_, err := newCarrier(t, HTTPOptions{URL: url}).Do(ctx, modernRequest(&d))
			if !errors.Is(err, context.DeadlineExceeded) || d.State() != call.DeliveryUnknown {
				t.Errorf("got %v, delivery %v", err, d.State())
			}
			select {
			case <-gone: // the stream was closed, which is the cancellation of the modern era
			case <-time.After(10 * time.Second):
				t.Error("the provider still has the connection")
			}
		})
	}
}

// F-32: a body that has begun must come at a pace.
func TestF32_SlowBody(t *testing.T) {
	url := rawServer(t, func(conn net.Conn, _ *http.Request, _ string) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
		for {
			if _, err := io.WriteString(conn, " "); err != nil {
				return
			}
			time.Sleep(2 * time.Millisecond) // the pace is what is tested
		}
	})
	var d Delivery
	_, err := newCarrier(t, HTTPOptions{URL: url, BodyWindow: 50 * time.Millisecond}).Do(testContext(t), modernRequest(&d))
	if f := wantFault(t, err); f.Code != call.CodeProviderLost || !strings.HasPrefix(f.Detail, "too_slow") || d.State() != call.DeliveryUnknown {
		t.Errorf("got %v, delivery %v", f, d.State())
	}
}

// F-30: a bound on the first byte, where one is set.
func TestF30_HeaderTimeout(t *testing.T) {
	url := rawServer(t, func(conn net.Conn, _ *http.Request, _ string) { io.Copy(io.Discard, conn) })
	var d Delivery
	_, err := newCarrier(t, HTTPOptions{URL: url, HeaderTimeout: 50 * time.Millisecond}).Do(testContext(t), modernRequest(&d))
	if f := wantFault(t, err); f.Code != call.CodeDeadlineExceeded || d.State() != call.DeliveryUnknown {
		t.Errorf("got %v, delivery %v", f, d.State())
	}
}

// R3.3: a request that may have been received is never sent again, and one that measurably has not may be.
func TestR3_3_NeverSentTwice(t *testing.T) {
	var posts atomic.Int32
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				br := bufio.NewReader(conn)
				for n := 0; ; n++ {
					req, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					io.Copy(io.Discard, req.Body)
					posts.Add(1)
					if n == 1 { // the second request of a kept connection is read, and then lost
						return
					}
					io.WriteString(conn, jsonResponse(okResult))
				}
			}()
		}
	}()
	c := newCarrier(t, HTTPOptions{URL: "http://" + l.Addr().String()})
	if _, err := c.Do(testContext(t), modernRequest(nil)); err != nil {
		t.Fatal(err)
	}
	var d Delivery
	_, err = c.Do(testContext(t), modernRequest(&d))
	if f := wantFault(t, err); f.Code != call.CodeProviderLost || d.State() != call.DeliveryUnknown {
		t.Errorf("got %v, delivery %v", f, d.State())
	}
	if got := posts.Load(); got != 2 {
		t.Errorf("the provider saw %d requests, want 2", got)
	}
}

// One bad answer ends one call and hurts no neighbour; afterwards nothing of ours is left.
func TestHTTP_NeighboursUnhurt(t *testing.T) {
	before := runtime.NumGoroutine()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		id, _, _ := strings.Cut(strings.TrimPrefix(string(b), `{"jsonrpc":"2.0","id":"`), `"`)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(id, "0"):
			io.WriteString(w, `{"jsonrpc":`)
			panic(http.ErrAbortHandler)
		case strings.HasSuffix(id, "1"):
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%q,\"result\":{}}\n\n", id)
		case strings.HasSuffix(id, "2"):
			w.WriteHeader(500)
		default:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%q,"result":{}}`, id)
		}
	}))
	c, err := NewHTTP(HTTPOptions{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			r := modernRequest(nil)
			r.ID = fmt.Sprintf("g%d", i)
			_, err := c.Do(ctx, r)
			if bad := i%10 == 0 || i%10 == 2; (err != nil) != bad {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	srv.Close()
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, %d now:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
		}
	}
	if s := c.Stats(); s.Open != 0 {
		t.Errorf("%d open", s.Open)
	}
}

// Closing ends open calls with what is known of their delivery, and does not wait for the provider.
func TestHTTP_CloseEndsOpenCalls(t *testing.T) {
	reached := make(chan struct{})
	url := rawServer(t, func(conn net.Conn, _ *http.Request, _ string) {
		close(reached)
		io.Copy(io.Discard, conn)
	})
	c := newCarrier(t, HTTPOptions{URL: url})
	var d Delivery
	result := make(chan error, 1)
	go func() {
		_, err := c.Do(context.Background(), modernRequest(&d))
		result <- err
	}()
	<-reached
	if err := c.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if f := wantFault(t, <-result); f.Code != call.CodeProviderLost || d.State() != call.DeliveryUnknown {
		t.Errorf("got %v, delivery %v", f, d.State())
	}
}

// F-18 for HTTP: a peer that never reads holds a large request up to its deadline and no longer. Part of it has left.
func TestHTTP_PeerNeverReads(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(testContext(t))
	held := make(chan struct{})
	go func() {
		defer close(held)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 1))
		cancel()
		<-t.Context().Done() // and never reads on; the test's context ends before its cleanup
	}()
	t.Cleanup(func() { <-held })
	var d Delivery
	r := modernRequest(&d)
	r.Params = []byte(`{"x":"` + strings.Repeat("x", 16<<20) + `"}`)
	_, err = newCarrier(t, HTTPOptions{URL: "http://" + l.Addr().String()}).Do(ctx, r)
	if !errors.Is(err, context.Canceled) || d.State() != call.DeliveryUnknown {
		t.Errorf("got %v, delivery %v", err, d.State())
	}
}

// A kept connection that the provider has closed meanwhile is no reason for a call to fail.
func TestHTTP_IdleConnectionClosedByPeer(t *testing.T) {
	var conns atomic.Int32
	url := rawServer(t, func(conn net.Conn, _ *http.Request, _ string) {
		conns.Add(1)
		io.WriteString(conn, jsonResponse(okResult)) // and no word that the connection ends
	})
	c := newCarrier(t, HTTPOptions{URL: url})
	for range 5 {
		if _, err := c.Do(testContext(t), modernRequest(nil)); err != nil {
			f := wantFault(t, err)
			if f.Code != call.CodeProviderLost { // the request met the close on the wire
				t.Errorf("got %v", f)
			}
		}
		time.Sleep(5 * time.Millisecond) // let the close arrive
	}
	if conns.Load() < 4 {
		t.Errorf("%d connections", conns.Load())
	}
}

// An event stream's connection is used again once the stream has ended after its answer.
func TestHTTP_StreamConnectionIsReused(t *testing.T) {
	var conns sync.Map
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conns.Store(r.RemoteAddr, true)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: "+okResult+"\n\n")
		w.(http.Flusher).Flush()
	}))
	defer srv.Close()
	c := newCarrier(t, HTTPOptions{URL: srv.URL})
	for range 5 {
		ctx, cancel := context.WithCancel(testContext(t))
		if _, err := c.Do(ctx, modernRequest(nil)); err != nil {
			t.Fatal(err)
		}
		cancel()
		for c.Stats().Open > 0 {
			runtime.Gosched()
		}
	}
	n := 0
	conns.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d connections for 5 calls", n)
	}
}

// R6.9: a provider that sends our credential back in bytes that are no HTTP does not get it into a fault's words.
func TestR6_9_EchoedCredential(t *testing.T) {
	url := rawServer(t, func(conn net.Conn, r *http.Request, _ string) {
		fmt.Fprintf(conn, "%s\r\n\r\n", r.Header.Get("Authorization"))
	})
	c := newCarrier(t, HTTPOptions{URL: url, Credential: func() (string, error) { return "canary-token", nil }})
	_, err := c.Do(testContext(t), modernRequest(nil))
	if f := wantFault(t, err); f.Code != call.CodeProtocolError || strings.Contains(f.Error(), "canary") {
		t.Errorf("got %v", f)
	}
}
