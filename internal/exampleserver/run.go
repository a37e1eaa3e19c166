package exampleserver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// dieCode is the exit code of a process that the tool die has ended.
const dieCode = 3

// Run is the hidden command `ostiary example-server`: it reads its flags from args and serves until the client leaves or
// ctx ends. [flag.ErrHelp] means that the flags were asked for and have been printed.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) error {
	opts := Options{Die: func() { os.Exit(dieCode) }, Logger: slog.New(slog.NewTextHandler(errOut, nil))}
	fs := flag.NewFlagSet("example-server", flag.ContinueOnError)
	fs.SetOutput(errOut)
	addr := fs.String("http", "", "serve Streamable HTTP at /mcp on this loopback `address` instead of stdio")
	fs.Var(&opts.Era, "era", "`revisions` to speak: modern (2026-07-28), legacy (2025-11-25 and before) or both")
	fs.StringVar(&opts.Bearer, "bearer", "", "HTTP: the `token` that every request must show")
	fs.StringVar(&opts.Counter, "counter", "", "`file` that gets a line for every call that ran")
	fs.StringVar(&opts.Notes, "notes", "", "`file` that write_note appends to")
	fs.IntVar(&opts.Tools, "tools", 0, "list so many further tools")
	fs.IntVar(&opts.Page, "page", 0, "tools on one page of tools/list; 0: all on one")
	fs.BoolVar(&opts.Odd, "odd", false, "also list tools whose names or schemas have to be refused, or need an alias")
	fs.BoolVar(&opts.Extensions, "extensions", false, "offer tool-contract and world-events, and list the tools that use them")
	fs.StringVar(&opts.EventSettings, "event-settings", "", "raw `settings` of world-events")
	fs.IntVar(&opts.EventsAtStart, "events-at-start", 0, "send so many events before tools/list is answered")
	settings := fs.String("contract-settings", "", "`file` with the settings of tool-contract; one that is empty or missing: none are offered")
	fs.IntVar(&opts.DriftAfter, "drift-after", 0, "change the tool echo after so many calls")
	fs.Func("drifted", "`tool` whose definition is changed from the start; may be repeated", func(s string) error {
		opts.Drifted = append(opts.Drifted, s)
		return nil
	})
	fs.DurationVar(&opts.StartDelay, "start-delay", 0, "wait before the first message is read")
	ignore := fs.Bool("ignore-signals", false, "go on when the input ends, and on SIGTERM: only SIGKILL helps")
	grandchild := fs.Bool("spawn-grandchild", false, "start a process that keeps the output open and outlives this one (POSIX)")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("example server: %q: no arguments are expected", strings.Join(fs.Args(), " "))
	}
	if err := opts.validate(); err != nil {
		return fmt.Errorf("example server: %w", err)
	}
	if *settings != "" {
		raw, err := os.ReadFile(*settings)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("example server: %w", err)
		}
		if opts.ContractSettings = strings.TrimSpace(string(raw)); opts.ContractSettings == "" {
			opts.ContractSettings = "none"
		}
	}
	if *grandchild {
		if err := spawn(errOut); err != nil {
			return err
		}
	}
	if *ignore {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		ctx = context.WithoutCancel(ctx)
	}
	if *addr != "" {
		return listen(ctx, *addr, opts)
	}
	err := ServeStdio(ctx, in, out, opts)
	if *ignore {
		opts.Logger.Info("the input has ended, and that is ignored")
		select {}
	}
	return err
}

// spawn starts a process that nobody waits for, as servers do that start browsers and language servers.
func spawn(errOut io.Writer) error {
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "3600"}, &os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
	if err != nil {
		return fmt.Errorf("start grandchild: %w", err)
	}
	fmt.Fprintln(errOut, "grandchild", p.Pid)
	return p.Release()
}

const shutdownTime = 2 * time.Second

func listen(ctx context.Context, addr string, opts Options) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || !loopback(host) {
		return fmt.Errorf("example server: address %q: expected a loopback host and a port", addr)
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("example server: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", Handler(opts))
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	srv := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    slog.NewLogLogger(opts.logger().Handler(), slog.LevelWarn),
	}
	opts.logger().Info("listening", "url", "http://"+ln.Addr().String()+"/mcp")
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		return fmt.Errorf("example server: %w", err)
	case <-ctx.Done():
	}
	cancel() // open streams end
	late, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer stop()
	if srv.Shutdown(late) != nil {
		_ = srv.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("example server: %w", err)
	}
	return nil
}
