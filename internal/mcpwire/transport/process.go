package transport

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// SpawnError says why a child process could not be started (F-12).
type SpawnError struct {
	Command string
	Err     error
	Advice  string // what to do, one sentence
}

func (e *SpawnError) Error() string { return fmt.Sprintf("start %s: %v", e.Command, e.Err) }

func (e *SpawnError) Unwrap() error { return e.Err }

// Exhausted says that the host ran out of processes, files or memory, not that the command is wrong.
func (e *SpawnError) Exhausted() bool {
	for _, errno := range []syscall.Errno{syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(e.Err, errno) {
			return true
		}
	}
	return false
}

func spawnError(command string, err error) *SpawnError {
	e := &SpawnError{Command: command, Err: err}
	switch {
	case errors.Is(err, syscall.EAGAIN):
		e.Advice = "the limit of processes is reached; raise it (ulimit -u, the pids cgroup) or run fewer providers"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		e.Advice = "the limit of open files is reached; raise it (ulimit -n) or run fewer providers"
	case errors.Is(err, syscall.ENOMEM):
		e.Advice = "the host is out of memory"
	case errors.Is(err, syscall.E2BIG):
		e.Advice = "the arguments and the environment are too large together; shorten them"
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		e.Advice = "check that the command is installed, that it is on the PATH of the provider, and that the working directory exists"
	case errors.Is(err, fs.ErrPermission):
		e.Advice = "check that the command is executable and that the working directory can be entered"
	case errors.Is(err, syscall.ENOEXEC):
		e.Advice = "the file is no program for this machine; a script needs an interpreter line"
	default:
		e.Advice = "check the command and its working directory"
	}
	return e
}

// process is one child with everything that it started. Its goroutine owns the OS thread that forked it, so that the
// child's death signal is tied to the gateway and not to a thread that the scheduler may retire.
type process struct {
	pid    int
	group  processGroup
	exited chan struct{} // closed when the child itself has been reaped
	state  *os.ProcessState

	mu      sync.Mutex
	stopped string         // the last rung of the ladder that was needed: stdin, TERM, KILL; "" while nobody stopped it
	known   map[int]uint64 // descendants seen so far, by pid, with their start time
	pipes   []uint64       // inodes of the pipes that the child was given
}

// startProcess starts cmd, whose three streams are *os.File.
func startProcess(cmd *exec.Cmd, pipes []uint64) (*process, error) {
	p := &process{exited: make(chan struct{}), known: map[int]uint64{}, pipes: pipes}
	setProcAttr(cmd)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.pid = cmd.Process.Pid
		p.group.adopt(cmd.Process)
		started <- nil
		unreaped := awaitExit(p.pid)
		if unreaped { // the number of the group cannot have been given away while its leader is a zombie
			p.sweep(true)
		}
		_ = cmd.Wait() // the streams are files: Wait waits for the child alone, and its state says how it ended
		if !unreaped {
			p.group.kill()
		}
		p.state = cmd.ProcessState
		p.group.release()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// exitText says how the child ended; call it after exited is closed.
func (p *process) exitText() string {
	if p.state == nil {
		return "exit status unknown"
	}
	return p.state.String()
}

func (p *process) waitFor(d time.Duration) bool {
	if d <= 0 {
		select {
		case <-p.exited:
			return true
		default:
			return false
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
		return false
	}
}

// rung notes how far the ladder had to be walked; a child that ended before it stays at "".
func (p *process) rung(name string) {
	if p.waitFor(0) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = name
}

// ended says how the child ended, and which rung that took; "" while it lives.
func (p *process) ended() (how, stopped string) {
	if !p.waitFor(0) {
		return "", ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exitText(), p.stopped
}

// stop walks the ladder of R1.12 and S-027 within the bound: stdin is closed, then TERM, then KILL for everything. A
// grandchild that left the group is found by its ancestry before the child is gone (F-15).
func (p *process) stop(closeStdin func(), bound time.Duration) {
	p.record()
	p.rung("stdin")
	closeStdin()
	if p.waitFor(bound * 2 / 5) {
		p.sweep(false)
		return
	}
	p.record()
	p.rung("TERM")
	p.group.terminate()
	if p.waitFor(bound * 2 / 5) {
		p.sweep(false)
		return
	}
	p.rung("KILL")
	p.sweep(true)
	p.waitFor(max(bound/5, 500*time.Millisecond))
	p.sweep(false)
}

// lookCommand finds the program on the PATH of the child's own environment. A command with a separator in it is taken as
// it stands.
func lookCommand(command string, env []string) (string, error) {
	if runtime.GOOS == "windows" || strings.ContainsRune(command, filepath.Separator) {
		return command, nil
	}
	var path string
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	found := fs.ErrNotExist
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // never the working directory of the moment
		}
		file := filepath.Join(dir, command)
		info, err := os.Stat(file)
		switch {
		case err != nil || info.IsDir():
		case info.Mode()&0o111 == 0:
			found = fs.ErrPermission
		default:
			return file, nil
		}
	}
	return "", &exec.Error{Name: command, Err: found}
}

func newCommand(ctx context.Context, o *StdioOptions) (*exec.Cmd, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, err := lookCommand(o.Command, o.Env)
	if err != nil {
		return nil, spawnError(o.Command, err)
	}
	cmd := exec.Command(file, o.Args...) // its life is not ctx's: the carrier ends it, step by step
	cmd.Args[0] = o.Command
	cmd.Dir = o.Dir
	cmd.Env = o.Env
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would hand on everything that the gateway has (R1.12)
	}
	return cmd, nil
}
