//go:build unix

// Conformance runs the official MCP conformance suite against the gateway, in both revisions and from both sides:
//
//   - as a server: the suite talks to an export that shows the Go SDK's conformance server under its own names, through a
//     proxy that adds the bearer token, because the suite cannot;
//   - as a client: the suite plays a server, which the gateway has for its provider; the Go SDK's conformance client drives
//     the gateway through it (the subcommand drive).
//
// What is expected to fail stands, with a reason each, in expected-REVISION.yml, and what is expected to say nothing in
// vacuous.txt; an entry that is not needed any more is a failure too. With -baseline the suite runs against the Go SDK's
// own server and client, without a gateway: that is what the harness itself can reach.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var revisions = []string{"2025-11-25", "2026-07-28"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == "drive" {
		err = drive(ctx, os.Args[2:])
	} else {
		err = run(ctx, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// suite is where things are.
type suite struct {
	cache, bin, home, out string
	baseline              bool
}

func (s *suite) program(name string) string { return filepath.Join(s.cache, "go", "conformance", name) }

func run(ctx context.Context, args []string) error {
	var s suite
	fs := flag.NewFlagSet("conformance", flag.ContinueOnError)
	fs.StringVar(&s.cache, "cache", "", "`folder` that interop/install printed")
	fs.StringVar(&s.bin, "bin", "bin/ostiary", "the built ostiary")
	fs.StringVar(&s.home, "home", "interop/conformance", "`folder` with the expected failures")
	fs.StringVar(&s.out, "out", "", "`folder` for results and logs (default: a temporary one, removed when all is well)")
	fs.BoolVar(&s.baseline, "baseline", false, "leave the gateway out")
	only := fs.String("only", "", "one leg: server-2025-11-25, client-2026-07-28, …")
	if err := fs.Parse(args); err != nil {
		return err
	}
	keep, err := s.out != "", error(nil)
	if !keep {
		if s.out, err = os.MkdirTemp("", "ostiary-conformance-"); err != nil {
			return err
		}
	}
	for _, path := range []*string{&s.cache, &s.bin, &s.home, &s.out} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	var errs []error
	for _, revision := range revisions {
		for _, leg := range []struct {
			name string
			run  func(context.Context, string, string) error
		}{{"server", s.server}, {"client", s.client}} {
			name := leg.name + "-" + revision
			if *only != "" && *only != name {
				continue
			}
			started := time.Now()
			err := leg.run(ctx, revision, filepath.Join(s.out, name))
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
			fmt.Printf("%s: %s in %.0f s\n\n", name, map[bool]string{true: "ok", false: "FAILED"}[err == nil], time.Since(started).Seconds())
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w\nresults and logs are in %s", errors.Join(errs...), s.out)
	}
	if !keep {
		return os.RemoveAll(s.out)
	}
	return nil
}

// judge runs the official program and judges what it found.
func (s *suite) judge(ctx context.Context, out, side, revision string, args ...string) error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	args = append([]string{filepath.Join(s.cache, "conformance", "node_modules", "@modelcontextprotocol", "conformance", "dist", "index20.js"), side}, args...)
	args = append(args, "--requirements", revision, "-o", out)
	expected := filepath.Join(s.home, "expected-"+revision+".yml")
	if !s.baseline {
		args = append(args, "--expected-failures", expected)
	}
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Env = append(os.Environ(), "OSTIARY_BIN="+s.bin, "CONFORMANCE_CLIENT="+s.program("everything-client"), "NO_COLOR=1")
	log, err := os.Create(out + ".log")
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	ran := cmd.Run()
	t, err := tally(out, side)
	if err != nil {
		return err
	}
	t.print(os.Stdout)
	if ran != nil {
		return fmt.Errorf("the suite: %w; see %s.log\n%s", ran, out, verdict(out+".log"))
	}
	if s.baseline {
		return nil
	}
	return t.check(side, expected, filepath.Join(s.home, "vacuous.txt"))
}

// verdict are the lines of the suite's log that say what was unexpected.
func verdict(log string) string {
	b, _ := os.ReadFile(log)
	_, rest, found := strings.Cut(string(b), "Unexpected failures")
	if !found {
		rest = string(b[max(0, len(b)-2000):])
	}
	return rest[:min(len(rest), 3000)]
}

func (s *suite) client(ctx context.Context, revision, out string) error {
	command := s.program("everything-client")
	if !s.baseline {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		command = self + " drive"
	}
	return s.judge(ctx, out, "client", revision, "--command", command)
}

func (s *suite) server(ctx context.Context, revision, out string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	target := "127.0.0.1:" + strconv.Itoa(port)
	server := exec.Command(s.program("everything-server"), "-http="+target, "-stateless="+strconv.FormatBool(revision >= "2026"))
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	if err := listening(ctx, target); err != nil {
		return err
	}
	if s.baseline {
		return s.judge(ctx, out, "server", revision, "--url", "http://localhost:"+strconv.Itoa(port)+"/mcp")
	}
	proxy, err := listenAuthProxy()
	if err != nil {
		return err
	}
	defer proxy.close()
	g, err := s.gateway(ctx, "http://"+target+"/mcp", revision, out+".gateway", proxy.origin())
	if err != nil {
		return err
	}
	if err := proxy.serve(g.URL); err != nil {
		return errors.Join(err, g.Stop())
	}
	return errors.Join(s.judge(ctx, out, "server", revision, "--url", proxy.origin()+"/v1/mcp"), g.Stop())
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

func listening(ctx context.Context, addr string) error {
	for range 400 {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(25 * time.Millisecond):
		}
	}
	return fmt.Errorf("nothing listens on %s after 10 s", addr)
}
