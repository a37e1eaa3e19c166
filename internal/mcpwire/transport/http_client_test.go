package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/call"
)

// sdkServer is an MCP server of the SDK behind a handler that can spoil its answers.
func sdkServer(t *testing.T, spoil func(w http.ResponseWriter, r *http.Request, body []byte) bool) *httptest.Server {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "srv", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(b))
		if spoil == nil || !spoil(w, r, b) {
			h.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

func connectSDK(t *testing.T, c *HTTPCarrier, url string) *mcp.ClientSession {
	t.Helper()
	cl := mcp.NewClient(&mcp.Implementation{Name: "cl", Version: "1"}, nil)
	cs, err := cl.Connect(testContext(t), &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: c.HTTPClient(), DisableStandaloneSSE: true, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return cs
}

// R1.13, R3.9: under the SDK's own transport a bad answer fails its call alone, the session lives, and the fault can be read.
func TestHTTPClient_BadAnswersSpareTheSession(t *testing.T) {
	for _, tc := range []struct {
		name, answer string
		code         call.Code
	}{
		{"json cut", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"js", call.CodeProviderLost},
		{"no JSON", jsonResponse("<html>"), call.CodeProtocolError},
		{"wrong id", jsonResponse(`{"jsonrpc":"2.0","id":"zz","result":{}}`), call.CodeProtocolError},
		{"html", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi", call.CodeProtocolError},
		{"401", "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", call.CodeProviderRefused},
		{"500", "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", call.CodeProviderRefused},
		{"redirect", "HTTP/1.1 307 Go\r\nLocation: http://mcp.example/\r\nContent-Length: 0\r\n\r\n", call.CodeProviderRefused},
		{"too large", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + strings.Repeat("x", 2<<20), call.CodeResultTooLarge},
		{"sse garbage", sseResponse("id: 1\ndata: hi\n\n"), call.CodeProtocolError},
		{"sse without an answer", sseResponse("id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n"), call.CodeProviderLost},
		{"sse wrong id", sseResponse("data: {\"jsonrpc\":\"2.0\",\"id\":\"zz\",\"result\":{}}\n\n"), call.CodeProtocolError},
		{"close", "", call.CodeProviderLost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var bad atomic.Bool
			srv := sdkServer(t, func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
				if !bad.Load() || !bytes.Contains(body, []byte("tools/call")) {
					return false
				}
				conn, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return true
				}
				io.WriteString(conn, strings.Replace(tc.answer, "\r\n", "\r\nConnection: close\r\n", 1)) // the next call shall not meet the close
				conn.Close()
				return true
			})
			c := newCarrier(t, HTTPOptions{URL: srv.URL, MaxMessage: 1 << 20})
			cs := connectSDK(t, c, srv.URL)
			bad.Store(true)
			ctx, caught := CatchFault(testContext(t))
			_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "echo"})
			if err == nil {
				t.Fatal("a bad answer was taken for a good one")
			}
			if f, ok := errors.AsType[*Fault](caught.Err()); !ok || f.Code != tc.code {
				t.Errorf("caught %v (%v), want %s", caught.Err(), err, tc.code)
			}
			bad.Store(false)
			res, err := cs.CallTool(testContext(t), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"a": 1}})
			if err != nil || res.Content[0].(*mcp.TextContent).Text != `{"a":1}` {
				t.Errorf("the session did not survive: %v", err)
			}
		})
	}
}

// The same client carries a whole session, with credential and headers, to the provider's URL and to no other.
func TestHTTPClient_Session(t *testing.T) {
	var deleted atomic.Bool
	srv := sdkServer(t, func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.Header.Get("Authorization") != "Bearer tok" || r.Header.Get("X-Team") != "blue" {
			t.Errorf("%s: header %v", r.Method, r.Header)
		}
		if r.Method == "DELETE" {
			deleted.Store(true)
		}
		return false
	})
	c := newCarrier(t, HTTPOptions{URL: srv.URL, Headers: map[string]string{"X-Team": "blue"}, Credential: func() (string, error) { return "tok", nil }})
	cs := connectSDK(t, c, srv.URL)
	if cs.ID() == "" {
		t.Error("no session id")
	}
	for i := range 3 {
		if _, err := cs.CallTool(testContext(t), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"i": fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := cs.Close(); err != nil || !deleted.Load() {
		t.Errorf("close: %v, deleted %v", err, deleted.Load())
	}
	req, _ := http.NewRequestWithContext(testContext(t), "POST", srv.URL+"/elsewhere", strings.NewReader("{}"))
	resp, err := c.HTTPClient().Do(req)
	if err == nil {
		resp.Body.Close()
		t.Error("a request to another URL was sent")
	}
	for ctx := testContext(t); c.Stats().Open > 0; runtime.Gosched() { // the SDK reads streams to their end by itself
		if ctx.Err() != nil {
			t.Fatalf("%d open", c.Stats().Open)
		}
	}
}

// A session that the server has ended is known as such to the SDK.
func TestHTTPClient_SessionGone(t *testing.T) {
	var gone atomic.Bool
	srv := sdkServer(t, func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if gone.Load() {
			http.Error(w, "session not found", 404)
		}
		return gone.Load()
	})
	cs := connectSDK(t, newCarrier(t, HTTPOptions{URL: srv.URL}), srv.URL)
	gone.Store(true)
	if _, err := cs.CallTool(testContext(t), &mcp.CallToolParams{Name: "echo"}); !errors.Is(err, mcp.ErrSessionMissing) {
		t.Errorf("got %v", err)
	}
}

func benchmarkServer(b *testing.B, size int) string {
	body := `{"jsonrpc":"2.0","id":"g1","result":{"content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body)
	}))
	b.Cleanup(srv.Close)
	return srv.URL
}

func BenchmarkHTTPDo(b *testing.B) {
	for _, size := range []int{100, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			url := benchmarkServer(b, size)
			b.Run("carrier", func(b *testing.B) {
				c, err := NewHTTP(HTTPOptions{URL: url})
				if err != nil {
					b.Fatal(err)
				}
				ctx, cancel := context.WithCancel(b.Context())
				defer cancel()
				b.ReportAllocs()
				for b.Loop() {
					var d Delivery
					if _, err := c.Do(ctx, modernRequest(&d)); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("bare", func(b *testing.B) { // the floor: the same transport and nothing else
				c, _ := NewHTTP(HTTPOptions{URL: url})
				b.ReportAllocs()
				for b.Loop() {
					req, _ := http.NewRequestWithContext(b.Context(), "POST", url, strings.NewReader(`{"jsonrpc":"2.0","id":"g1","method":"tools/call","params":{"name":"x"}}`))
					resp, err := c.transport.RoundTrip(req)
					if err != nil {
						b.Fatal(err)
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		})
	}
}
