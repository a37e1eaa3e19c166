//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// server is a small MCP server of one era that refuses streams after the first
// ten and ends every fifth.
func server(t *testing.T, modern bool) string {
	t.Helper()
	var streams, sessions atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments struct{ Text string } }
		}
		json.NewDecoder(r.Body).Decode(&m)
		switch {
		case r.Method == "GET" && !modern, m.Method == "subscriptions/listen":
			n := streams.Add(1)
			if n > 10 {
				http.Error(w, "enough", http.StatusTooManyRequests)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			if modern {
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{}}\n\n")
			}
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
			w.(http.Flusher).Flush()
			if n%5 != 0 {
				<-r.Context().Done()
			}
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", fmt.Sprint(sessions.Add(1)))
			io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		case m.Method == "tools/call":
			b, _ := json.Marshal(m.Params.Arguments.Text)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]}}`, m.ID, b)
		default:
			w.WriteHeader(202)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestStreamsAreCounted(t *testing.T) {
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	os.WriteFile(pid, []byte(fmt.Sprint(os.Getpid())), 0o600)
	file := filepath.Join(dir, "targets.json")
	out := filepath.Join(dir, "out.json")
	text := fmt.Sprintf(`[{"name":"new","url":"%s","path":"/","era":"modern","pid_file":%q},{"name":"old","url":"%s","path":"/","era":"legacy","pid_file":%q},{"name":"blind","url":"%[1]s","path":"/","era":"modern"}]`,
		server(t, true), pid, server(t, false), pid)
	os.WriteFile(file, []byte(text), 0o600)
	o := options{targets: file, json: out, n: 12, parallel: 3, hold: 200 * time.Millisecond, settle: 50 * time.Millisecond, timeout: 5 * time.Second}
	var b strings.Builder
	if err := measure(t.Context(), o, &b); err != nil {
		t.Fatal(err)
	}
	raw, _ := os.ReadFile(out)
	var rows []row
	if err := json.Unmarshal(raw, &rows); err != nil || len(rows) != 3 {
		t.Fatal(err, b.String())
	}
	for _, r := range rows[:2] {
		if r.Opened != 10 || r.Failed != 2 || r.Kept != 8 || r.Events != 10 || !strings.Contains(r.Fault, "429") || r.Before == 0 || r.Open == 0 || r.After == 0 {
			t.Errorf("%+v", r)
		}
	}
	if rows[0].Sessions != 0 || rows[1].Sessions == 0 {
		t.Errorf("sessions %d and %d", rows[0].Sessions, rows[1].Sessions)
	}
	if !strings.Contains(rows[2].Fault, "no process") {
		t.Errorf("blind: %q", rows[2].Fault)
	}
}
