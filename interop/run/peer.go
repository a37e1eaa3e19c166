//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ostiary/ostiary/interop/mcpraw"
)

// peer is one real server, as servers.json describes it. ${NPM}, ${GO}, ${OSTIARY}, ${WORK}, ${PORT} and ${CHROMIUM} in its
// strings stand for what is known only here.
type peer struct {
	ID       string            `json:"id"`
	About    string            `json:"about"`
	Needs    string            `json:"needs"` // chromium, node22: skipped, loudly, where it is not there
	Cmd      []string          `json:"cmd"`
	Env      map[string]string `json:"env"`
	URL      string            `json:"url"` // of an HTTP server; the command is then started beside the gateway
	Bearer   string            `json:"bearer"`
	Revision string            `json:"revision"` // that must be negotiated
	Slow     bool              `json:"slow"`     // it may take longer to start than the probe waits (R1.4), and is then a legacy server
	Call     struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
		Expect    string          `json:"expect"`   // in the result
		Offline   bool            `json:"offline"`  // the tool needs the internet: any answer will do, if it is the same as the server's own
		Volatile  bool            `json:"volatile"` // the result differs from call to call
	} `json:"call"`

	port int
	run  *exec.Cmd
	work string
}

func loadPeers(file string) ([]*peer, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var peers []*peer
	if err := json.Unmarshal(b, &peers); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return peers, nil
}

// place is where things are on this machine.
type place struct {
	cache, bin, out, chromium string
	node                      int

	mu    sync.Mutex
	lists map[string][]mcpraw.Tool // what each server lists without the gateway
}

func (at *place) list(id string, tools []mcpraw.Tool) {
	at.mu.Lock()
	defer at.mu.Unlock()
	at.lists[id] = tools
}

func (at *place) listed(id string) []mcpraw.Tool {
	at.mu.Lock()
	defer at.mu.Unlock()
	return at.lists[id]
}

// prepare fills in what is known now, and makes the server's work folder.
func (p *peer) prepare(at *place) error {
	switch {
	case p.Needs == "chromium" && at.chromium == "":
		return errSkip("there is no chromium here")
	case p.Needs == "node22" && at.node < 22:
		return errSkip(fmt.Sprintf("it needs Node 22, here is %d", at.node))
	}
	p.work = filepath.Join(at.out, p.ID, "work")
	if err := os.MkdirAll(p.work, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.work, "hello.txt"), []byte("a file for the filesystem server\n"), 0o644); err != nil {
		return err
	}
	var err error
	if p.port, err = freePort(); err != nil {
		return err
	}
	fill := strings.NewReplacer("${NPM}", filepath.Join(at.cache, "servers", "node_modules"), "${GO}", filepath.Join(at.cache, "go"),
		"${OSTIARY}", at.bin, "${WORK}", p.work, "${PORT}", strconv.Itoa(p.port), "${CHROMIUM}", at.chromium)
	for i := range p.Cmd {
		p.Cmd[i] = fill.Replace(p.Cmd[i])
	}
	for k, v := range p.Env {
		p.Env[k] = fill.Replace(v)
	}
	p.URL = fill.Replace(p.URL)
	p.Call.Arguments = json.RawMessage(fill.Replace(string(p.Call.Arguments)))
	if _, err := exec.LookPath(p.Cmd[0]); err != nil {
		return fmt.Errorf("%s is not installed: %w", p.ID, err)
	}
	return nil
}

type errSkip string

func (e errSkip) Error() string { return string(e) }

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// command is the server's. Its environment is small: what a gateway would give it, and what servers.json says.
func (p *peer) command() *exec.Cmd {
	cmd := exec.Command(p.Cmd[0], p.Cmd[1:]...)
	cmd.Dir = p.work
	for _, name := range []string{"PATH", "LANG", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+p.work)
	for k, v := range p.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// up starts an HTTP server and waits until it listens. A stdio server is started by whoever connects to it.
func (p *peer) up(ctx context.Context) error {
	if p.URL == "" {
		return nil
	}
	log, err := os.Create(filepath.Join(p.work, "..", "server.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	p.run = p.command()
	p.run.Stdout, p.run.Stderr = log, log
	if err := p.run.Start(); err != nil {
		return err
	}
	for range 600 {
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)))
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("the server does not listen after 30 s")
}

// down ends what up started, the children of it too.
func (p *peer) down() {
	if p.run == nil || p.run.Process == nil {
		return
	}
	_ = syscall.Kill(-p.run.Process.Pid, syscall.SIGTERM)
	late := time.AfterFunc(3*time.Second, func() { _ = syscall.Kill(-p.run.Process.Pid, syscall.SIGKILL) })
	_ = p.run.Wait()
	late.Stop()
}

// direct connects to the server without a gateway.
func (p *peer) direct(ctx context.Context) (*mcpraw.Client, error) {
	var c *mcpraw.Client
	if p.URL != "" {
		headers := map[string]string{}
		if p.Bearer != "" {
			headers["Authorization"] = "Bearer " + p.Bearer
		}
		c = mcpraw.HTTP(p.URL, headers)
	} else {
		var err error
		if c, err = mcpraw.Stdio(p.command()); err != nil {
			return nil, err
		}
	}
	revision := p.Revision // servers say no to discover in many ways; telling them apart is the gateway's work, not this client's
	if err := c.Negotiate(ctx, revision); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}
