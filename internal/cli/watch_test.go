package cli

import (
	"context"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// watched is a command that goes on until it is interrupted.
type watched struct {
	*running
	said chan struct{} // something was written; capacity 1
}

var watches sync.Map // the one of each running script

// watch follows a command: "watch start ARGS…", "watch until WORD" waits until it has written a word, "watch stop SIGNAL
// CODE" ends it and checks the exit code, "watch end CODE" waits until it ends by itself.
func watch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: watch start ARGS… | watch until WORD | watch stop SIGNAL CODE")
	}
	if args[0] == "start" {
		path := filepath.Join(strings.Split(ts.Getenv("PATH"), string(os.PathListSeparator))[0], "ostiary")
		w := &watched{running: &running{cmd: exec.Command(path, args[1:]...), done: make(chan struct{})}, said: make(chan struct{}, 1)}
		w.cmd.Dir = ts.Getenv("WORK")
		for _, name := range []string{"HOME", "PATH", "OSTIARY_TOKEN", "TMPDIR"} {
			w.cmd.Env = append(w.cmd.Env, name+"="+ts.Getenv(name))
		}
		w.cmd.Stdout, w.cmd.Stderr = w, w
		ts.Check(w.cmd.Start())
		go func() {
			_ = w.cmd.Wait() // its state has the exit code
			close(w.done)
		}()
		ts.Defer(func() {
			_ = w.cmd.Process.Kill() // if it is still there
			<-w.done
		})
		watches.Store(ts, w)
		return
	}
	v, ok := watches.Load(ts)
	if !ok {
		ts.Fatalf("nothing is watched")
	}
	w := v.(*watched)
	switch args[0] {
	case "until":
		over := time.NewTimer(30 * time.Second)
		defer over.Stop()
		for !strings.Contains(w.stderr(), args[1]) {
			select {
			case <-w.said:
			case <-w.done:
				ts.Fatalf("it has ended, and has not written %q:\n%s", args[1], w.stderr())
			case <-over.C:
				ts.Fatalf("%v: it has not written %q:\n%s", context.DeadlineExceeded, args[1], w.stderr())
			}
		}
	case "stop", "end":
		want, err := strconv.Atoi(args[len(args)-1])
		ts.Check(err)
		code := 0
		if args[0] == "stop" {
			code, err = w.stop(args[1])
			ts.Check(err)
		} else {
			<-w.done
			code = w.cmd.ProcessState.ExitCode()
		}
		if code != want {
			ts.Fatalf("it exited with %d, want %d:\n%s", code, want, w.stderr())
		}
	}
}

// Write takes both streams.
func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	w.out.Write(b)
	w.mu.Unlock()
	select {
	case w.said <- struct{}{}:
	default:
	}
	return len(b), nil
}

// R5.6: what --frontier takes.
func TestR5_6_FrontierFlag(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	seen := file("seen.json", `{"qq:group:1": 4, "frontier": 2}`)
	reply := file("reply.json", `{"outcome":{"status":"succeeded"},"frontier":{"qq:a=b":7}}`)
	a := newApp(strings.NewReader(`{"s":1}`), io.Discard, io.Discard, func(string) (string, bool) { return "", false })
	for _, c := range []struct {
		said []string
		want string // "!": refused, with these words
	}{
		{nil, "nothing"},
		{[]string{"{}"}, ""},
		{[]string{"qq:group:1=3"}, "qq:group:1=3"},
		{[]string{"qq:a=b=3", `{"qq:c": 1}`}, "qq:a=b=3 qq:c=1"},
		{[]string{seen}, "frontier=2 qq:group:1=4"},
		{[]string{reply, "x=1"}, "qq:a=b=7 x=1"},
		{[]string{"-"}, "s=1"},
		{[]string{"x=1", `{"x":2}`}, "!given twice"},
		{[]string{"QQ=1"}, "!scope"},
		{[]string{"x=-1"}, "!no such file"},
		{[]string{"x="}, "!cannot be read"},
		{[]string{`{"x":"1"}`}, "!integer"},
		{[]string{filepath.Join(dir, "none")}, "!no such file"},
	} {
		f, err := a.frontier(c.said)
		words, refused := strings.CutPrefix(c.want, "!")
		if refused {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%q: got %v, %v; want a refusal with %q", c.said, f, err, words)
			}
			continue
		}
		got := "nothing"
		if f != nil {
			var parts []string
			for _, s := range slices.Sorted(maps.Keys(f)) {
				parts = append(parts, string(s)+"="+strconv.FormatInt(f[s], 10))
			}
			got = strings.Join(parts, " ")
		}
		if err != nil || got != c.want {
			t.Errorf("%q: got %q, %v; want %q", c.said, got, err, c.want)
		}
	}
}
