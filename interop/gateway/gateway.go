//go:build unix

// Package gateway starts the built ostiary binary for the checks of interop: a configuration in a folder of its own, a free
// port, a token, and an end that is looked at.
package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ostiary/ostiary/interop/mcpraw"
)

// Token is what every gateway of the checks asks for.
const Token = "interop-0123456789abcdef0123456789abcdef"

// Options say what to start.
type Options struct {
	Bin    string
	Dir    string   // for the configuration, the data and the log; made if need be
	Config string   // what follows the [server] table
	Server string   // further lines of the [server] table
	Env    []string // further variables, for env_from and credentials
	Ready  time.Duration
}

// Gateway is a running one.
type Gateway struct {
	URL  string // http://127.0.0.1:PORT
	Dir  string
	bin  string
	env  []string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of Wait, once done is closed

	mu   sync.Mutex
	talk bytes.Buffer // what it said on stderr
}

// Start writes the configuration, starts the gateway and waits until it is ready.
func Start(ctx context.Context, o Options) (*Gateway, error) {
	if o.Ready == 0 {
		o.Ready = time.Minute
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	config := "[server]\nlisten = \"127.0.0.1:0\"\ntoken_env = \"OSTIARY_TOKEN\"\n" + o.Server + "\n" + o.Config
	if err := os.WriteFile(filepath.Join(o.Dir, "ostiary.toml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	g := &Gateway{Dir: o.Dir, bin: o.Bin, env: append(append(os.Environ(), "OSTIARY_TOKEN="+Token), o.Env...), done: make(chan struct{})}
	g.cmd = g.command(context.WithoutCancel(ctx), "serve")
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	errOut, err := g.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start gateway: %w", err)
	}
	address := make(chan string, 2)
	var reading sync.WaitGroup
	for _, r := range []io.Reader{out, errOut} {
		reading.Go(func() { g.listen(r, address) })
	}
	go func() {
		reading.Wait()
		g.err = g.cmd.Wait()
		close(g.done)
	}()
	wait, cancel := context.WithTimeout(ctx, o.Ready)
	defer cancel()
	select {
	case g.URL = <-address:
		return g, nil
	case <-g.done:
		return nil, fmt.Errorf("the gateway ended at its start: %w\n%s", orEnded(g.err), g.Talk())
	case <-wait.Done():
		_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL)
		<-g.done
		return nil, fmt.Errorf("the gateway was not ready in %s\n%s", o.Ready, g.Talk())
	}
}

func orEnded(err error) error {
	if err == nil {
		return errors.New("exit code 0")
	}
	return err
}

var readyLine = regexp.MustCompile(`^ready: (http://\S+)`)

func (g *Gateway) listen(r io.Reader, address chan<- string) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 4<<20)
	for sc.Scan() {
		if m := readyLine.FindStringSubmatch(sc.Text()); m != nil {
			address <- m[1]
		}
		g.mu.Lock()
		if g.talk.Len() < 1<<20 {
			g.talk.WriteString(sc.Text() + "\n")
		}
		g.mu.Unlock()
	}
}

// Talk is what the gateway has said so far.
func (g *Gateway) Talk() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.talk.String()
}

// PID is that of the gateway's process.
func (g *Gateway) PID() int { return g.cmd.Process.Pid }

func (g *Gateway) command(ctx context.Context, args ...string) *exec.Cmd {
	args = append(args, "--config", filepath.Join(g.Dir, "ostiary.toml"), "--data", filepath.Join(g.Dir, "data"), "--no-input")
	cmd := exec.CommandContext(ctx, g.bin, args...)
	cmd.Env = g.env
	cmd.Dir = g.Dir
	return cmd
}

// Run runs another command of ostiary against this gateway and returns what it printed on standard output.
func (g *Gateway) Run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := g.command(ctx, args...)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("ostiary %s: %w: %s", strings.Join(args, " "), err, errOut.String())
	}
	return out, nil
}

// Status is `ostiary status --json`.
func (g *Gateway) Status(ctx context.Context) (mcpraw.Object, error) {
	out, err := g.Run(ctx, "status", "--json")
	if err != nil {
		return nil, err
	}
	return mcpraw.ParseObject(out)
}

// Client connects to an export of the gateway.
func (g *Gateway) Client(ctx context.Context, path, revision string) (*mcpraw.Client, error) {
	c := mcpraw.HTTP(g.URL+path, map[string]string{"Authorization": "Bearer " + Token})
	if err := c.Negotiate(ctx, revision); err != nil {
		return nil, err
	}
	return c, nil
}

// stopTime bounds the whole end of a gateway, its providers' included.
const stopTime = 40 * time.Second

// Stop asks the gateway to end and waits. An exit code other than 0 and a process that it leaves behind are errors.
func (g *Gateway) Stop() error {
	select {
	case <-g.done:
		return fmt.Errorf("the gateway had ended already: %w\n%s", orEnded(g.err), g.Talk())
	default:
	}
	children := descendants(g.cmd.Process.Pid)
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-g.done:
	case <-time.After(stopTime):
		_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL)
		<-g.done
		return fmt.Errorf("the gateway did not end in %s\n%s", stopTime, g.Talk())
	}
	if g.err != nil {
		return fmt.Errorf("the gateway ended with %w\n%s", g.err, g.Talk())
	}
	var left []string
	for _, p := range children {
		if p.alive() {
			left = append(left, p.String())
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
	if left != nil {
		return fmt.Errorf("the gateway left processes behind: %s", strings.Join(left, "; "))
	}
	return nil
}
