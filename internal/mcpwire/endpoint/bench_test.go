package endpoint

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/call"
)

// sink is a ResponseWriter that costs nothing.
type sink struct {
	h http.Header
	n int
}

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(b []byte) (int, error) { s.n += len(b); return len(b), nil }

func benchEndpoint(b *testing.B, result []byte, tools ...Tool) *Endpoint {
	if tools == nil {
		tools = []Tool{echoTool()}
	}
	e, err := New(Options{
		Caller: callerFunc(func(context.Context, call.Request) call.Reply { return call.Reply{Outcome: okOutcome, Result: result} }),
		Authenticate: func(_ context.Context, bearer string) (call.Principal, bool) {
			return call.Principal{ID: "alice"}, bearer == aliceToken
		},
		Exports: []Export{{Name: "x", Tools: tools}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// BenchmarkModernCall is what the endpoint itself adds to a call: from the handler to the caller and back, without a
// connection. The second figure of the name is the size of arguments and result.
func BenchmarkModernCall(b *testing.B) {
	for _, size := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			pad := strings.Repeat("x", size)
			e := benchEndpoint(b, []byte(`{"content":[{"type":"text","text":"`+pad+`"}]}`))
			h := e.Handler("x")
			body := []byte(modernBody("1", "tools/call", `"name":"echo","arguments":{"text":"`+pad+`"}`, ""))
			header := http.Header{"Authorization": {"Bearer " + aliceToken}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
				"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"echo"}}
			reader := bytes.NewReader(body)
			r := httptest.NewRequest("POST", "http://localhost/v1/mcp", nil)
			r.Header, r.ContentLength, r.Body = header, int64(len(body)), io.NopCloser(reader)
			w := &sink{h: http.Header{}}
			b.ReportAllocs()
			b.SetBytes(int64(2 * size))
			for b.Loop() {
				reader.Reset(body)
				h.ServeHTTP(w, r)
			}
			if w.n < size*b.N {
				b.Fatal("no answers")
			}
		})
	}
}

// BenchmarkRoundTrip is a whole call over loopback, client and server, in each era; BenchmarkRoundTrip/floor is net/http
// answering the same bytes without looking at them.
func BenchmarkRoundTrip(b *testing.B) {
	pad := strings.Repeat("x", 100)
	e := benchEndpoint(b, []byte(`{"content":[{"type":"text","text":"`+pad+`"}]}`))
	mux := http.NewServeMux()
	mux.Handle("/v1/mcp", e.Handler("x"))
	mux.HandleFunc("/floor", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	client := srv.Client()
	post := func(path, body string, header http.Header) http.Header {
		r, _ := http.NewRequest("POST", srv.URL+path, strings.NewReader(body))
		r.Header = header.Clone()
		resp, err := client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		out, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !bytes.Contains(out, []byte("xxx")) && path != "/v1/mcp" {
			b.Fatalf("%d %s %v", resp.StatusCode, out, err)
		}
		return resp.Header
	}
	base := http.Header{"Authorization": {"Bearer " + aliceToken}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	modern := base.Clone()
	modern["Mcp-Protocol-Version"], modern["Mcp-Method"], modern["Mcp-Name"] = []string{"2026-07-28"}, []string{"tools/call"}, []string{"echo"}
	modernCall := modernBody("1", "tools/call", `"name":"echo","arguments":{"text":"`+pad+`"}`, "")
	session := post("/v1/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, base)
	legacy := base.Clone()
	legacy["Mcp-Session-Id"] = session["Mcp-Session-Id"]
	legacyCall := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + pad + `"}}}`
	for _, c := range []struct {
		name, path, body string
		header           http.Header
	}{{"floor", "/floor", modernCall, base}, {"modern", "/v1/mcp", modernCall, modern}, {"legacy", "/v1/mcp", legacyCall, legacy}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				post(c.path, c.body, c.header)
			}
		})
	}
}

// BenchmarkList is a listing of ten thousand tools, one page at a time.
func BenchmarkList(b *testing.B) {
	tools := make([]Tool, 10_000)
	for i := range tools {
		tools[i] = tool(fmt.Sprintf("t%d", i), fmt.Sprintf(`{"name":"t%d","description":"%s","inputSchema":{"type":"object"}}`, i, strings.Repeat("d", 250)))
	}
	e := benchEndpoint(b, nil, tools...)
	h := e.Handler("x")
	body := []byte(modernBody("1", "tools/list", "", ""))
	reader := bytes.NewReader(body)
	r := httptest.NewRequest("POST", "http://localhost/v1/mcp", nil)
	r.Header = http.Header{"Authorization": {"Bearer " + aliceToken}, "Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/list"}}
	r.ContentLength, r.Body = int64(len(body)), io.NopCloser(reader)
	w := &sink{h: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(body)
		h.ServeHTTP(w, r)
	}
	b.ReportMetric(float64(len(e.exports["x"].listing.Load().pages)), "pages")
}
