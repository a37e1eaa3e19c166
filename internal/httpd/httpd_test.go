package httpd

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary/ostiary/internal/identity"
)

const token = "0123456789abcdef-token"

func guard(t *testing.T) *identity.Guard {
	t.Helper()
	tokens, err := identity.NewTokens([]identity.Credential{{Principal: "alice", Token: token}})
	if err != nil {
		t.Fatal(err)
	}
	return identity.NewGuard(tokens.Authenticate, nil)
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Stop(ctx)
	})
	return s
}

func get(t *testing.T, s *Server, path string, edit ...func(*http.Request)) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edit {
		e(r)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func bearer(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }

func TestHealthReadinessAndGating(t *testing.T) {
	var ready atomic.Bool
	s := start(t, Options{
		Guard: guard(t),
		Ready: func() (bool, string) { return ready.Load(), "provider files: starting" },
		Mount: map[string]http.Handler{"/v1/mcp": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "mcp") })},
	})
	check := func(path string, want int, wantBody string) {
		t.Helper()
		code, h, body := get(t, s, path)
		if code != want || !strings.Contains(body, wantBody) {
			t.Errorf("%s: %d %q; want %d with %q", path, code, body, want, wantBody)
		}
		if (code == 503) != (h.Get("Retry-After") != "") {
			t.Errorf("%s: %d with Retry-After %q", path, code, h.Get("Retry-After"))
		}
	}
	check("/healthz", 200, "ok")
	check("/readyz", 503, "provider files: starting")
	check("/v1/mcp", 503, "")
	check("/whatever", 503, "")
	ready.Store(true)
	check("/readyz", 200, "ok")
	check("/v1/mcp", 200, "mcp")
	s.Drain()
	check("/healthz", 200, "ok")
	check("/readyz", 503, "draining")
	check("/v1/mcp", 503, "")
}

// S-033, A-47: a path that nobody mounted asks for a credential before it says that it does not exist; without any token
// configured there is nothing to ask for (R10.1).
func TestS033_UnknownPaths(t *testing.T) {
	s := start(t, Options{Guard: guard(t), Mount: map[string]http.Handler{"/files/": http.NotFoundHandler()}})
	for _, path := range []string{"/", "/v1/mcp", "/v1/mcp/", "//v1/mcp", "/%2e%2e/healthz", "/healthz/", "/.well-known/oauth-protected-resource", "/files", "/debug/pprof/"} {
		code, h, _ := get(t, s, path)
		if code != 401 || !strings.HasPrefix(h.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s without a token: %d, WWW-Authenticate %q", path, code, h.Get("WWW-Authenticate"))
		}
		if code, _, _ := get(t, s, path, bearer); code != 404 {
			t.Errorf("%s with a token: %d, want 404", path, code)
		}
	}
	open := start(t, Options{})
	if code, _, _ := get(t, open, "/v1/mcp"); code != 404 {
		t.Errorf("R10.1: /v1/mcp without any token configured: %d, want 404", code)
	}
}

// the perimeter stands before every path.
func TestA42_ReboundHostIsRefusedEverywhere(t *testing.T) {
	s := start(t, Options{Guard: guard(t)})
	for _, path := range []string{"/healthz", "/readyz", "/v1/mcp", "/x"} {
		code, _, _ := get(t, s, path, bearer, func(r *http.Request) { r.Host = "rebind.evil:80" })
		if code != 403 {
			t.Errorf("%s: %d, want 403", path, code)
		}
	}
}

// F-64: a panic is that request's 500 and nobody else's; a half-written answer is cut, not completed.
func TestF64_PanicIsOneRequests500(t *testing.T) {
	var logs bytes.Buffer
	s := start(t, Options{
		Logger: slog.New(slog.NewTextHandler(&logs, nil)),
		Mount: map[string]http.Handler{
			"/panic": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret-of-the-caller") }),
			"/half": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "half")
				_ = http.NewResponseController(w).Flush()
				panic("late")
			}),
			"/ok": http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		}})
	if code, _, body := get(t, s, "/panic"); code != 500 || strings.Contains(body, "secret") {
		t.Errorf("panic: %d %q", code, body)
	}
	resp, err := http.Get("http://" + s.Addr().String() + "/half")
	if err == nil {
		if _, err = io.ReadAll(resp.Body); err == nil {
			t.Error("a half answer ended as if it were whole")
		}
		resp.Body.Close()
	}
	if code, _, _ := get(t, s, "/ok"); code != 200 {
		t.Errorf("after the panics: %d", code)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(logs.String(), "secret-of-the-caller") || !strings.Contains(logs.String(), "panic in a handler") {
		t.Errorf("log: %s", logs.String())
	}
}

func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

// F-46: slow headers, slow bodies, large headers, smuggling, too many connections.
func TestF46_SlowAndLargeClients(t *testing.T) {
	read := make(chan error, 1)
	s := start(t, Options{
		ReadHeaderTimeout: 50 * time.Millisecond, BodyIdle: 50 * time.Millisecond,
		Mount: map[string]http.Handler{"/body": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			read <- err
			if err != nil {
				w.WriteHeader(http.StatusRequestTimeout)
			}
		})},
	})
	t.Run("headers", func(t *testing.T) {
		c := dial(t, s)
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
		if b, err := io.ReadAll(c); err != nil || strings.Contains(string(b), "200") {
			t.Errorf("got %q, %v", b, err)
		}
	})
	t.Run("body", func(t *testing.T) {
		c := dial(t, s)
		fmt.Fprintf(c, "POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != 408 {
			t.Errorf("got %v, %v", resp, err)
		}
		if err := <-read; err == nil {
			t.Error("the body was read whole")
		}
	})
	t.Run("body that nobody reads", func(t *testing.T) {
		c := dial(t, s)
		fmt.Fprintf(c, "POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nabc")
		if b, err := io.ReadAll(c); err != nil || !strings.Contains(string(b), " 404 ") {
			t.Errorf("got %q, %v", b, err)
		}
	})
	t.Run("large header", func(t *testing.T) {
		c := dial(t, s)
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Big: %s\r\n\r\n", strings.Repeat("a", 64<<10))
		b, _ := io.ReadAll(c) // a reset may follow the answer
		if !strings.Contains(string(b), " 431 ") {
			t.Errorf("got %.100q", b)
		}
	})
	t.Run("CL and TE", func(t *testing.T) {
		c := dial(t, s)
		fmt.Fprintf(c, "POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode < 400 {
			t.Errorf("got %v, %v", resp, err)
		}
	})
	t.Run("connections", func(t *testing.T) {
		s := start(t, Options{MaxConns: 2})
		held := []net.Conn{dial(t, s), dial(t, s)}
		third := dial(t, s)
		if b, _ := io.ReadAll(third); len(b) != 0 {
			t.Errorf("the third connection got %q", b)
		}
		held[0].Close()
		for deadline := time.Now().Add(10 * time.Second); ; {
			c := dial(t, s)
			fmt.Fprintf(c, "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
			if b, _ := io.ReadAll(c); strings.Contains(string(b), " 200 ") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("a closed connection did not make room")
			}
		}
	})
}

// A request longer than the body's deadlines goes on: they end with the body, and are not taken for a disconnect.
func TestDeadlinesOfTheBodyEndWithIt(t *testing.T) {
	s := start(t, Options{BodyIdle: 30 * time.Millisecond, BodyTotal: 30 * time.Millisecond,
		Mount: map[string]http.Handler{"/long": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			select {
			case <-r.Context().Done():
				w.WriteHeader(500)
			case <-time.After(150 * time.Millisecond): // five times the deadline
			}
		})}})
	resp, err := http.Post("http://"+s.Addr().String()+"/long", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("status %d: the deadline of the body ended the request", resp.StatusCode)
	}
}

// Stop returns at its bound whatever a handler does, and is safe before Start and twice.
func TestStopIsBounded(t *testing.T) {
	entered := make(chan struct{})
	s := start(t, Options{Mount: map[string]http.Handler{"/hang": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})}})
	go func() {
		if resp, err := http.Get("http://" + s.Addr().String() + "/hang"); err == nil {
			resp.Body.Close()
		}
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx); err == nil {
		t.Error("Stop says that nothing was cut")
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	fresh, err := New(Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.Stop(t.Context()); err != nil {
		t.Errorf("Stop before Start: %v", err)
	}
	if err := fresh.Start(t.Context()); err == nil {
		t.Error("Start after Stop succeeded")
	}
}

func TestNewRefuses(t *testing.T) {
	h := http.NotFoundHandler()
	for _, o := range []Options{{Listen: "7411"}, {Listen: ":0", Mount: map[string]http.Handler{"x": h}}, {Listen: ":0", Mount: map[string]http.Handler{"/healthz": h}}, {Listen: ":0", Mount: map[string]http.Handler{"/x": nil}}} {
		if _, err := New(o); err == nil {
			t.Errorf("New(%+v) accepted it", o)
		}
	}
}

// S-046: a client that goes away while its request is at work is noticed, after the body was read under deadlines.
func TestDisconnectReachesTheHandler(t *testing.T) {
	entered, gone := make(chan struct{}), make(chan struct{})
	s := start(t, Options{Mount: map[string]http.Handler{"/wait": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		close(entered)
		<-r.Context().Done()
		close(gone)
	})}})
	c := dial(t, s)
	fmt.Fprintf(c, "POST /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
	<-entered
	c.Close()
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		t.Fatal("the handler did not learn that the client has gone")
	}
}
