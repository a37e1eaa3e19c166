//go:build unix

package session

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// sentParams are the params of a call as the server got them.
func sentParams(t *testing.T, s *Session, c Call) []byte {
	t.Helper()
	c.Tool = descriptor("params")
	a := s.Call(t.Context(), c)
	if a.Fault != "" || a.Error != nil {
		t.Fatalf("got %+v", a)
	}
	return content.Member(a.Result, "structuredContent")
}

// R1.6: every modern request names revision, client and capabilities; the caller's own _meta stays as it is.
func TestR1_6_Meta(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, "discover=modern", "params")
	meta := content.Member(sentParams(t, s, Call{
		Arguments: []byte(`{"n":12345678901234567890,"f":1.0}`),
		Meta:      []byte(`{"com.example/k": 1.0, "progressToken":"theirs","io.modelcontextprotocol/protocolVersion":"1999-01-01"}`),
		Progress:  func(call.Progress) {}, Log: func(call.LogMessage) {}, LogLevel: "info",
	}), "_meta")
	want := `{"com.example/k":1.0,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"0"},` +
		`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info","progressToken":"g3"}`
	if string(meta) != want {
		t.Errorf("got  %s\nwant %s", meta, want)
	}
	params := sentParams(t, s, Call{Arguments: []byte(`{"n":12345678901234567890,"f":1.0}`)})
	if got := string(content.Member(params, "arguments")); got != `{"n":12345678901234567890,"f":1.0}` {
		t.Errorf("arguments: %s", got)
	}
	if content.Member(content.Member(params, "_meta"), "progressToken") != nil {
		t.Error("a token, though no progress is wanted")
	}

	legacy := mustOpen(t, eras["legacy"], "params")
	if p := sentParams(t, legacy, Call{}); string(p) != `{"name":"params","arguments":{}}` {
		t.Errorf("legacy: %s", p)
	}
	if p := sentParams(t, legacy, Call{Meta: []byte(`{"k":1}`)}); string(p) != `{"name":"params","arguments":{},"_meta":{"k":1}}` {
		t.Errorf("legacy: %s", p)
	}
}

// R3.1, R3.2, S-002: what is known of a call after each kind of end.
func TestR3_2_Answers(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]func(a call.Answer) bool{
		"ok": func(a call.Answer) bool {
			return a.Delivery == call.Confirmed && a.Fault == "" && !a.IsError && a.ResultType == "complete"
		},
		"is-error": func(a call.Answer) bool { return a.Delivery == call.Confirmed && a.Fault == "" && a.IsError },
		"refused": func(a call.Answer) bool {
			return a.Delivery == call.Confirmed && a.Error != nil && a.Error.Code == -32602
		},
		"evil-type": func(a call.Answer) bool { return a.Delivery == call.Confirmed && a.Fault == call.CodeResultInvalid },
		"cut": func(a call.Answer) bool {
			return a.Delivery == call.DeliveryUnknown && a.Fault == call.CodeProtocolError
		},
		"exit": func(a call.Answer) bool {
			return a.Delivery == call.DeliveryUnknown && a.Fault == call.CodeProviderLost && strings.Contains(a.Detail, "exit status 3")
		},
	} {
		for era, traits := range eras {
			t.Run(name+"/"+era, func(t *testing.T) {
				t.Parallel()
				s := mustOpen(t, traits, "ok", "silent", name)
				a := s.Call(t.Context(), Call{Tool: descriptor(name)})
				if !check(a) {
					t.Errorf("got %+v", a)
				}
				if name == "exit" {
					<-s.Done()
					if a := s.Call(t.Context(), Call{Tool: descriptor("ok")}); a.Delivery != call.NotSent || a.Fault != call.CodeProviderUnavailable {
						t.Errorf("after the end: %+v", a)
					}
				}
			})
		}
	}
}

// Neighbours of a broken answer, and of a cancelled call, are unhurt.
func TestNeighboursUnhurt(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, "discover=modern", "ok", "cut", "silent", "params")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			args := fmt.Sprintf(`{"i":%d}`, i)
			a := s.Call(t.Context(), Call{Tool: descriptor("params"), Arguments: []byte(args)})
			if got := content.Member(content.Member(a.Result, "structuredContent"), "arguments"); string(got) != args {
				t.Errorf("call %d got the answer %s (%+v)", i, got, a)
			}
		})
	}
	wg.Go(func() {
		if a := s.Call(t.Context(), Call{Tool: descriptor("cut")}); a.Fault != call.CodeProtocolError {
			t.Errorf("cut: %+v", a)
		}
	})
	wg.Go(func() {
		if a := s.Call(ctx, Call{Tool: descriptor("silent")}); a.Fault != call.CodeDeadlineExceeded || a.Delivery != call.DeliveryUnknown {
			t.Errorf("silent: %+v", a)
		}
	})
	wg.Wait()
}

// S-026, R3.10: the server is told once, with the right id, in both eras; a late answer reaches nobody (S-059).
func TestR3_10_Cancellation(t *testing.T) {
	t.Parallel()
	for era, traits := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t, traits, "silent", "release", "ok")
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan call.Answer, 1)
			go func() { got <- s.Call(ctx, Call{Tool: descriptor("silent")}) }()
			eventually(t, "the server has the call", func() bool { return slices.Contains(received(s), "tools/call") })
			cancel()
			if a := <-got; a.Fault != call.CodeCancelled || a.Delivery != call.DeliveryUnknown {
				t.Errorf("got %+v", a)
			}
			eventually(t, "the server is told", func() bool {
				return slices.ContainsFunc(received(s), func(m string) bool { return strings.HasPrefix(m, "notifications/cancelled") })
			})
			if a := s.Call(t.Context(), Call{Tool: descriptor("release")}); a.Fault != "" || !strings.Contains(string(a.Result), "released") {
				t.Errorf("the next call: %+v", a)
			}
			var told []string
			for _, m := range received(s) {
				if id, ok := strings.CutPrefix(m, "notifications/cancelled "); ok {
					told = append(told, id)
				}
			}
			if len(told) != 1 || !strings.HasPrefix(told[0], "g") {
				t.Errorf("told %v", told)
			}
			if st := s.Stats(); st.LateAnswers != 1 || st.Violations != 0 || st.OpenCalls != 0 {
				t.Errorf("got %+v", st)
			}
		})
	}
}

func TestCancelledBeforeItIsSent(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, "discover=modern", "ok")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := s.Call(ctx, Call{Tool: descriptor("ok")}); a.Delivery != call.NotSent || a.Fault != call.CodeCancelled {
		t.Errorf("got %+v", a)
	}
	if slices.ContainsFunc(received(s), func(m string) bool { return strings.HasPrefix(m, "notifications/cancelled") }) {
		t.Error("a call that was not sent was cancelled at the server")
	}
}

// S-060: progress reaches its own call, only increasing, and not after the end; a flood is coalesced.
func TestS060_Progress(t *testing.T) {
	t.Parallel()
	for era, traits := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t, traits, "progress", "progress-flood", "ok")
			var got []string
			var returned bool
			a := s.Call(t.Context(), Call{Tool: descriptor("progress"), Progress: func(p call.Progress) {
				if returned {
					t.Error("progress after the end")
				}
				got = append(got, string(p.Progress)+"/"+string(p.Total)+" "+p.Message)
			}})
			returned = true
			if a.Fault != "" || len(got) == 0 || got[len(got)-1] != "11/9 m11" {
				t.Errorf("got %v, %+v", got, a)
			}
			s.Call(t.Context(), Call{Tool: descriptor("ok")})

			n, last := 0, ""
			s.Call(t.Context(), Call{Tool: descriptor("progress-flood"), Progress: func(p call.Progress) { n++; last = string(p.Progress) }})
			if n == 0 || n > 1000 || last != "9999" {
				t.Errorf("%d notifications, the last %s", n, last)
			}
		})
	}
}

// Log messages go to the call that asked, by its level, and only if they can be no other's.
func TestLogMessages(t *testing.T) {
	t.Parallel()
	for era, traits := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t, traits, "logs", "silent")
			var got []string
			log := func(m call.LogMessage) { got = append(got, m.Level+string(m.Data)) }
			s.Call(t.Context(), Call{Tool: descriptor("logs"), Log: log, LogLevel: "warning"})
			if !slices.Equal(got, []string{`error"loud"`}) {
				t.Errorf("got %v", got)
			}
			s.Call(t.Context(), Call{Tool: descriptor("logs"), Log: log, LogLevel: "warning"})
			levels := 0
			for _, m := range received(s) {
				if m == "logging/setLevel" {
					levels++
				}
			}
			if want := map[string]int{"modern": 0, "legacy": 1}[era]; levels != want {
				t.Errorf("the level was set %d times, want %d", levels, want)
			}
			if era == "modern" {
				return
			}
			// Another call is open: whose message it is cannot be told.
			got = nil
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			open := make(chan struct{})
			go func() { s.Call(ctx, Call{Tool: descriptor("silent")}); close(open) }()
			eventually(t, "the other call is open", func() bool { return s.Stats().OpenCalls == 1 })
			s.Call(t.Context(), Call{Tool: descriptor("logs"), Log: log, LogLevel: "debug"})
			if len(got) != 0 {
				t.Errorf("got %v", got)
			}
			cancel()
			<-open
		})
	}
}

// S-022, R1.8, R14.1: a modern server's requests are not answered; a legacy server's ping is, and all else is refused.
func TestRequestsOfTheServer(t *testing.T) {
	t.Parallel()
	modern := mustOpen(t, eras["modern"], "ask", "ok")
	modern.Call(t.Context(), Call{Tool: descriptor("ask")})
	modern.Call(t.Context(), Call{Tool: descriptor("ok")})
	if got := received(modern); slices.ContainsFunc(got, func(m string) bool { return strings.HasPrefix(m, "answer") }) {
		t.Errorf("answered: %v", got)
	}
	if v := modern.Stats().Violations; v != 2 {
		t.Errorf("counted %d", v)
	}
	legacy := mustOpen(t, eras["legacy"], "ask")
	legacy.Call(t.Context(), Call{Tool: descriptor("ask")})
	eventually(t, "both answers", func() bool {
		got := received(legacy)
		return slices.Contains(got, "answer 7 0") && slices.Contains(got, `answer "r8" -32601`)
	})
}

// R1.11: beyond the bound of calls at a time nothing is sent.
func TestR1_11_ConcurrentCalls(t *testing.T) {
	t.Parallel()
	s, err := opened(t, "discover=modern", func(o *Options) { o.Limits.Concurrent = 2 })
	if err != nil {
		t.Fatal(err)
	}
	allow(s, "silent", "ok")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { s.Call(ctx, Call{Tool: descriptor("silent")}) })
	}
	eventually(t, "two calls are open", func() bool { return s.Stats().OpenCalls == 2 })
	if a := s.Call(t.Context(), Call{Tool: descriptor("ok")}); a.Fault != call.CodeOverloaded || a.Delivery != call.NotSent {
		t.Errorf("got %+v", a)
	}
	cancel()
	wg.Wait()
	if a := s.Call(t.Context(), Call{Tool: descriptor("ok")}); a.Fault != "" {
		t.Errorf("got %+v", a)
	}
}

// R1.7: what was not frozen cannot be called.
func TestUnlistedToolIsNotCalled(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, "discover=modern", "ok")
	if a := s.Call(t.Context(), Call{Tool: descriptor("exit")}); a.Fault != call.CodeToolNotAllowed || a.Delivery != call.NotSent {
		t.Errorf("got %+v", a)
	}
	fresh, err := opened(t, "discover=modern", nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := fresh.Call(t.Context(), Call{Tool: descriptor("ok")}); a.Fault != call.CodeProviderUnavailable || a.Delivery != call.NotSent {
		t.Errorf("got %+v", a)
	}
}

// F-13: killed from outside, with calls open.
func TestF13_Killed(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, "discover=modern", "silent")
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			a := s.Call(t.Context(), Call{Tool: descriptor("silent")})
			if a.Delivery != call.DeliveryUnknown || a.Fault != call.CodeProviderLost {
				t.Errorf("got %+v", a)
			}
		})
	}
	eventually(t, "all have been sent", func() bool {
		n := 0
		for _, m := range received(s) {
			if m == "tools/call" {
				n++
			}
		}
		return n == 5
	})
	p, err := os.FindProcess(s.Stats().PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	<-s.Done()
	if s.Err() == nil || !strings.Contains(s.Err().Error(), "killed") {
		t.Errorf("ended with %v", s.Err())
	}
}

// F-18: who is behind a blocked pipe is not sent, and its cancellation is not either.
func TestF18_BlockedPipe(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, "discover=modern", "stop-reading", "ok")
	stop := make(chan struct{})
	go func() { s.Call(t.Context(), Call{Tool: descriptor("stop-reading")}); close(stop) }()
	eventually(t, "the server sleeps", func() bool { return slices.Contains(received(s), "tools/call") })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	big := []byte(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)
	answers := make(chan call.Answer, 4)
	for range 4 {
		go func() { answers <- s.Call(ctx, Call{Tool: descriptor("ok"), Arguments: big}) }()
	}
	deliveries := map[call.Delivery]int{}
	for range 4 {
		a := <-answers
		deliveries[a.Delivery]++
		if a.Fault != call.CodeDeadlineExceeded {
			t.Errorf("got %+v", a)
		}
	}
	if deliveries[call.DeliveryUnknown] != 1 || deliveries[call.NotSent] != 3 {
		t.Errorf("got %v", deliveries)
	}
	began := time.Now()
	s.Close(t.Context())
	<-stop
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("close took %s", took)
	}
}

func TestNoGoroutineLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, traits := range eras {
		s := mustOpen(t, traits, "ok", "silent")
		if _, err := s.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		s.Call(ctx, Call{Tool: descriptor("silent"), Progress: func(call.Progress) {}})
		cancel()
		s.Close(t.Context())
	}
	_, err := opened(t, "discover=-32021", nil)
	if err == nil {
		t.Fatal("started")
	}
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+1 })
}

func BenchmarkCall(b *testing.B) {
	s, err := Open(b.Context(), new(keptCarrier).dial("discover=modern"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(context.Background())
	d := descriptor("ok")
	allow(s, "ok")
	args := []byte(`{"text":"` + strings.Repeat("x", 80) + `"}`)
	b.ReportAllocs()
	for b.Loop() {
		if a := s.Call(b.Context(), Call{Tool: d, Arguments: args}); a.Fault != "" {
			b.Fatal(a)
		}
	}
}
