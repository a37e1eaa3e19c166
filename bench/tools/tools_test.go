//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestListsAllPages(t *testing.T) {
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Params struct{ Cursor string }
		}
		json.NewDecoder(r.Body).Decode(&m)
		page := map[string]string{
			"":    `"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"p\"2"`,
			`p"2`: `"nextCursor":"","tools":[]`, // an empty string is a cursor like any other
		}[m.Params.Cursor]
		n := calls.Add(1)
		if n%3 == 0 {
			page = `"tools":[{"name":"c"}],"nextCursor":null`
		}
		if n == 7 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{%s}}`, m.ID, page)
	}))
	defer s.Close()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "targets.json"), filepath.Join(dir, "out.json")
	os.WriteFile(file, []byte(`[{"name":"x","url":"`+s.URL+`","path":"/","era":"modern"}]`), 0o600)
	var b strings.Builder
	o := options{targets: file, json: out, n: 2, timeout: 5 * time.Second, max: time.Minute, names: true}
	if err := measure(t.Context(), o, &b); err != nil {
		t.Fatal(err)
	}
	raw, _ := os.ReadFile(out)
	var rows []row
	if err := json.Unmarshal(raw, &rows); err != nil || len(rows) != 1 {
		t.Fatal(err)
	}
	// One list while getting ready (calls 1-3), one good (4-6), one refused (7).
	if r := rows[0]; r.Lists != 1 || r.Errors != 1 || r.Tools != 3 || r.Pages != 3 || r.Bytes < 100 || r.P50 <= 0 || !strings.Contains(r.Fault, "503") {
		t.Errorf("%+v\n%s", r, b.String())
	}
	if calls.Load() != 7 {
		t.Errorf("%d requests", calls.Load())
	}
}
