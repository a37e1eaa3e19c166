package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ostiary/ostiary/call"
)

// R1.8: the handshake era over HTTP: session header, answering a ping that comes on a call's stream, DELETE.
func TestR1_8_LegacySession(t *testing.T) {
	answered := make(chan string, 1)
	var deleted atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Session-Id") != "s1" || r.Header.Get("Mcp-Protocol-Version") != "2025-11-25" {
			t.Errorf("%s: header %v", r.Method, r.Header)
		}
		b, _ := io.ReadAll(r.Body)
		switch {
		case r.Method == "DELETE":
			deleted.Store(true)
		case bytes.Contains(b, []byte("tools/call")):
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n\n")
			w.(http.Flusher).Flush()
			if got := <-answered; got != `{"jsonrpc":"2.0","id":7,"result":{}}` {
				t.Errorf("ping was answered by %s", got)
			}
			io.WriteString(w, "data: "+okResult+"\n\n")
		default:
			answered <- string(b)
			w.WriteHeader(202)
		}
	}))
	defer srv.Close()
	var c *HTTPCarrier
	c = newCarrier(t, HTTPOptions{URL: srv.URL, OnRequest: func(id []byte, method string, _ []byte) {
		if method != "ping" {
			t.Errorf("got %s", method)
		}
		if err := c.Reply(context.Background(), id, []byte("{}"), nil, nil); err != nil {
			t.Error(err)
		}
	}})
	c.SetSession("s1", "2025-11-25")
	if _, err := c.Do(testContext(t), &Request{ID: "g1", Method: "tools/call"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(testContext(t)); err != nil || !deleted.Load() {
		t.Errorf("delete: %v", err)
	}
	if s := c.Stats(); s.Violations != 0 {
		t.Errorf("stats %+v", s)
	}
}

// R1.8: in the modern era there is nothing to delete, and notifications carry no session.
func TestR1_8_ModernHasNoSession(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" || r.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s %v", r.Method, r.Header)
		}
		w.WriteHeader(202)
	}))
	defer srv.Close()
	c := newCarrier(t, HTTPOptions{URL: srv.URL})
	c.SetSession("s1", modernRevision)
	if err := c.Delete(testContext(t)); err != nil {
		t.Error(err)
	}
	if err := c.Notify(testContext(t), "notifications/x", nil, http.Header{"Mcp-Session-Id": {"s2"}}); err != nil {
		t.Error(err)
	}
}

func TestHTTP_NotifyRefused(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }))
	defer srv.Close()
	err := newCarrier(t, HTTPOptions{URL: srv.URL}).Notify(testContext(t), "notifications/x", []byte("{}"), nil)
	if f := wantFault(t, err); f.Code != call.CodeProviderRefused || f.HTTPStatus != 403 {
		t.Errorf("got %v", f)
	}
}

func TestHTTP_Listen(t *testing.T) {
	t.Run("not offered", func(t *testing.T) {
		for _, status := range []int{404, 405} {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
			defer srv.Close()
			err := newCarrier(t, HTTPOptions{URL: srv.URL}).Listen(testContext(t), nil, nil)
			if !NotOffered(err) {
				t.Errorf("%d: got %v", status, err)
			}
		}
	})
	t.Run("until ctx ends", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != "GET" || r.Header.Get("Accept") != "text/event-stream" || r.Header.Get("X-One") != "1" {
				t.Errorf("%s %v", r.Method, r.Header)
			}
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, ": hello\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"zz\",\"result\":{}}\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}))
		defer srv.Close()
		c := newCarrier(t, HTTPOptions{URL: srv.URL})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		opened := 0
		err := c.ListenOpen(ctx, http.Header{"X-One": {"1"}}, func() { opened++ }, func(method string, _ []byte) {
			if method != "notifications/tools/list_changed" {
				t.Errorf("got %s", method)
			}
			cancel()
		})
		if !errors.Is(err, context.Canceled) || opened != 1 {
			t.Errorf("got %v, opened %d", err, opened)
		}
		if s := c.Stats(); s.Strays != 1 {
			t.Errorf("stats %+v", s)
		}
	})
	t.Run("ends with the stream", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
		}))
		defer srv.Close()
		err := newCarrier(t, HTTPOptions{URL: srv.URL}).Listen(testContext(t), nil, nil)
		if f := wantFault(t, err); f.Code != call.CodeProviderLost {
			t.Errorf("got %v", f)
		}
	})
}

// R15.5, S-047: in the handshake era a stream that broke off after an event with an id is taken up again by GET, after the
// time the server asked for, and the call is posted once. In the modern era it is lost.
func TestR15_5_Resume(t *testing.T) {
	for _, version := range []string{"2025-11-25", modernRevision} {
		t.Run(version, func(t *testing.T) {
			var posts, gets atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				if r.Method == "POST" {
					posts.Add(1)
					io.WriteString(w, "id: e1\nretry: 5\ndata:\n\n")
					return
				}
				n := gets.Add(1)
				if got := r.Header.Get("Last-Event-Id"); got != fmt.Sprintf("e%d", n) {
					t.Errorf("Last-Event-Id %q at GET %d", got, n)
				}
				if n < 8 { // progress each time: more often than an idle stream would be resumed
					fmt.Fprintf(w, "id: e%d\nretry: 5\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n", n+1)
					return
				}
				io.WriteString(w, "data: "+okResult+"\n\n")
			}))
			defer srv.Close()
			c := newCarrier(t, HTTPOptions{URL: srv.URL})
			c.SetSession("s1", version)
			var d Delivery
			_, err := c.Do(testContext(t), &Request{ID: "g1", Method: "tools/call", Delivery: &d})
			if posts.Load() != 1 {
				t.Errorf("%d posts", posts.Load())
			}
			if version == modernRevision {
				if f := wantFault(t, err); f.Code != call.CodeProviderLost || gets.Load() != 0 || d.State() != call.DeliveryUnknown {
					t.Errorf("got %v, %d GETs, %v", f, gets.Load(), d.State())
				}
				return
			}
			if err != nil || d.State() != call.Confirmed || gets.Load() != 8 {
				t.Errorf("got %v, %v, %d GETs", err, d.State(), gets.Load())
			}
		})
	}
	t.Run("bounded", func(t *testing.T) {
		var gets atomic.Int32
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if r.Method == "GET" {
				gets.Add(1)
			}
			io.WriteString(w, "id: same\nretry: 1\ndata:\n\n")
		}))
		defer srv.Close()
		c := newCarrier(t, HTTPOptions{URL: srv.URL})
		_, err := c.Do(testContext(t), &Request{ID: "g1", Method: "tools/call"})
		if f := wantFault(t, err); f.Code != call.CodeProviderLost || gets.Load() == 0 || gets.Load() > maxResumes+1 {
			t.Errorf("got %v after %d GETs", f, gets.Load())
		}
	})
}

// The carrier's memory of a large message is not kept in its pools.
func TestHTTP_LargeAnswers(t *testing.T) {
	big := strings.Repeat("x", 3<<20)
	body := `{"jsonrpc":"2.0","id":"g1","result":{"content":[{"type":"text","text":"` + big + `"}]}}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RawQuery {
		case "sse":
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: "+body+"\n\n")
		case "length":
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			fallthrough
		default:
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, body)
		}
	}))
	defer srv.Close()
	for _, q := range []string{"sse", "length", "chunked"} {
		resp, err := newCarrier(t, HTTPOptions{URL: srv.URL + "?" + q}).Do(testContext(t), modernRequest(nil))
		if err != nil || len(resp.Result) < len(big) {
			t.Errorf("%s: got %d bytes, %v", q, len(resp.Result), err)
		}
	}
}
