//go:build linux

// Idle opens many streams that carry nothing, and reports what each costs a
// server or gateway in memory: on 2026-07-28 subscriptions/listen, on
// 2025-11-25 a session and its GET stream.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ostiary/ostiary/bench/internal/mcp"
	"github.com/ostiary/ostiary/bench/internal/proc"
	"github.com/ostiary/ostiary/bench/internal/stats"
	"github.com/ostiary/ostiary/bench/internal/target"
)

type options struct {
	targets, json         string
	only                  []string
	n, parallel           int
	hold, settle, timeout time.Duration
}

func main() {
	var o options
	var only string
	flag.StringVar(&o.targets, "targets", "targets.json", "file of targets")
	flag.StringVar(&only, "only", "", "names of targets to measure, separated by commas (default all)")
	flag.IntVar(&o.n, "n", 1000, "streams to open to each target")
	flag.IntVar(&o.parallel, "parallel", 8, "streams being opened at the same time")
	flag.DurationVar(&o.hold, "hold", 5*time.Second, "how long to keep them open")
	flag.DurationVar(&o.settle, "settle", 2*time.Second, "wait before each look at the memory")
	flag.DurationVar(&o.timeout, "timeout", 20*time.Second, "of opening one stream")
	flag.StringVar(&o.json, "json", "", "write the figures to this file")
	flag.Parse()
	if flag.NArg() > 0 || o.n < 1 || o.n > 25000 || o.parallel < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "idle:", err)
		os.Exit(1)
	}
}

// row is one target's figures; memory is that of its process tree in bytes.
type row struct {
	Name       string  `json:"name"`
	Opened     int     `json:"opened"`
	Kept       int     `json:"kept"` // still open after the hold
	Failed     int     `json:"failed"`
	Events     int64   `json:"events"` // that came on the streams
	Before     int64   `json:"rss_before"`
	Sessions   int64   `json:"rss_with_sessions"` // 2025-11-25 only
	Open       int64   `json:"rss_with_streams"`
	After      int64   `json:"rss_after_close"`
	PerSession float64 `json:"bytes_per_session"`
	PerStream  float64 `json:"bytes_per_stream"` // with its session, where there is one
	Fault      string  `json:"fault,omitempty"`
}

func measure(ctx context.Context, o options, w io.Writer) error {
	all, names, err := target.Load(o.targets, o.only)
	if err != nil {
		return err
	}
	var group target.Group
	defer group.Down()
	var rows []*row
	for _, t := range all {
		err := group.Up(ctx, t)
		if err != nil {
			fmt.Fprintf(os.Stderr, "idle: %s: %v\n", t.Name, err)
		}
		if !slices.Contains(names, t.Name) {
			continue
		}
		r := &row{Name: t.Name}
		rows = append(rows, r)
		if err == nil {
			err = r.measure(ctx, o, t, group.PID(t))
		}
		if err != nil {
			r.Fault = err.Error()
		}
	}
	fmt.Fprintf(w, "%d idle streams to each target, load average %s\n\n", o.n, proc.LoadAverage())
	fmt.Fprintln(w, "| target | opened | kept | failed | events | MiB before | MiB with streams | MiB after | KiB/session | KiB/stream |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, r := range rows {
		session := "–"
		if r.Sessions > 0 {
			session = fmt.Sprintf("%.1f", r.PerSession/1024)
		}
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %.1f | %.1f | %.1f | %s | %.1f |\n", r.Name, r.Opened, r.Kept, r.Failed, r.Events,
			stats.MiB(r.Before), stats.MiB(r.Open), stats.MiB(r.After), session, r.PerStream/1024)
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		if r.Fault != "" {
			fmt.Fprintf(w, "%s: %s\n\n", r.Name, r.Fault)
		}
	}
	if o.json != "" {
		b, err := json.MarshalIndent(rows, "", " ")
		if err != nil {
			return err
		}
		return os.WriteFile(o.json, append(b, '\n'), 0o644)
	}
	return nil
}

func (r *row) measure(ctx context.Context, o options, t *target.Target, pid int) error {
	if pid == 0 {
		return fmt.Errorf("no process to account: the target needs start, process_of or pid_file")
	}
	if err := warmUp(ctx, o, t); err != nil {
		return fmt.Errorf("no echo: %w", err)
	}
	rss := func(into *int64) error {
		if !wait(ctx, o.settle) {
			return ctx.Err()
		}
		u, err := proc.Sample(pid)
		*into = u.RSS
		return err
	}
	if err := rss(&r.Before); err != nil {
		return err
	}
	s := &streams{o: o, t: t}
	defer s.close()
	if t.Era == "legacy" {
		s.connect(ctx)
		if err := rss(&r.Sessions); err != nil {
			return err
		}
		r.PerSession = float64(r.Sessions-r.Before) / float64(max(len(s.clients), 1))
	}
	s.open(ctx)
	r.Opened, r.Failed, r.Fault = len(s.live), o.n-len(s.live), s.fault
	if r.Opened == 0 {
		return fmt.Errorf("no stream could be opened: %s", s.fault)
	}
	if !wait(ctx, o.hold) {
		return ctx.Err()
	}
	if err := rss(&r.Open); err != nil {
		return err
	}
	r.Kept, r.Events = s.count()
	r.PerStream = float64(r.Open-r.Before) / float64(r.Opened)
	s.close()
	return rss(&r.After)
}

// warmUp waits for the target's tool and calls it some times, so that what the
// target allocates once is not taken for a cost of streams.
func warmUp(ctx context.Context, o options, t *target.Target) error {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(250 * time.Millisecond) {
		err := func() error {
			c := mcp.NewClient(t.Endpoint(), o.timeout)
			defer c.Close()
			if err := c.Open(); err != nil {
				return err
			}
			call := c.NewEcho(t.Tool, 1000, mcp.Plain)
			for i := range int64(300) {
				if _, err := call.Do(1e12 + i); err != nil {
					return err
				}
			}
			return nil
		}()
		if err == nil || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
