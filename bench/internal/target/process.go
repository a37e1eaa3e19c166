//go:build linux

package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ostiary/ostiary/bench/internal/proc"
)

// Group holds the processes that this run started.
type Group struct {
	order []*process
	pids  map[string]int // root process of each target
}

type process struct {
	name   string
	cmd    *exec.Cmd
	done   chan struct{} // closed once it has been waited for
	paused bool
}

// PID returns the root process of a target, or 0 if it has none to account.
func (g *Group) PID(t *Target) int { return g.pids[t.Name] }

// Up starts the target's process and waits until it is ready, or finds the
// process that the target names.
func (g *Group) Up(ctx context.Context, t *Target) error {
	if g.pids == nil {
		g.pids = map[string]int{}
	}
	switch {
	case t.PIDFile != "":
		b, err := os.ReadFile(t.PIDFile)
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			return fmt.Errorf("%s: %w", t.PIDFile, err)
		}
		if _, err := proc.Sample(pid); err != nil {
			return fmt.Errorf("%s: %w", t.PIDFile, err)
		}
		g.pids[t.Name] = pid
	case t.ProcessOf != "":
		pid, ok := g.pids[t.ProcessOf]
		if !ok {
			return fmt.Errorf("%s is not up", t.ProcessOf)
		}
		g.pids[t.Name] = pid
	case t.Start != nil:
		p, err := g.start(t)
		if err != nil {
			return err
		}
		g.order = append(g.order, p)
		if err := t.ready(ctx, p.done); err != nil {
			return err
		}
		g.pids[t.Name] = p.cmd.Process.Pid
	}
	return nil
}

func (g *Group) start(t *Target) (*process, error) {
	s := t.Start
	if nc, err := net.DialTimeout("tcp", t.Addr, time.Second); err == nil {
		nc.Close()
		return nil, fmt.Errorf("something listens on %s already", t.Addr)
	}
	cmd := exec.Command(s.Cmd[0], s.Cmd[1:]...)
	cmd.Dir = s.Dir
	cmd.Env = os.Environ()
	for k, v := range s.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	if s.Log != "" {
		f, err := os.Create(s.Log)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		cmd.Stdout, cmd.Stderr = f, f
	}
	// A group of its own, so that it can be ended with all its children; and it
	// ends with us, however we end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := fork(cmd); err != nil {
		return nil, err
	}
	p := &process{name: t.Name, cmd: cmd, done: make(chan struct{})}
	go func() { cmd.Wait(); close(p.done) }()
	return p, nil
}

// forks runs the starts of processes on one thread that lives as long as we
// do: a process's parent-death signal comes when the thread that forked ends.
var forks chan func()

func fork(cmd *exec.Cmd) error {
	if forks == nil {
		forks = make(chan func())
		go func() {
			runtime.LockOSThread()
			for f := range forks {
				f()
			}
		}()
	}
	err := make(chan error)
	forks <- func() { err <- cmd.Start() }
	return <-err
}

func (t *Target) ready(ctx context.Context, gone <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(t.Start.ReadyIn)*time.Second)
	defer cancel()
	var last error
	for {
		if last = t.Start.probe(ctx); last == nil {
			return nil
		}
		select {
		case <-gone:
			return errors.New("ended before it was ready" + t.Start.hint())
		case <-ctx.Done():
			return fmt.Errorf("not ready in %d s: %v%s", t.Start.ReadyIn, last, t.Start.hint())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *Start) hint() string {
	if s.Log == "" {
		return " (start.log would show why)"
	}
	return ", see " + s.Log
}

func (s *Start) probe(ctx context.Context) error {
	if s.ReadyURL == "" {
		nc, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", s.ReadyTCP)
		if err == nil {
			nc.Close()
		}
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.ReadyURL, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	resp.Body.Close()
	if resp.StatusCode >= 500 {
		return fmt.Errorf("%s answers %s", s.ReadyURL, resp.Status)
	}
	return nil
}

// Only lets run what t is and needs, and pauses every other process that was
// started here: a gateway with work put off must not do it in another's turn.
// Of a paused process's children, those that wait for it wait as well.
func (g *Group) Only(t *Target, all []*Target) {
	run := map[string]bool{}
	var mark func(string)
	mark = func(name string) {
		for _, x := range all {
			if x.Name == name && !run[name] {
				run[name] = true
				mark(x.ProcessOf)
				for _, n := range x.Needs {
					mark(n)
				}
			}
		}
	}
	mark(t.Name)
	for _, p := range g.order {
		p.pause(!run[p.name])
	}
}

// Resume lets all processes run.
func (g *Group) Resume() {
	for _, p := range g.order {
		p.pause(false)
	}
}

func (p *process) pause(yes bool) {
	if p.paused == yes {
		return
	}
	p.paused = yes
	signal := syscall.SIGCONT
	if yes {
		signal = syscall.SIGSTOP
	}
	p.cmd.Process.Signal(signal)
}

// Down ends every process that Up started, the last first: it asks, waits for
// up to five seconds, and then kills what is left of it and of its children.
func (g *Group) Down() {
	g.Resume()
	for _, p := range slices.Backward(g.order) {
		pid := p.cmd.Process.Pid
		started := map[int]int64{}
		if tree, err := proc.Sample(pid); err == nil {
			for _, child := range tree.PIDs[1:] {
				started[child] = proc.Started(child)
			}
		}
		p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(5 * time.Second):
			p.cmd.Process.Kill()
			<-p.done
		}
		syscall.Kill(-pid, syscall.SIGKILL) // its group, which only we made
		for child, at := range started {
			if at != 0 && proc.Started(child) == at {
				syscall.Kill(child, syscall.SIGKILL)
			}
		}
	}
	g.order = nil
}
