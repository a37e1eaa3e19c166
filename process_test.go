//go:build unix

package ostiary_test

import (
	"bytes"
	"context"
	"errors"
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
)

// process is a gateway that runs by itself: the real command, with an environment of its own.
type process struct {
	*exec.Cmd
	t    testing.TB
	addr string
	read chan struct{} // closed when all of stderr has been read

	mu  sync.Mutex // guards log
	log bytes.Buffer
}

var readyLine = regexp.MustCompile(`ready: http://(\S+)`)

// serve starts `ostiary serve` on the configuration and the data directory of dir, and waits until it is ready.
func serve(t testing.TB, dir string, env ...string) *process {
	t.Helper()
	return await(t, command(t, dir, env...))
}

// await starts a gateway and waits until it is ready.
func await(t testing.TB, c *exec.Cmd) *process {
	t.Helper()
	p := launch(t, c)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if m := readyLine.FindStringSubmatch(p.stderr()); m != nil {
			p.addr = m[1]
			return p
		}
		select {
		case <-p.read:
			t.Fatalf("the gateway has ended: %s", p.stderr())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("the gateway is not ready: %s", p.stderr())
		}
	}
}

// launch starts a gateway and reads its stderr.
func launch(t testing.TB, c *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: c, t: t, read: make(chan struct{})}
	out, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.read)
		b := make([]byte, 4096)
		for {
			n, err := out.Read(b)
			p.mu.Lock()
			p.log.Write(b[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		_ = p.Wait()
	})
	return p
}

// command is `ostiary serve` on the configuration and the data directory of dir.
func command(t testing.TB, dir string, env ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(self(t), "serve", "--config", filepath.Join(dir, "ostiary.toml"), "--data", filepath.Join(dir, "data"))
	c.Dir = dir
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, roleEnv + "=ostiary", "OSTIARY_TOKEN=" + testToken}, env...)
	return c
}

func (p *process) stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// end sends a signal, or none if it is 0, waits, and says how the process ended.
func (p *process) end(s syscall.Signal) syscall.WaitStatus {
	p.t.Helper()
	if s != 0 {
		if err := p.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			p.t.Fatal(err)
		}
	}
	select {
	case <-p.read:
	case <-time.After(60 * time.Second):
		p.t.Fatalf("the gateway does not end: %s", p.stderr())
	}
	if err := p.Wait(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			p.t.Fatal(err)
		}
	}
	return p.ProcessState.Sys().(syscall.WaitStatus)
}

// ask is a tool call; "" if no answer came, as when the gateway ended meanwhile.
func (p *process) ask(tool, arguments string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, body, err := callModern(ctx, http.DefaultClient, p.addr, tool, arguments)
	if err != nil {
		return ""
	}
	return string(body)
}

// children are the processes that the gateway has started, by /proc.
func (p *process) children() (pids []int) {
	p.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // it has ended
		}
		after := string(stat[bytes.LastIndexByte(stat, ')')+1:])
		if f := strings.Fields(after); len(f) > 1 && f[1] == strconv.Itoa(p.Process.Pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// readAll is io.ReadAll for a body that may have been cut.
func readAll(r io.Reader) string {
	b, _ := io.ReadAll(r) // what came until then
	return string(b)
}
