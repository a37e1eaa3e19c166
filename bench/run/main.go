//go:build linux

// Run measures the gateway, next to what it could be at best and what it would usually be, in one run: `make bench` builds
// all that it needs and calls it. It prints Markdown, and with -write puts it into docs/PERFORMANCE.md.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	bin, ostiary, dir, write string
	parts                    string
	rounds                   int
	slice                    time.Duration
	sizes, workers           string
	streams, lists           int
	providers, tools         int
	soak                     int
	soakTime                 time.Duration
	eventRounds              int
	eventSlice               time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.StringVar(&o.bin, "bin", "", "`folder` with upstream, proxy, load, idle, tools and sdkgateway")
	fs.StringVar(&o.ostiary, "ostiary", "bin/ostiary", "the built ostiary")
	fs.StringVar(&o.write, "write", "", "`file` whose part between <!-- bench:begin --> and <!-- bench:end --> gets the result")
	fs.StringVar(&o.parts, "parts", "load,stdio,idle,tools,memory,soak,events", "what to measure")
	short := fs.Bool("short", false, "shorter in everything: to see that it works, not for figures to keep")
	fs.IntVar(&o.rounds, "rounds", 5, "slices of each target in each cell")
	fs.DurationVar(&o.slice, "slice", 1500*time.Millisecond, "length of a slice")
	fs.StringVar(&o.sizes, "sizes", "100,100KB", "payload sizes")
	fs.StringVar(&o.workers, "c", "1,64", "concurrencies")
	fs.IntVar(&o.soak, "soak-calls", 1_000_000, "calls after which memory is looked at again")
	fs.DurationVar(&o.soakTime, "soak-time", 10*time.Minute, "time for them at most")
	if err := fs.Parse(args); err != nil {
		return err
	}
	o.streams, o.lists, o.providers, o.tools = 1000, 50, 20, 10_000
	o.eventRounds, o.eventSlice = 10, 1500*time.Millisecond
	if *short {
		o.rounds, o.slice, o.soak, o.soakTime, o.lists = 2, 400*time.Millisecond, 30_000, time.Minute, 5
		o.eventRounds, o.eventSlice = 3, 500*time.Millisecond
	}
	for _, path := range []*string{&o.bin, &o.ostiary} {
		abs, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = abs
	}
	dir, err := os.MkdirTemp("", "ostiary-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.dir = dir
	var report bytes.Buffer
	out := io.MultiWriter(os.Stdout, &report)
	fmt.Fprintf(out, "Measured %s by `make bench`, with %s.\n\n", time.Now().Format("2006-01-02"), o.version())
	var errs []error
	for _, part := range []struct {
		name, title string
		measure     func(context.Context, io.Writer) error
	}{
		{"load", "Calls, over HTTP to an HTTP provider", o.load},
		{"stdio", "Calls, over HTTP to a stdio provider", o.stdio},
		{"idle", "Idle streams", o.idle},
		{"tools", "Listing tools", o.list},
		{"memory", "Memory with ten stdio providers", o.memory},
		{"soak", "Memory after many calls", o.long},
		{"events", "Calls beside events", o.events},
	} {
		if !strings.Contains(","+o.parts+",", ","+part.name+",") {
			continue
		}
		fmt.Fprintf(out, "## %s\n\n", part.title)
		if err := part.measure(ctx, out); err != nil {
			fmt.Fprintf(out, "Not measured: %v\n\n", err)
			errs = append(errs, fmt.Errorf("%s: %w", part.name, err))
		}
	}
	if o.write != "" && len(errs) == 0 {
		errs = append(errs, insert(o.write, report.String()))
	}
	return errors.Join(errs...)
}

func (o *options) version() string {
	out, err := exec.Command(o.ostiary, "version").Output()
	if err != nil {
		return "an unknown version"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// insert replaces the part of a document that is measured.
func insert(file, text string) error {
	const begin, end = "<!-- bench:begin -->\n", "<!-- bench:end -->"
	doc, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok1 := strings.Cut(string(doc), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has no place for figures", file)
	}
	return os.WriteFile(file, []byte(before+begin+"\n"+text+end+after), 0o644)
}

// program runs one of the harness's programs with the targets given.
func (o *options) program(ctx context.Context, out io.Writer, name string, targets []target, args ...string) error {
	file := filepath.Join(o.dir, name+"-targets.json")
	b, err := json.MarshalIndent(targets, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(o.bin, name), append([]string{"-targets", file}, args...)...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it ends what it has started
	cmd.WaitDelay = 20 * time.Second
	return cmd.Run()
}

func (o *options) load(ctx context.Context, out io.Writer) error {
	targets := []target{o.direct(), o.proxy(), o.gateway("ostiary-relaxed", "relaxed"), o.gateway("ostiary-durable", "durable"), o.sdkGateway()}
	return o.loaded(ctx, out, targets, "proxy")
}

func (o *options) stdio(ctx context.Context, out io.Writer) error {
	targets := []target{o.gatewayStdio("ostiary-relaxed", "relaxed"), o.gatewayStdio("ostiary-durable", "durable"), o.sdkGatewayStdio()}
	return o.loaded(ctx, out, targets, "ostiary-relaxed")
}

func (o *options) loaded(ctx context.Context, out io.Writer, targets []target, baseline string) error {
	return o.program(ctx, out, "load", targets, "-baseline", baseline, "-sizes", o.sizes, "-c", o.workers,
		"-rounds", strconv.Itoa(o.rounds), "-slice", o.slice.String())
}

func (o *options) idle(ctx context.Context, out io.Writer) error {
	modern := o.gateway("ostiary", "durable")
	legacy := modern
	legacy.Name, legacy.Era, legacy.Start, legacy.ProcessOf = "ostiary-2025-11-25", "legacy", nil, "ostiary"
	return o.program(ctx, out, "idle", []target{o.direct(), modern, legacy, o.sdkGateway()}, "-only", "ostiary,ostiary-2025-11-25,sdk-gateway", "-n", strconv.Itoa(o.streams))
}
