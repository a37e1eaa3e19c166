//go:build unix

package ostiary_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ostiary/ostiary"
)

// F-02: kill -9 while results are held and arguments are kept. What a caller was told is kept can be read afterwards, byte
// for byte; nothing is there by half; and the gateway starts as if nothing had been.
func TestF02_KilledWhileEvidenceIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeConfig(t, dir, withNotes("quarantine"))
	told := map[string]bool{}
	var mu sync.Mutex // guards told
	evidence := regexp.MustCompile(`evidence (ev-[0-9A-Za-z-]+)`)
	for round := range 4 {
		p := serve(t, dir)
		must(t, p.ask("write_note", `{"text":"the key is `+aSecret+`"}`), `"status":"succeeded"`)
		var wg sync.WaitGroup
		enough := make(chan struct{}, 1000)
		for range 6 {
			wg.Go(func() {
				for {
					body := p.ask("read_notes", `{}`)
					if body == "" {
						return
					}
					if m := evidence.FindStringSubmatch(body); m != nil {
						mu.Lock()
						told[m[1]] = true
						mu.Unlock()
						enough <- struct{}{}
					} else {
						t.Errorf("nothing was kept: %s", body)
						return
					}
					p.ask("fail", `{"message":"`+aSecret+`"}`) // its arguments are kept
				}
			})
		}
		for range 5 * (round + 1) {
			select {
			case <-enough:
			case <-time.After(30 * time.Second):
				t.Fatal("nothing is kept")
			}
		}
		if s := p.end(syscall.SIGKILL); s.Signal() != syscall.SIGKILL {
			t.Fatalf("the gateway was not killed: %v: %s", s, p.stderr())
		}
		wg.Wait()
	}
	g := &gateway{t: t, dir: dir, path: filepath.Join(dir, "ostiary.toml"), env: map[string]string{"OSTIARY_TOKEN": testToken}}
	g.start()
	held, err := g.Evidence(t.Context(), ostiary.EvidenceFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range held {
		delete(told, item.ID)
		got, err := g.EvidenceContent(t.Context(), item.ID)
		if err != nil || !strings.Contains(string(got.Content), aSecret) {
			t.Errorf("I3: evidence %s: %q, %v", item.ID, got.Content, err)
		}
	}
	for id := range told {
		t.Errorf("I3: a caller was told of %s, and it is not there", id)
	}
	if len(held) < 20 {
		t.Errorf("only %d items were kept: the test did not test much", len(held))
	}
	g.stop()
	checkStopped(t, filepath.Join(dir, "data"), aSecret, testToken)
}

// F-02: kill -9 while the data directory is made, as soon as each of its files appears. The next start finishes it.
func TestF02_KilledWhileTheDataDirectoryIsMade(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"ostiary.lock", "ostiary.db", "ostiary.db-wal", "ledger.pub", "ledger.key", "vault.key", "vault.age"} {
		dir := t.TempDir()
		writeConfig(t, dir, exported)
		p := launch(t, command(t, dir))
		for deadline := time.Now().Add(30 * time.Second); ; {
			if _, err := os.Lstat(filepath.Join(dir, "data", file)); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s never appeared: %s", file, p.stderr())
			}
		}
		p.end(syscall.SIGKILL)
		// What a crash in the midst of writing a file leaves beside it.
		for _, half := range []string{"ledger.pub.tmp", "ledger.key.tmp", "vault.age.tmp", "vault.key.tmp"} {
			if err := os.WriteFile(filepath.Join(dir, "data", half), []byte("half of"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p = serve(t, dir)
		must(t, p.ask("count", `{}`), `"status":"succeeded"`)
		if s := p.end(syscall.SIGTERM); s.ExitStatus() != 0 {
			t.Errorf("killed at %s, the next start ends with %d: %s", file, s.ExitStatus(), p.stderr())
		}
		checkStopped(t, filepath.Join(dir, "data"), testToken)
	}
}

// F-07, F-08: a gateway that was stopped by a signal and has not been seen for a while still has its data directory: nobody
// else gets it meanwhile, and when it wakes up it goes on as the one that it was.
func TestF08_AGatewayThatSleepsKeepsItsDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeConfig(t, dir, exported)
	p := serve(t, dir)
	must(t, p.ask("count", `{}`), `"status":"succeeded"`)
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	before := len(p.children())
	h, err := ostiary.New(ostiary.Options{ConfigFile: filepath.Join(dir, "ostiary.toml"), DataDir: filepath.Join(dir, "data"), LookupEnv: environment(map[string]string{"OSTIARY_TOKEN": testToken})})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); !errors.Is(err, ostiary.ErrLocked) || !strings.Contains(err.Error(), "held by process") {
		t.Errorf("a second gateway: %v", err)
	}
	if err := h.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := p.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	must(t, p.ask("count", `{}`), `"status":"succeeded"`)
	if after := len(p.children()); before != 1 || after != 1 {
		t.Errorf("the gateway had %d children, and has %d", before, after)
	}
	if s := p.end(syscall.SIGTERM); s.ExitStatus() != 0 {
		t.Errorf("it ends with %d: %s", s.ExitStatus(), p.stderr())
	}
	checkStopped(t, filepath.Join(dir, "data"), testToken)
}

// F-10: SIGTERM under load: the process ends with 0, calls in work have ended before, and each has its end on record.
func TestF10_TerminatedUnderLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeConfig(t, dir, strings.Replace(exported, `["aur`, `["aur.mcp.ex.slow", "aur`, 1))
	p := serve(t, dir)
	var wg sync.WaitGroup
	answered := make(chan struct{}, 10000)
	for i := range 8 {
		wg.Go(func() {
			for {
				tool, arguments := "count", `{}`
				if i%2 == 0 {
					tool, arguments = "slow", `{"steps":1,"ms":50}`
				}
				status, body, err := callModern(context.Background(), http.DefaultClient, p.addr, tool, arguments)
				if err != nil || status == http.StatusServiceUnavailable {
					return // it takes no new calls
				}
				if status != http.StatusOK || !strings.Contains(string(body), `"status":"succeeded"`) && !strings.Contains(string(body), `"code":"cancelled"`) && !strings.Contains(string(body), `"delivery":"not_sent"`) {
					t.Errorf("HTTP %d: %s", status, body)
				}
				answered <- struct{}{}
			}
		})
	}
	for range 40 {
		<-answered
	}
	if s := p.end(syscall.SIGTERM); s.ExitStatus() != 0 {
		t.Errorf("it ends with %v: %s", s, p.stderr())
	}
	wg.Wait()
	checkStopped(t, filepath.Join(dir, "data"), testToken)
}

// F-50: nobody reads the log: stderr is full, and holds up neither calls nor the end.
func TestF50_NobodyReadsTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeConfig(t, dir, exported)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := &process{t: t, read: make(chan struct{})}
	p.Cmd = command(t, dir)
	p.Stderr = w
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	late := time.AfterFunc(time.Minute, func() { _ = p.Process.Kill() })
	defer late.Stop()
	var head []byte
	for b := make([]byte, 256); p.addr == ""; {
		n, err := r.Read(b)
		if err != nil {
			t.Fatalf("%v: %s", err, head)
		}
		head = append(head, b[:n]...)
		if m := readyLine.FindSubmatch(head); m != nil {
			p.addr = string(m[1])
		}
	}
	// Each of these is a line in the log. A pipe holds 64 KiB.
	for range 1200 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.addr+"/v1/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "rebind.evil"
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("a request is not answered any more: %v", err)
		}
		if readAll(resp.Body); resp.StatusCode != http.StatusForbidden {
			t.Fatalf("HTTP %d", resp.StatusCode)
		}
		_ = resp.Body.Close()
	}
	must(t, p.ask("count", `{}`), `"status":"succeeded"`)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	checkStopped(t, filepath.Join(dir, "data"), testToken)
}
