package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// serve answers each call with what reply makes of its id and text.
func serve(t *testing.T, reply func(w http.ResponseWriter, id json.RawMessage, text string)) *Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Params struct{ Arguments struct{ Text string } }
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Errorf("request: %v", err)
		}
		reply(w, m.ID, m.Params.Arguments.Text)
	}))
	t.Cleanup(s.Close)
	c := NewClient(Endpoint{Addr: s.Listener.Addr().String(), Path: "/mcp", Modern: true}, 5*time.Second)
	t.Cleanup(c.Close)
	return c
}

func answer(id, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]}}`, id, text)
}

func TestAnswersAreChecked(t *testing.T) {
	const id = "1000000000007"
	good := func(text string) string { b, _ := json.Marshal(text); return string(b) }
	cases := []struct {
		name     string
		body     func(text string) string
		mismatch bool
		err      string // part of the error; none if empty
	}{
		{"right", func(s string) string { return answer(id, good(s)) }, false, ""},
		{"blanks and order", func(s string) string {
			return ` { "result" : {"_meta":{}, "content":[ {"text": ` + good(s) + `, "type":"text"} ] }, "id" : ` + id + ` } `
		}, false, ""},
		{"escaped otherwise", func(s string) string { return answer(id, `"\u0031`+strings.TrimPrefix(good(s), `"1`)) }, false, ""},
		{"another id", func(s string) string { return answer("1000000000008", good(s)) }, true, "mismatch"},
		{"id as a string", func(s string) string { return answer(`"`+id+`"`, good(s)) }, true, "mismatch"},
		{"no id", func(s string) string { return `{"jsonrpc":"2.0","result":{}}` }, true, "mismatch"},
		{"another call's text", func(s string) string { return answer(id, good("1000000000008"+s[13:])) }, true, "mismatch"},
		{"text cut short", func(s string) string { return answer(id, good(s[:50])) }, true, "mismatch"},
		{"no content", func(s string) string { return `{"id":` + id + `,"result":{"content":[]}}` }, true, "mismatch"},
		{"tool error", func(s string) string {
			return `{"id":` + id + `,"result":{"content":[{"type":"text","text":"broken"}],"isError":true}}`
		}, false, "broken"},
		{"JSON-RPC error", func(s string) string { return `{"id":` + id + `,"error":{"code":-32000,"message":"no"}}` }, false, "-32000"},
		{"not JSON", func(s string) string { return `<html>` }, false, "malformed"},
		{"empty", func(s string) string { return `` }, false, "no response"},
	}
	for _, stream := range []bool{false, true} {
		for _, tc := range cases {
			c := serve(t, func(w http.ResponseWriter, _ json.RawMessage, text string) {
				if !stream {
					io.WriteString(w, tc.body(text))
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, ": hi\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\ndata: %s\n\n", tc.body(text))
			})
			_, err := c.NewEcho("echo", 100, Plain).Do(1000000000007)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s (stream %v): %v, want %q", tc.name, stream, err, tc.err)
			}
			if errors.Is(err, ErrMismatch) != tc.mismatch {
				t.Errorf("%s (stream %v): mismatch %v", tc.name, stream, !tc.mismatch)
			}
		}
	}
}

func TestStatusIsAnError(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ json.RawMessage, _ string) {
		http.Error(w, "go away", http.StatusTooManyRequests)
	})
	var status *StatusError
	if _, err := c.NewEcho("echo", 20, Plain).Do(1e12); !errors.As(err, &status) || status.Status != http.StatusTooManyRequests || !strings.Contains(status.Body, "go away") {
		t.Errorf("got %v", err)
	}
}

// Every call carries its own id in its text, and the text has the size asked for.
func TestEchoTexts(t *testing.T) {
	for _, kind := range []string{Plain, Mixed} {
		for _, size := range []int{0, 1, 13, 14, 100, 101, 102, 103, 5000} {
			var got []string
			c := serve(t, func(w http.ResponseWriter, id json.RawMessage, text string) {
				got = append(got, text)
				b, _ := json.Marshal(text)
				io.WriteString(w, answer(string(id), string(b)))
			})
			call := c.NewEcho("echo", size, kind)
			for id := range int64(2) {
				if _, err := call.Do(1234567890120 + id); err != nil {
					t.Errorf("%s %d: %v", kind, size, err)
				}
			}
			for i, text := range got {
				if len(text) != size || !utf8.ValidString(text) {
					t.Errorf("%s %d: text of %d bytes", kind, size, len(text))
				}
				if id := fmt.Sprint(1234567890120 + int64(i)); size >= 13 && text[:13] != id {
					t.Errorf("%s %d: begins with %s, want %s", kind, size, text[:13], id)
				}
			}
		}
	}
}

func TestLegacySessionIsCarried(t *testing.T) {
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen = append(seen, fmt.Sprintf("%s %s %q %s", r.Method, r.Header.Get("Mcp-Session-Id"), r.Header.Get("Mcp-Protocol-Version"), r.Header.Get("X-Key")))
		switch {
		case strings.Contains(string(b), `"initialize"`):
			w.Header().Set("Mcp-Session-Id", "abc")
			io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		case r.Method == "POST":
			w.WriteHeader(202)
		}
	}))
	defer s.Close()
	c := NewClient(Endpoint{Addr: s.Listener.Addr().String(), Path: "/mcp", Headers: map[string]string{"X-Key": "k"}}, 5*time.Second)
	if err := c.Open(); err != nil {
		t.Fatal(err)
	}
	c.Close()
	want := []string{`POST  "" k`, `POST abc "2025-11-25" k`, `DELETE abc "2025-11-25" k`}
	if strings.Join(seen, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", seen, want)
	}
}
