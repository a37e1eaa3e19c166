//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestNumbers(t *testing.T) {
	got, err := numbers("100, 100KB,1KiB,1MB,1MiB,0", 0, 2_000_000)
	if err != nil || fmt.Sprint(got) != "[100 100000 1024 1000000 1048576 0]" {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range []string{"", "x", "-1", "3MB", "1,,2", "5 KB?"} {
		if got, err := numbers(bad, 0, 2_000_000); err == nil {
			t.Errorf("%q gave %v", bad, got)
		}
	}
}

// Ratios are taken within a round: a machine that halves its speed for one
// round does not show in them.
func TestRatiosArePairedByRound(t *testing.T) {
	at := func(calls ...int) *row {
		r := &row{}
		for _, n := range calls {
			r.Slices = append(r.Slices, slice{Calls: n, Elapsed: time.Second, CPUTree: time.Duration(n), P50: 2})
		}
		return r
	}
	base, half := at(1000, 100, 4000), at(500, 50, 2000)
	if got, low, high := half.against(base, slice.rate); got != 0.5 || low != 0.5 || high != 0.5 {
		t.Errorf("ratio %v %v %v", got, low, high)
	}
	if got, low, high := at(100, 20, 1200).against(base, slice.rate); got != 0.2 || low != 0.1 || high != 0.3 {
		t.Errorf("ratio %v %v %v", got, low, high)
	}
	if got, _, _ := at(0, 0).against(base, slice.rate); got != 0 {
		t.Errorf("ratio of nothing %v", got)
	}
}

// A whole run against two servers, of which one answers every tenth call with
// another call's text and every twentieth with an error.
func TestRunCountsWhatIsWrong(t *testing.T) {
	var n atomic.Int64
	serve := func(lie bool) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var m struct {
				ID     json.RawMessage
				Params struct{ Arguments struct{ Text string } }
			}
			json.NewDecoder(r.Body).Decode(&m)
			if k := n.Add(1); lie && k > 50 {
				switch {
				case k%20 == 0:
					http.Error(w, "no", http.StatusServiceUnavailable)
					return
				case k%10 == 0:
					m.Params.Arguments.Text = "0" + m.Params.Arguments.Text[1:]
				}
			}
			b, _ := json.Marshal(m.Params.Arguments.Text)
			io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"content":[{"type":"text","text":`+string(b)+`}]}}`)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	file := filepath.Join(dir, "targets.json")
	out := filepath.Join(dir, "out.json")
	os.WriteFile(pid, []byte(fmt.Sprint(os.Getpid())), 0o600)
	text := fmt.Sprintf(`[{"name":"good","url":"%s","path":"/","era":"modern","pid_file":%q},{"name":"liar","url":"%s","path":"/","era":"modern"}]`, serve(false), pid, serve(true))
	os.WriteFile(file, []byte(text), 0o600)
	o, err := parseFlags([]string{"-targets", file, "-sizes", "100", "-c", "1,4", "-rounds", "2", "-slice", "100ms", "-warmup", "5", "-json", out})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := measure(t.Context(), o, &b); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var r run
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Cells) != 2 || !strings.Contains(b.String(), "| good |") {
		t.Fatalf("%d cells\n%s", len(r.Cells), b.String())
	}
	for _, c := range r.Cells {
		good, liar := c.Rows[0], c.Rows[1]
		if good.Errors+good.Mismatches > 0 || good.Calls == 0 || good.CPUTree <= 0 || good.RSS == 0 || good.RateRatio != 1 {
			t.Errorf("good: %+v", good)
		}
		if liar.Errors == 0 || liar.Mismatches == 0 || liar.RSS != 0 || liar.RateRatio <= 0 {
			t.Errorf("liar: %+v", liar)
		}
		n := 0
		for _, k := range liar.Problems {
			n += k
		}
		if n != liar.Errors+liar.Mismatches || len(liar.Problems) != 2 {
			t.Errorf("%d failures, problems %v", liar.Errors+liar.Mismatches, liar.Problems)
		}
		share := float64(liar.Errors+liar.Mismatches) / float64(liar.Calls+liar.Errors+liar.Mismatches)
		if share < 0.05 || share > 0.2 {
			t.Errorf("liar: %.3f wrong, want about 0.1", share)
		}
	}
}

// The time of the whole run is bounded, and what was measured is printed.
func TestMaxTime(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct{ ID json.RawMessage }
		json.NewDecoder(r.Body).Decode(&m)
		io.WriteString(w, `{"id":`+string(m.ID)+`,"result":{"content":[{"type":"text","text":"slept 0 ms"}]}}`)
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "targets.json")
	os.WriteFile(file, []byte(`[{"name":"a","url":"`+s.URL+`","path":"/","era":"modern"}]`), 0o600)
	o, err := parseFlags([]string{"-targets", file, "-call", "slow", "-sizes", "0", "-c", "1", "-rounds", "100", "-slice", "10s", "-warmup", "1", "-max-time", "300ms"})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	begun := time.Now()
	if err := measure(t.Context(), o, &b); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(begun); d > 5*time.Second || !strings.Contains(b.String(), "cut short") {
		t.Errorf("took %v\n%s", d, b.String())
	}
}

func TestKindsOfFailure(t *testing.T) {
	read := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	for err, want := range map[error]string{
		fmt.Errorf("reading answer: %w", read):                        "read: i/o timeout",
		fmt.Errorf("sent id 1000000000001, got 1000000000002 of 100"): "sent id #, got # of 100",
	} {
		if got := kind(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	var p problems
	for i := range 30 {
		p.add(fmt.Sprint(i), 2)
	}
	if len(p) != maxKinds+1 || p["others"] != 2*(30-maxKinds) {
		t.Errorf("%v", p)
	}
}
