//go:build unix

package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// do places one request and says what is known of it.
//
//lint:ignore ST1008 the delivery is what is known of an error, and reads best after it
func do(ctx context.Context, c *StdioCarrier, id, method, params string) (Response, error, call.Delivery) {
	r := &Request{ID: id, Method: method, Delivery: new(Delivery)}
	if params != "" {
		r.Params = []byte(params)
	}
	resp, err := c.Do(ctx, r)
	return resp, err, r.Delivery.State()
}

func faultOf(t *testing.T, err error) *Fault {
	t.Helper()
	f, ok := errors.AsType[*Fault](err)
	if !ok {
		t.Fatalf("got %v, want a fault", err)
	}
	return f
}

// eventually waits for a condition that another process or goroutine brings about.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if cond() {
			return
		}
	}
	t.Fatalf("never came true: %s", what)
}

func alive(pid int) bool {
	if b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
		_, rest, _ := bytes.Cut(b, []byte(") "))
		return len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
	}
	return runtime.GOOS != "linux" && syscall.Kill(pid, 0) == nil
}

func TestStdioCarriesValuesByteForByte(t *testing.T) {
	t.Parallel()
	c := startPeer(t, "echo", nil)
	params := `{"big":12345678901234567890,"f":1.0,"e":1e2,"s":"\u2028<b>","nested":{"b":1,"a":[null,false,0]}}`
	resp, err, d := do(t.Context(), c, "g1", "m", params)
	if err != nil || string(resp.Result) != params || d != call.Confirmed {
		t.Fatalf("got %s, %v, %v", resp.Result, err, d)
	}
}

// S-021: one line a message, whatever is in the arguments.
func TestStdioOneLineAMessage(t *testing.T) {
	t.Parallel()
	c := startPeer(t, "echo", nil)
	resp, err, _ := do(t.Context(), c, "g1", "m", "{\"a\":\n \"x\\ny\",\r\n\"b\":\"\u2028\"}")
	if err != nil || bytes.ContainsAny(resp.Result, "\r\n") || !strings.Contains(string(resp.Result), "x\\ny") {
		t.Fatalf("got %q, %v", resp.Result, err)
	}
}

// R3.1, R3.2: one bad answer ends its own call at once, with the delivery that is known, and no other call.
func TestStdioBadAnswersEndOneCall(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"cut", "both", "neither", "duplicate-key", "bad-utf8", "batch"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			c := startPeer(t, "methods", nil)
			if _, err, _ := do(t.Context(), c, "before", "ok", ""); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			defer wg.Wait()
			for i := range 20 {
				wg.Go(func() {
					if _, err, d := do(t.Context(), c, fmt.Sprintf("n%d", i), "ok", ""); err != nil || d != call.Confirmed {
						t.Errorf("neighbour: %v, %v", err, d)
					}
				})
			}
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if method == "batch" { // nothing in it says reliably whom it answers
				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
			}
			defer cancel()
			_, err, d := do(ctx, c, "bad", method, "")
			if d != call.DeliveryUnknown {
				t.Errorf("delivery %v, want unknown", d)
			}
			switch method {
			case "batch":
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			default:
				if f := faultOf(t, err); f.Code != call.CodeProtocolError {
					t.Errorf("got %v", f)
				}
			}
			wg.Wait()
			if _, err, _ := do(t.Context(), c, "after", "ok", ""); err != nil {
				t.Errorf("the connection does not live on: %v", err)
			}
			if s := c.Stats(); s.Violations == 0 || s.LastViolation == "" {
				t.Errorf("not counted: %+v", s)
			}
		})
	}
}

// F-24: unknown and repeated ids, and a number for a string, reach no call.
func TestStdioForeignIDs(t *testing.T) {
	t.Parallel()
	c := startPeer(t, "methods", nil)
	for i, method := range []string{"wrong-id", "wrong-type"} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err, d := do(ctx, c, fmt.Sprintf("g%d", 10+i), method, "")
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || d != call.DeliveryUnknown {
			t.Errorf("%s: %v, %v", method, err, d)
		}
	}
	if _, err, _ := do(t.Context(), c, "g20", "twice", ""); err != nil {
		t.Fatal(err)
	}
	if _, err, _ := do(t.Context(), c, "g21", "ok", ""); err != nil {
		t.Fatal(err)
	}
	if s := c.Stats(); s.Violations != 3 {
		t.Errorf("violations %d, want 3 (%s)", s.Violations, s.LastViolation)
	}
}

// An answer that comes before its request has left is a guess and is not believed.
func TestStdioAnswerBeforeTheQuestion(t *testing.T) {
	t.Parallel()
	c := startPeer(t, "methods", nil)
	if _, err, _ := do(t.Context(), c, "g1", "guess", ""); err != nil {
		t.Fatal(err)
	}
	resp, err, _ := do(t.Context(), c, "g2", "ok", "")
	if err != nil || string(resp.Result) != `{"ok":true}` {
		t.Fatalf("got %s, %v", resp.Result, err)
	}
}

// R1.4: what comes late is dropped by its id, counted, and no violation.
func TestStdioLateAnswer(t *testing.T) {
	t.Parallel()
	c := startPeer(t, "methods", nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err, _ := do(ctx, c, "g1", "silent", ""); done <- err }()
	eventually(t, "the request is open", func() bool { return c.Stats().Open == 1 })
	if _, err, _ := do(t.Context(), c, "g2", "ok", ""); err != nil { // g1 has been written: the pipe keeps order
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.take(&reader{lines: &lineReader{}, noise: budget{lines: 1}, broken: budget{lines: 1}, strays: budget{lines: 1}},
		[]byte(`{"jsonrpc":"2.0","id":"g1","result":{}}`))
	if s := c.Stats(); s.Late != 1 || s.Violations != 0 {
		t.Errorf("got %+v", s)
	}
}

// F-29: noise around messages is borne and counted; a flood ends the connection.
func TestStdioNoise(t *testing.T) {
	t.Parallel()
	c := startPeer(t, "methods", nil)
	for i := range 30 { // a habit of two lines a call is not a flood
		if _, err, _ := do(t.Context(), c, fmt.Sprintf("g%d", i), "noise", ""); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if c.Stats().Noise != 60 {
		t.Errorf("noise %d", c.Stats().Noise)
	}
}

// F-22, F-24, F-29, F-19: each flood ends the connection with its reason, and the open call as unknown.
func TestStdioFloodsEndTheConnection(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{
		"noise-flood": "no MCP message", "garbage-flood": "breaks the protocol", "stray-flood": "not asked", "endless": "without end",
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			c := startPeer(t, "methods", func(o *StdioOptions) { o.MaxMessage = 64 << 10 })
			_, err, d := do(t.Context(), c, "g1", method, "")
			f := faultOf(t, err)
			if f.Code != call.CodeProviderLost || d != call.DeliveryUnknown || !strings.Contains(f.Detail, want) {
				t.Errorf("got %v, delivery %v", f, d)
			}
			<-c.Done()
			if !strings.Contains(c.Err().Error(), want) {
				t.Errorf("ended with %v", c.Err())
			}
			if _, err, d := do(t.Context(), c, "g2", "ok", ""); faultOf(t, err).Code != call.CodeProviderUnavailable || d != call.NotSent {
				t.Errorf("after the end: %v, %v", err, d)
			}
		})
	}
}

// F-19, F-21: an answer beyond the bound fails its own call, wherever its id stands; the next one is read.
func TestStdioTooLarge(t *testing.T) {
	t.Parallel()
	c := startPeer(t, "methods", func(o *StdioOptions) { o.MaxMessage = 128 << 10 })
	for i, n := range []int{100 << 10, 200 << 10, 3 << 20} {
		_, err, _ := do(t.Context(), c, fmt.Sprintf("g%d", i), "large", fmt.Sprintf(`{"bytes":%d}`, n))
		if i == 0 {
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if f := faultOf(t, err); f.Code != call.CodeResultTooLarge {
			t.Errorf("%d bytes: %v", n, f)
		}
	}
	if _, err, _ := do(t.Context(), c, "after", "ok", ""); err != nil {
		t.Error(err)
	}
}

// F-13: the child ends during a call.
func TestStdioChildEnds(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{"exit": "exit status 3", "kill": "signal: killed", "close-stdout": "closed its output"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			c := startPeer(t, "methods", func(o *StdioOptions) { o.CloseTimeout = time.Second })
			_, err, d := do(t.Context(), c, "g1", method, "")
			f := faultOf(t, err)
			if f.Code != call.CodeProviderLost || d != call.DeliveryUnknown || !strings.Contains(f.Detail, want) {
				t.Errorf("got %v, %v", f, d)
			}
			_, err, d = do(t.Context(), c, "g2", "ok", "")
			if faultOf(t, err).Code != call.CodeProviderUnavailable || d != call.NotSent {
				t.Errorf("after the end: %v, %v", err, d)
			}
		})
	}
	t.Run("answer first", func(t *testing.T) {
		t.Parallel()
		c := startPeer(t, "methods", nil)
		if _, err, d := do(t.Context(), c, "g1", "answer-then-exit", ""); err != nil || d != call.Confirmed {
			t.Errorf("what was answered is lost: %v, %v", err, d)
		}
		<-c.Done()
	})
	t.Run("at start", func(t *testing.T) {
		t.Parallel()
		c := startPeer(t, "exit:7", nil)
		_, err, _ := do(t.Context(), c, "g1", "ok", "")
		if f := faultOf(t, err); !strings.Contains(f.Detail, "exit status 7") {
			t.Errorf("got %v", f)
		}
	})
}

// F-18: who waits behind a blocked write is provably not sent; who is in the pipe is unknown. Nothing that was taken back
// is ever written.
func TestStdioBlockedPipe(t *testing.T) {
	t.Parallel()
	c := startPeer(t, "methods", func(o *StdioOptions) { o.CloseTimeout = 500 * time.Millisecond })
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	big := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
	_, _, _ = do(t.Context(), c, "g0", "ok", "")
	var wg sync.WaitGroup
	blocked := make(chan struct{})
	wg.Go(func() {
		go func() { do(ctx, c, "stop", "stop-reading", ""); close(blocked) }()
		<-blocked
	})
	eventually(t, "the peer has the request", func() bool { return c.Stats().Open == 1 && len(c.queue) == 0 })
	deliveries := make([]call.Delivery, 10)
	errs := make([]error, 10)
	first := make(chan struct{})
	for i := range deliveries {
		wg.Go(func() {
			if i > 0 {
				<-first
			}
			_, errs[i], deliveries[i] = do(ctx, c, fmt.Sprintf("b%d", i), "ok", big)
		})
		if i == 0 {
			eventually(t, "the first is in the pipe", func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				x := c.pending["b0"]
				return x != nil && x.state.Load() == exchangeWriting
			})
			close(first)
		}
	}
	wg.Wait()
	for i, d := range deliveries {
		want := call.NotSent
		if i == 0 {
			want = call.DeliveryUnknown
		}
		if d != want || !errors.Is(errs[i], context.DeadlineExceeded) {
			t.Errorf("call %d: delivery %v, want %v (%v)", i, d, want, errs[i])
		}
	}
	began := time.Now()
	c.Close(t.Context())
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("close took %s", took)
	}
}

func TestStdioWriteTimeoutEndsTheConnection(t *testing.T) {
	t.Parallel()
	c := startPeer(t, "deaf", func(o *StdioOptions) {
		o.WriteTimeout = 200 * time.Millisecond
		o.CloseTimeout = 300 * time.Millisecond
	})
	_, err, d := do(t.Context(), c, "g1", "ok", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`)
	if f := faultOf(t, err); f.Code != call.CodeProviderLost || d != call.DeliveryUnknown || !strings.Contains(f.Detail, "did not read") {
		t.Errorf("got %v, %v", f, d)
	}
}

// A cancelled call that never left the queue leaves no trace at the server.
func TestStdioCancelledBefore(t *testing.T) {
	t.Parallel()
	c := startPeer(t, "methods", nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err, d := do(ctx, c, "g1", "ok", ""); !errors.Is(err, context.Canceled) || d != call.NotSent {
		t.Errorf("got %v, %v", err, d)
	}
}

// The tap sees every notification in wire order before the answer that follows it.
func TestStdioNotificationsComeFirst(t *testing.T) {
	t.Parallel()
	var got []string
	c := startPeer(t, "methods", func(o *StdioOptions) {
		o.OnNotification = func(method string, params []byte) { got = append(got, string(params)) }
	})
	for range 20 {
		got = got[:0]
		if _, err, _ := do(t.Context(), c, "g1", "notify", ""); err != nil {
			t.Fatal(err)
		}
		if len(got) != 100 || got[99] != `{"i":99,"big":12345678901234567890}` {
			t.Fatalf("saw %d notifications before the answer", len(got))
		}
	}
}

// F-28, S-022: a flood of requests is counted and not answered, and nothing grows.
func TestStdioRequestFlood(t *testing.T) {
	t.Parallel()
	c := startPeer(t, "methods", nil)
	if _, err, _ := do(t.Context(), c, "g1", "request-flood", ""); err != nil {
		t.Fatal(err)
	}
	if s := c.Stats(); s.Violations != 5000 {
		t.Errorf("counted %d", s.Violations)
	}
}

func TestStdioErrorAnswer(t *testing.T) {
	t.Parallel()
	c := startPeer(t, "methods", nil)
	resp, err, d := do(t.Context(), c, "g1", "error", "")
	if err != nil || d != call.Confirmed || resp.Error == nil || resp.Error.Code != -32602 || string(resp.Error.Data) != `{"big":12345678901234567890}` {
		t.Fatalf("got %+v, %v, %v", resp.Error, err, d)
	}
}

// F-14, S-027: a child that ignores stdin and TERM is gone within the bound.
func TestStdioCloseLadder(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"deaf", "reads-then-ignores", "echo"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			limit := time.Second
			if part == "echo" { // ends by itself, however slow the machine is
				limit = 30 * time.Second
			}
			c := startPeer(t, part, func(o *StdioOptions) { o.CloseTimeout = limit })
			open := make(chan error, 1)
			if part != "echo" {
				go func() { _, err, _ := do(t.Context(), c, "g1", "ok", ""); open <- err }()
				eventually(t, "a call is open", func() bool { return c.Stats().Open == 1 })
			}
			began := time.Now()
			c.Close(t.Context())
			if took := time.Since(began); took > limit+3*time.Second {
				t.Errorf("close took %s", took)
			}
			if alive(c.Stats().PID) {
				t.Error("the child is still there")
			}
			want := [2]string{"signal: killed", "KILL"}
			if part == "echo" {
				want = [2]string{"exit status 0", "stdin"}
			}
			if st := c.Stats(); [2]string{st.Exit, st.Stopped} != want {
				t.Errorf("ended by %q with %q, want %q", st.Stopped, st.Exit, want)
			}
			if part != "echo" {
				if f := faultOf(t, <-open); f.Code != call.CodeProviderLost {
					t.Errorf("open call: %v", f)
				}
			}
			c.Close(t.Context()) // twice is safe
		})
	}
}

// F-15, R1.12: grandchildren are gone with the child: in the group, in a session of their own, and orphans that hold a pipe.
func TestStdioLeavesNoDescendant(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("relations of processes are read from /proc")
	}
	t.Parallel()
	for _, how := range []string{"close", "kill"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var pids []int
			c := startPeer(t, "family", func(o *StdioOptions) {
				o.CloseTimeout = time.Second
				o.OnNotification = func(_ string, params []byte) {
					n, _ := strconv.Atoi(string(content.Member(params, "pid")))
					mu.Lock()
					pids = append(pids, n)
					mu.Unlock()
				}
			})
			count := func() int { mu.Lock(); defer mu.Unlock(); return len(pids) }
			eventually(t, "the family is there", func() bool { return count() == 4 })
			if how == "kill" {
				_ = syscall.Kill(c.Stats().PID, syscall.SIGKILL)
				<-c.Done()
			}
			began := time.Now()
			c.Close(t.Context())
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("close took %s", took)
			}
			for _, pid := range append(pids, c.Stats().PID) {
				eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool { return !alive(pid) })
			}
		})
	}
}

func TestStdioNoGoroutineLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		c := startPeer(t, "methods", nil)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		do(ctx, c, "g1", "silent", "")
		cancel()
		c.Close(t.Context())
	}
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+1 })
}

// F-20, R1.12: the last 64 KiB of stderr, scrubbed; the child is never blocked by it.
func TestStdioStderr(t *testing.T) {
	t.Parallel()
	c := startPeer(t, "stderr", func(o *StdioOptions) {
		o.Env = append(o.Env, "THE_KEY=s3cret-value")
		o.Secrets = []string{"s3cret-value", "no"}
	})
	if _, err, _ := do(t.Context(), c, "g1", "ok", ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the last line", func() bool {
		l := c.Stats().Stderr
		return len(l) > 0 && l[len(l)-1] == "last ␛[31mred␛[0m key=[redacted]"
	})
	lines := c.Stats().Stderr
	if n := len(strings.Join(lines, "\n")); n > stderrKept+1000 || slices.Contains(lines, "first") {
		t.Errorf("%d bytes kept", n)
	}
}

// R1.12: the environment of a child is what was built for it, and nothing else.
func TestR1_12_ChildEnvironment(t *testing.T) {
	lookup := func(name string) (string, bool) {
		v, ok := map[string]string{"PATH": "/bin", "HOME": "/h", "TOKEN": "secret", "HTTPS_PROXY": "p", "USER": "u"}[name]
		return v, ok
	}
	env := ChildEnv(map[string]string{"A": "1", "HOME": "/other"}, []string{"HTTPS_PROXY", "ABSENT"}, lookup)
	if want := []string{"A=1", "HOME=/other", "HTTPS_PROXY=p", "PATH=/bin", "USER=u"}; !slices.Equal(env, want) {
		t.Errorf("got %q, want %q", env, want)
	}
	t.Setenv("OSTIARY_TEST_CANARY", "x")
	c := startPeer(t, "env", func(o *StdioOptions) { o.Env = []string{peerEnv + "=env", "A=1"} })
	<-c.Done()
	c.Close(t.Context())
	got := c.Stats().Stderr
	slices.Sort(got)
	if want := []string{"A=1", peerEnv + "=env"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// F-12: why a command does not start is typed, and says what to do.
func TestStdioSpawnErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := dir + "/plain"
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    StdioOptions
		want error
	}{
		"not on the path":             {StdioOptions{Command: "no-such-command", Env: []string{"PATH=/bin"}}, fs.ErrNotExist},
		"no such file":                {StdioOptions{Command: dir + "/absent"}, fs.ErrNotExist},
		"not executable":              {StdioOptions{Command: plain}, fs.ErrPermission},
		"on the path, not executable": {StdioOptions{Command: "plain", Env: []string{"PATH=" + dir}}, fs.ErrPermission},
		"no such folder":              {StdioOptions{Command: os.Args[0], Dir: dir + "/absent"}, fs.ErrNotExist},
	} {
		_, err := StartStdio(t.Context(), c.o)
		se, ok := errors.AsType[*SpawnError](err)
		if !ok || !errors.Is(err, c.want) || se.Advice == "" {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, errno := range []syscall.Errno{syscall.EAGAIN, syscall.EMFILE, syscall.ENOMEM} {
		if e := spawnError("x", errno); !e.Exhausted() || e.Advice == "" {
			t.Errorf("%v: %+v", errno, e)
		}
	}
}

func BenchmarkStdio(b *testing.B) {
	o := StdioOptions{Command: os.Args[0], Env: append(os.Environ(), peerEnv+"=echo")}
	c, err := StartStdio(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(context.Background())
	params := []byte(`{"name":"echo","arguments":{"text":"` + strings.Repeat("x", 80) + `"}}`)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		if _, err := c.Do(b.Context(), &Request{ID: "g" + strconv.Itoa(i), Method: "tools/call", Params: params, Delivery: new(Delivery)}); err != nil {
			b.Fatal(err)
		}
	}
}
