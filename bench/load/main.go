//go:build linux

// Load measures MCP servers and gateways side by side: it makes the same calls
// to each target in short slices that take turns, so that whatever else the
// machine does hits all of them alike, checks every answer, and compares rates,
// latencies and processor time within each turn.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ostiary/ostiary/bench/internal/mcp"
	"github.com/ostiary/ostiary/bench/internal/target"
)

// options are the flags.
type options struct {
	Targets  string        `json:"-"`
	Only     []string      `json:"only,omitempty"`
	Call     string        `json:"call"`
	Text     string        `json:"text"`
	Sizes    []int         `json:"sizes"`
	Workers  []int         `json:"concurrencies"`
	Rounds   int           `json:"rounds"`
	Slice    time.Duration `json:"slice_ns"`
	MaxCalls int           `json:"max_calls_per_slice"`
	Timeout  time.Duration `json:"timeout_ns"`
	MaxTime  time.Duration `json:"max_time_ns"`
	Settle   time.Duration `json:"settle_ns"`
	Pause    bool          `json:"pause"`
	Warmup   int           `json:"warmup"`
	Baseline string        `json:"baseline"`
	JSON     string        `json:"-"`
}

func main() {
	o, err := parseFlags(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(2)
	}
	debug.SetGCPercent(400)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func parseFlags(args []string) (options, error) {
	var o options
	var only, sizes, workers string
	f := flag.NewFlagSet("load", flag.ContinueOnError)
	f.StringVar(&o.Targets, "targets", "targets.json", "file of targets")
	f.StringVar(&only, "only", "", "names of targets to measure, separated by commas (default all)")
	f.StringVar(&o.Call, "call", "echo", "tool to call: echo (size is that of its text), blob (of its answer) or slow (milliseconds)")
	f.StringVar(&o.Text, "text", mcp.Plain, "text of echo: plain (ASCII words) or mixed (quotes, line ends, markup, Unicode)")
	f.StringVar(&sizes, "sizes", "100,100KB", "payload sizes in bytes, separated by commas (KB is 1000)")
	f.StringVar(&workers, "c", "1,64", "concurrencies, separated by commas")
	f.IntVar(&o.Rounds, "rounds", 5, "slices of each target in each cell of size and concurrency")
	f.DurationVar(&o.Slice, "slice", 1500*time.Millisecond, "length of a slice")
	f.IntVar(&o.MaxCalls, "max-calls", 1_000_000, "calls in a slice at most")
	f.DurationVar(&o.Timeout, "timeout", 20*time.Second, "of one call")
	f.DurationVar(&o.MaxTime, "max-time", 14*time.Minute, "of the whole run; what is measured by then is printed")
	f.DurationVar(&o.Settle, "settle", 2*time.Second, "wait at most this long after a slice for the target to be at rest; what it does then counts as its processor time")
	f.BoolVar(&o.Pause, "pause", true, "stop (SIGSTOP) the processes started here that a turn does not need")
	f.IntVar(&o.Warmup, "warmup", 300, "calls to a target before measuring, where it does not say")
	f.StringVar(&o.Baseline, "baseline", "", "target to compare with (default the first)")
	f.StringVar(&o.JSON, "json", "", "write all figures, slice by slice, to this file")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	if only != "" {
		o.Only = strings.Split(only, ",")
	}
	var err error
	if o.Sizes, err = numbers(sizes, 0, 64_000_000); err != nil {
		return o, fmt.Errorf("-sizes: %w", err)
	}
	if o.Workers, err = numbers(workers, 1, 4096); err != nil {
		return o, fmt.Errorf("-c: %w", err)
	}
	if !slices.Contains([]string{"echo", "blob", "slow"}, o.Call) {
		return o, fmt.Errorf("-call %q is none of echo, blob and slow", o.Call)
	}
	if o.Text != mcp.Plain && o.Text != mcp.Mixed {
		return o, fmt.Errorf("-text %q is neither plain nor mixed", o.Text)
	}
	if o.Rounds < 1 || o.Slice <= 0 || o.MaxCalls < 1 || o.Timeout <= 0 || o.MaxTime <= 0 || o.Warmup < 1 {
		return o, fmt.Errorf("-rounds, -slice, -max-calls, -timeout, -max-time and -warmup must be positive")
	}
	return o, nil
}

func numbers(list string, low, high int) ([]int, error) {
	var out []int
	for s := range strings.SplitSeq(list, ",") {
		digits, unit := strings.TrimSpace(s), 1
		for suffix, n := range map[string]int{"KB": 1000, "KiB": 1024, "MB": 1_000_000, "MiB": 1 << 20} {
			if d, ok := strings.CutSuffix(digits, suffix); ok {
				digits, unit = d, n
				break
			}
		}
		n, err := strconv.Atoi(digits)
		if err != nil || n*unit < low || n*unit > high {
			return nil, fmt.Errorf("%q is not a number from %d to %d", s, low, high)
		}
		out = append(out, n*unit)
	}
	return out, nil
}

// measure does the whole run and prints its tables as they are done.
func measure(ctx context.Context, o options, w io.Writer) error {
	all, names, err := target.Load(o.Targets, o.Only)
	if err != nil {
		return err
	}
	if o.Baseline == "" {
		o.Baseline = names[0]
	}
	if !slices.Contains(names, o.Baseline) {
		return fmt.Errorf("-baseline %s is not among the targets measured", o.Baseline)
	}
	var group target.Group
	defer group.Down()
	ctx, cancel := context.WithTimeout(ctx, o.MaxTime)
	defer cancel()
	run := newRun(o, func(t *target.Target) {
		if o.Pause {
			group.Only(t, all)
		}
	})
	defer func() {
		group.Resume() // to see its sessions ended
		run.close()
	}()
	for _, t := range all {
		err := group.Up(ctx, t)
		if err != nil {
			fmt.Fprintf(os.Stderr, "load: %s: %v\n", t.Name, err)
		}
		if slices.Contains(names, t.Name) {
			run.add(ctx, t, group.PID(t), err)
		}
	}
	// In the order of the file or the flag, not that of the starts.
	slices.SortStableFunc(run.subjects, func(a, b *subject) int {
		return slices.Index(names, a.Name) - slices.Index(names, b.Name)
	})
	run.header(w)
	for _, size := range o.Sizes {
		for _, c := range o.Workers {
			if ctx.Err() != nil {
				break
			}
			cell := run.cell(ctx, size, c)
			cell.print(w, o)
		}
	}
	run.footer(w, ctx.Err())
	if o.JSON != "" {
		return run.writeJSON(o.JSON)
	}
	return nil
}
