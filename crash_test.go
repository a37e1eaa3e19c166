//go:build unix

package ostiary_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
)

func init() {
	roles["crashing-gateway"], roles["agreeing-gateway"] = crashingGateway, agreeingGateway
}

// crashingGateway is the child of TestF01: a gateway under load that dies by SIGKILL the n-th time that a call passes a
// step. Each reply that a caller got is written down before the caller goes on.
func crashingGateway() {
	dir := os.Getenv(dirEnv)
	step := os.Getenv(crashEnv)
	n, err := strconv.ParseInt(os.Getenv(crashNEnv), 10, 64)
	check(err)
	time.AfterFunc(time.Minute, func() { check(errors.New("nobody killed this gateway")) })
	var passed atomic.Int64
	o := ostiary.Options{ConfigFile: filepath.Join(dir, "ostiary.toml"), DataDir: filepath.Join(dir, "data"), NoEndpoint: true,
		LookupEnv: environment(map[string]string{"OSTIARY_TOKEN": testToken})}
	o.SetFailpoint(func(s string) {
		if s == step && passed.Add(1) == n {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // no step is taken after the last one
		}
	})
	h, err := ostiary.New(o)
	check(err)
	check(h.Start(context.Background()))
	acked, err := os.OpenFile(filepath.Join(dir, "acked"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	check(err)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var seen call.Frontier // one of the callers says what it has seen, and goes on from there when it is told more
			if i == 0 {
				seen = call.Frontier{}
			}
			for {
				r, err := h.Call(context.Background(), ostiary.CallRequest{Tool: "count", Frontier: seen})
				check(err)
				seen = r.Frontier
				if r.Error != nil || r.Outcome.Code != "" && (r.Outcome.Code != call.CodeStaleFrontier || len(r.Missed) == 0) {
					check(fmt.Errorf("call: %+v %s", r.Outcome, r.Message))
				}
				_, err = acked.WriteString(string(r.Outcome.CallID) + " " + r.Outcome.Status.String() + "\n")
				check(err)
			}
		})
	}
	wg.Wait()
}

// agreeingGateway is the child of TestF01_AGrantIsSpentOnce: a gateway with an operator who agrees to everything, which dies
// by SIGKILL when a call passes a step.
func agreeingGateway() {
	dir, step := os.Getenv(dirEnv), os.Getenv(crashEnv)
	time.AfterFunc(time.Minute, func() { check(errors.New("nobody killed this gateway")) })
	o := ostiary.Options{ConfigFile: filepath.Join(dir, "ostiary.toml"), DataDir: filepath.Join(dir, "data"), LookupEnv: environment(map[string]string{"OSTIARY_TOKEN": testToken})}
	o.SetFailpoint(func(s string) {
		if s == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // no step is taken after the last one
		}
	})
	h, err := ostiary.New(o)
	check(err)
	check(h.Start(context.Background()))
	fmt.Fprintln(os.Stderr, "ready: http://"+h.Addr())
	for {
		waiting, err := h.Approvals(context.Background(), false)
		check(err)
		for _, r := range waiting {
			_, err := h.Decide(context.Background(), ostiary.ApprovalDecision{ID: r.ID, Grant: true})
			check(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// F-01: kill -9 of the gateway at each step between 9 and 12 of the path, under load, 100 times on one data directory.
// After each: no call reached the provider without a durable intent (I1), every intent has exactly one end, those that
// were open are unknown (I2), what a caller was told is on record, the chain verifies (I7), no process is left (I8), and the
// world has exactly the calls that are on record as its commits, each where its record says (R5.6).
func TestF01_KillBetweenTheSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("many crashes take a while")
	}
	dir := t.TempDir()
	counter := filepath.Join(dir, "ran")
	writeConfig(t, dir, "", "-counter", counter)
	interrupted, seen := 0, map[string]bool{}
	for i := range crashes {
		step := []string{"intent", "answer", "verdict", "outcome"}[i%4]
		_ = os.Remove(filepath.Join(dir, "acked"))
		var stderr bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, self(t))
		cmd.Env = append(os.Environ(), roleEnv+"=crashing-gateway", dirEnv+"="+dir, crashEnv+"="+step, crashNEnv+"="+strconv.Itoa(1+i*7%20))
		cmd.Stderr = &stderr
		err := cmd.Run()
		cancel()
		if ee, ok := errors.AsType[*exec.ExitError](err); !ok || ee.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("run %d: the gateway was not killed at step %s: %v\n%s", i, step, err, stderr.String())
		}
		waitGone(t, counter)
		interrupted += afterCrash(t, dir, counter, seen)
		if t.Failed() {
			t.Fatalf("after run %d, killed at step %s", i, step)
		}
	}
	if interrupted == 0 {
		t.Error("no call was ever interrupted: the test did not test anything")
	}
	t.Logf("%d calls were interrupted, %d outcomes seen", interrupted, len(seen))
}

// F-01, I5: kill -9 at each step of a call that somebody has agreed to. The grant is spent with the intent: whatever became
// of the call, it is good for no other, and the effect has taken place once at most.
func TestF01_AGrantIsSpentOnce(t *testing.T) {
	t.Parallel()
	for step, effects := range map[string]int{"intent": 0, "answer": 1, "verdict": 1, "outcome": 1} {
		dir := t.TempDir()
		ran := filepath.Join(dir, "ran")
		writeConfig(t, dir, needsApproval(30), "-counter", ran)
		c := command(t, dir, dirEnv+"="+dir, crashEnv+"="+step, roleEnv+"=agreeing-gateway")
		p := await(t, c)
		if answer := p.ask("write_note", `{"text":"once"}`); answer != "" {
			t.Errorf("killed at %s, and answered %s", step, answer)
		}
		if s := p.end(0); s.Signal() != syscall.SIGKILL {
			t.Fatalf("the gateway was not killed at %s: %v: %s", step, s, p.stderr())
		}
		waitGone(t, ran)
		if n := count(t, ran); n != effects {
			t.Errorf("killed at %s: the tool has run %d times", step, n)
		}
		writeConfig(t, dir, needsApproval(0), "-counter", ran)
		g := &gateway{t: t, dir: dir, path: filepath.Join(dir, "ostiary.toml"), env: map[string]string{"OSTIARY_TOKEN": testToken}}
		g.start()
		must(t, g.ask("write_note", `{"text":"once"}`), `"code":"approval_pending"`, `"delivery":"not_sent"`)
		if n := count(t, ran); n != effects {
			t.Errorf("killed at %s: a spent grant was good for another call", step)
		}
		g.stop()
		must(t, g.records(), map[bool]string{true: `"status":"succeeded"`, false: `"code":"interrupted"`}[step == "outcome"])
		checkStopped(t, filepath.Join(dir, "data"), testToken)
	}
}

// waitGone waits until no process is left that was started for the counter file (I8).
func waitGone(t *testing.T, counter string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		out, err := exec.Command("ps", "-eo", "pid,args").Output()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(out), counter) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("I8: a child is left:\n%s", out)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// afterCrash starts the gateway again, which closes what was open, stops it, and checks the invariants of everything that
// is on record. It says how many calls were interrupted in this run.
func afterCrash(t *testing.T, dir, counter string, seen map[string]bool) (interrupted int) {
	t.Helper()
	h, err := ostiary.New(ostiary.Options{ConfigFile: filepath.Join(dir, "ostiary.toml"), DataDir: filepath.Join(dir, "data"), NoEndpoint: true,
		LookupEnv: environment(map[string]string{"OSTIARY_TOKEN": testToken})})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	world := worldOf(t, h)
	if err := h.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := ostiary.OpenLedger(t.Context(), filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	report, err := l.Verify(t.Context())
	if err != nil || !report.OK {
		t.Errorf("I7: %+v, %v", report, err)
	}
	intents, outcomes := map[string]bool{}, map[string]string{}
	err = l.Records(t.Context(), 0, 0, func(r ostiary.LedgerRecord) error {
		switch r.Kind {
		case "call.intent":
			intents[r.Call] = true
		case "call.outcome":
			if outcomes[r.Call] != "" || !intents[r.Call] {
				t.Errorf("I2: call %s has a second outcome, or no intent: %s", r.Call, r.Body)
			}
			outcomes[r.Call] = string(r.Body)
			var b struct {
				Status string
				World  struct {
					At     map[call.Scope]int64
					Commit string
				}
			}
			if err := json.Unmarshal(r.Body, &b); err != nil {
				return err
			}
			if len(b.World.At) != 1 || b.World.Commit != "call:"+r.Call { // all that these calls do changes the world
				t.Errorf("R5.6: call %s has no place in the world: %s", r.Call, r.Body)
			}
			for scope, seq := range b.World.At {
				at := fmt.Sprint(scope, " ", seq)
				if want := r.Call + " tool." + b.Status; world[at] != want {
					t.Errorf("R5.6: the world has %q at %s, on record is %q", world[at], at, want)
				}
				delete(world, at)
			}
			if strings.Contains(string(r.Body), `"code":"interrupted"`) && !seen[r.Call] {
				interrupted++
				if !strings.Contains(string(r.Body), `"status":"unknown"`) {
					t.Errorf("R3.5: %s was interrupted and is not unknown: %s", r.Call, r.Body)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for at, c := range world {
		t.Errorf("R5.6: the world has %s at %s, and the ledger does not", c, at)
	}
	for id := range intents {
		if outcomes[id] == "" {
			t.Errorf("I2: call %s has no outcome", id)
		}
		seen[id] = true
	}
	ran, err := os.ReadFile(counter)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if n := bytes.Count(ran, []byte("\n")); n > len(intents) {
		t.Errorf("I1: the provider ran %d calls, and there are %d intents", n, len(intents))
	}
	acked, err := os.ReadFile(filepath.Join(dir, "acked"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(acked)) {
		id, status, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && status == "succeeded" && !strings.Contains(outcomes[id], `"status":"succeeded"`) {
			t.Errorf("a caller was told that %s succeeded; on record is %q", id, outcomes[id])
		}
	}
	return interrupted
}

// worldOf is all that stands in the world, by scope and sequence: the call and the kind of each commit.
func worldOf(t *testing.T, h *ostiary.Host) map[string]string {
	t.Helper()
	all := map[string]string{}
	scopes, err := h.WorldScopes(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scopes.Scopes {
		for after, more := int64(0), true; more; {
			page, err := h.WorldDelta(t.Context(), s.Scope, after, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range page.Commits {
				if after++; c.Seq != after {
					t.Fatalf("R5.6: commit %d of %s comes where %d should", c.Seq, s.Scope, after)
				}
				all[fmt.Sprint(s.Scope, " ", c.Seq)] = string(c.CallID) + " " + c.Kind
			}
			more = page.More
		}
	}
	return all
}
