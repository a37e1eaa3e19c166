package cli

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ostiary/ostiary/call"
)

var update = flag.Bool("update", false, "write the generated documents and the goldens again")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ostiary": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv)) },
	})
}

// TestScripts tells the command line in testdata/script/*.txtar, with the real main and the bundled example server.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("OSTIARY_TOKEN", "0123456789abcdef0123456789abcdef")
			env.Setenv("XDG_CONFIG_HOME", "")
			env.Setenv("XDG_STATE_HOME", "")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"gateway":   gateway,
			"exits":     exitsWith,
			"await":     awaits,
			"interrupt": interrupt,
			"get":       get,
			"agent":     agent,
			"edit":      edit,
			"id":        first("id"),
			"call":      first("call"),
			"watch":     watch,
		},
	})
}

// gateway runs a command in the background: "gateway start ARGS…" waits for its ready line and sets ADDR; "gateway stop
// TERM|INT CODE" ends it by a signal and checks the exit code.
func gateway(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: gateway start ARGS… | gateway stop SIGNAL CODE")
	}
	if args[0] == "stop" {
		v, _ := gateways.Load(ts)
		g := v.(*running)
		code, err := g.stop(args[1])
		ts.Check(err)
		if want, _ := strconv.Atoi(args[2]); code != want {
			ts.Fatalf("the gateway exited with %d, want %d; stderr:\n%s", code, want, g.stderr())
		}
		return
	}
	g, addr, err := start(ts, args[1:])
	if err != nil {
		ts.Fatalf("%v; stderr:\n%s", err, g.stderr())
	}
	ts.Setenv("ADDR", addr)
}

type running struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex // guards out
	out strings.Builder
}

func (g *running) stderr() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.out.String()
}

var readyAddr = regexp.MustCompile(`^ready: http://(\S+)`)

// command is ostiary in the script's own place.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	path, err := exec.LookPath(filepath.Join(strings.Split(ts.Getenv("PATH"), string(os.PathListSeparator))[0], "ostiary"))
	ts.Check(err)
	cmd := exec.Command(path, args...)
	cmd.Dir = ts.Getenv("WORK")
	for _, name := range []string{"HOME", "PATH", "OSTIARY_TOKEN", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return cmd
}

func start(ts *testscript.TestScript, args []string) (*running, string, error) {
	g := &running{cmd: command(ts, args), done: make(chan struct{})}
	pipe, err := g.cmd.StderrPipe()
	ts.Check(err)
	ts.Check(g.cmd.Start())
	ready := make(chan string, 1)
	go func() {
		defer close(g.done)
		for in := bufio.NewScanner(pipe); in.Scan(); {
			g.mu.Lock()
			g.out.WriteString(in.Text() + "\n")
			g.mu.Unlock()
			if m := readyAddr.FindStringSubmatch(in.Text()); m != nil {
				ready <- m[1]
			}
		}
		_ = g.cmd.Wait() // the exit code is read from its state
	}()
	ts.Defer(func() {
		_ = g.cmd.Process.Kill() // it may have ended
		<-g.done
	})
	gateways.Store(ts, g)
	select {
	case addr := <-ready:
		return g, addr, nil
	case <-g.done:
		return g, "", io.ErrUnexpectedEOF
	case <-time.After(30 * time.Second):
		return g, "", context.DeadlineExceeded
	}
}

// gateways holds the one gateway of each running script.
var gateways sync.Map

func (g *running) stop(name string) (int, error) {
	sig := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt}[name]
	if err := g.cmd.Process.Signal(sig); err != nil {
		return 0, err
	}
	select {
	case <-g.done:
		return g.cmd.ProcessState.ExitCode(), nil
	case <-time.After(30 * time.Second):
		return 0, context.DeadlineExceeded
	}
}

// exitsWith runs ostiary and checks the exact exit code: "exits CODE ARGS…".
func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: exits CODE ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if code := exitCode(ts, args[1:]); code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

func exitCode(ts *testscript.TestScript, args []string) int {
	err := ts.Exec("ostiary", args...)
	if err == nil {
		return 0
	}
	ee, ok := err.(*exec.ExitError)
	if !ok {
		ts.Fatalf("%v", err)
	}
	return ee.ExitCode()
}

// awaits repeats a command that only looks until it ends with an exit code: "await CODE ARGS…". It is for what another
// process does in its own time.
func awaits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await CODE ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		code := exitCode(ts, args[1:])
		if code == want {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("exit code %d, want %d", code, want)
		}
	}
}

// interrupt runs ostiary, interrupts it once another command of it prints a text, and checks the exit code and what it says on
// stderr: "interrupt CODE STDERR TEXT SIGN ARGS…", where SIGN is the other command, its words divided by commas.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 5 {
		ts.Fatalf("usage: interrupt CODE STDERR TEXT SIGN ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	cmd := command(ts, args[4:])
	var out strings.Builder
	cmd.Stderr = &out
	ts.Check(cmd.Start())
	defer func() { _ = cmd.Process.Kill() }() // it may have ended
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		b, err := command(ts, strings.Split(args[3], ",")).Output()
		ts.Check(err)
		if strings.Contains(string(b), args[2]) {
			break
		}
		if time.Now().After(end) {
			ts.Fatalf("%s never says %q: %s", args[3], args[2], b)
		}
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait() // the exit code is read from its state
	ts.Logf("[stderr]\n%s", &out)
	if code := cmd.ProcessState.ExitCode(); code != want || !strings.Contains(out.String(), args[1]) {
		ts.Fatalf("exit code %d, want %d, and on stderr %q", code, want, args[1])
	}
}

// get asks the gateway for a path without a token: "get PATH STATUS".
func get(ts *testscript.TestScript, neg bool, args []string) {
	resp, err := http.Get("http://" + ts.Getenv("ADDR") + args[0])
	ts.Check(err)
	_ = resp.Body.Close() // only the status counts
	if want, _ := strconv.Atoi(args[1]); resp.StatusCode != want {
		ts.Fatalf("GET %s: %s, want %d", args[0], resp.Status, want)
	}
}

// agent calls a tool over HTTP, as the principal "default": "agent TOOL ARGUMENTS WORD…" checks that the answer has all the
// words, and none of those that begin with "!".
func agent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: agent TOOL ARGUMENTS WORD…")
	}
	msg := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, args[0], args[1])
	req, err := http.NewRequest(http.MethodPost, "http://"+ts.Getenv("ADDR")+"/v1/mcp", strings.NewReader(msg))
	ts.Check(err)
	for k, v := range map[string]string{"Authorization": "Bearer " + ts.Getenv("OSTIARY_TOKEN"), "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": args[0]} {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	ts.Logf("%s %s", resp.Status, body)
	for _, w := range args[2:] {
		not, forbidden := strings.CutPrefix(w, "!")
		if forbidden == strings.Contains(string(body), not) {
			ts.Fatalf("want %q in the answer", w)
		}
	}
}

// edit writes a file again with the first OLD in it as NEW: "edit FROM TO OLD NEW".
func edit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: edit FROM TO OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[2]) {
		ts.Fatalf("%s has no %q", args[0], args[2])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Replace(text, args[2], args[3], 1)), 0o600))
}

// first keeps the first value of a key in a file of JSON in a variable: "id VARIABLE FILE".
func first(key string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 2 {
			ts.Fatalf("usage: %s VARIABLE FILE", key)
		}
		m := regexp.MustCompile(`"` + key + `": "([^"]+)"`).FindStringSubmatch(ts.ReadFile(args[1]))
		if m == nil {
			ts.Fatalf("%s has no %s", args[1], key)
		}
		ts.Setenv(args[0], m[1])
	}
}

func TestErrorsDocument(t *testing.T) { golden(t, "../../docs/ERRORS.md", errorsPage()) }

func TestCommandDocuments(t *testing.T) {
	a := newApp(strings.NewReader(""), io.Discard, io.Discard, func(string) (string, bool) { return "", false })
	pages := commandDocs(newRootCommand(a))
	kept, _ := filepath.Glob("../../docs/cli/*.md")
	for _, file := range kept {
		if _, ok := pages[filepath.Base(file)]; ok {
			continue
		}
		if *update {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			continue
		}
		t.Errorf("%s stands for no command", file)
	}
	for name, text := range pages {
		golden(t, filepath.Join("../../docs/cli", name), text)
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run this test with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is out of date; run this test with -update (-kept +generated):\n%s", file, diff)
	}
}

// Every exit code has its line in the help, and every error code ends with one of them.
func TestExitCodesAreComplete(t *testing.T) {
	for _, c := range call.Codes() {
		if exitMeaning(c.Exit) == "" {
			t.Errorf("%s: exit code %d is not explained", c.Code, c.Exit)
		}
	}
	for i := 1; i < len(exits); i++ {
		if exits[i-1].exit >= exits[i].exit {
			t.Errorf("exit code %d is out of order", exits[i].exit)
		}
	}
}

func TestR3_1_OutcomeExit(t *testing.T) {
	for name, c := range map[string]struct {
		o    call.Outcome
		want call.Exit
	}{
		"lost after sending":       {call.Outcome{Status: call.StatusUnknown, Code: call.CodeProviderLost}, call.ExitUnknown},
		"lost before sending":      {call.Outcome{Status: call.Failed, Delivery: call.NotSent, Code: call.CodeProviderLost}, call.ExitProvider},
		"refused by http, unclear": {call.Outcome{Status: call.StatusUnknown, Code: call.CodeProviderRefused}, call.ExitUnknown},
		"unknown without a code":   {call.Outcome{}, call.ExitUnknown},
		"deadline":                 {call.Outcome{Status: call.StatusUnknown, Code: call.CodeDeadlineExceeded}, call.ExitDeadline},
		"interrupted":              {call.Outcome{Status: call.StatusUnknown, Code: call.CodeCancelled}, call.ExitInterrupted},
		"tool error":               {call.Outcome{Status: call.Failed, Delivery: call.Confirmed, Code: call.CodeToolError}, call.ExitToolError},
		"denied":                   {call.Outcome{Status: call.Failed, Delivery: call.NotSent, Code: call.CodeDenied}, call.ExitRefused},
		"approval":                 {call.Outcome{Status: call.Failed, Delivery: call.NotSent, Code: call.CodeApprovalPending}, call.ExitApprovalPending},
		"input":                    {call.Outcome{Status: call.InputRequired, Code: call.CodeInputRequired}, call.ExitInputRequired},
		"no code":                  {call.Outcome{Status: call.Failed}, call.ExitFailed},
	} {
		if got := outcomeExit(c.o); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
