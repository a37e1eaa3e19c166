//go:build linux

// Tools times tools/list of servers and gateways: every round lists each
// target's tools once, all pages of them.
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

	"github.com/ostiary/ostiary/bench/internal/jsonscan"
	"github.com/ostiary/ostiary/bench/internal/mcp"
	"github.com/ostiary/ostiary/bench/internal/proc"
	"github.com/ostiary/ostiary/bench/internal/stats"
	"github.com/ostiary/ostiary/bench/internal/target"
)

type options struct {
	targets, json string
	only          []string
	n             int
	timeout, max  time.Duration
	names         bool
}

func main() {
	var o options
	var only string
	flag.StringVar(&o.targets, "targets", "targets.json", "file of targets")
	flag.StringVar(&only, "only", "", "names of targets to measure, separated by commas (default all)")
	flag.IntVar(&o.n, "n", 200, "lists of each target")
	flag.DurationVar(&o.timeout, "timeout", 20*time.Second, "of one request")
	flag.DurationVar(&o.max, "max-time", 5*time.Minute, "of the whole run")
	flag.BoolVar(&o.names, "names", false, "print the names of the first tools of each target too")
	flag.StringVar(&o.json, "json", "", "write the figures to this file")
	flag.Parse()
	if flag.NArg() > 0 || o.n < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tools:", err)
		os.Exit(1)
	}
}

// row is one target's figures.
type row struct {
	Name   string  `json:"name"`
	Lists  int     `json:"lists"`
	Errors int     `json:"errors"`
	Tools  int     `json:"tools"`
	Pages  int     `json:"pages"`
	Bytes  int     `json:"bytes"` // of the results of all pages
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Fault  string  `json:"fault,omitempty"` // the last error

	client *mcp.Client
	first  []string
	times  []time.Duration
}

func measure(ctx context.Context, o options, w io.Writer) error {
	all, names, err := target.Load(o.targets, o.only)
	if err != nil {
		return err
	}
	var group target.Group
	defer group.Down()
	ctx, cancel := context.WithTimeout(ctx, o.max)
	defer cancel()
	var rows []*row
	for _, t := range all {
		r := &row{Name: t.Name, client: mcp.NewClient(t.Endpoint(), o.timeout)}
		if err := group.Up(ctx, t); err != nil {
			r.Fault, r.client = err.Error(), nil
		} else if err := r.ready(ctx); err != nil {
			r.Fault, r.client = err.Error(), nil
		}
		if slices.Contains(names, t.Name) {
			rows = append(rows, r)
		}
	}
	for range o.n {
		for _, r := range rows {
			if r.client != nil && ctx.Err() == nil {
				r.round()
			}
		}
	}
	fmt.Fprintf(w, "tools/list, %d rounds, load average %s\n\n", o.n, proc.LoadAverage())
	fmt.Fprintln(w, "| target | p50 ms | p99 ms | bytes | tools | pages | lists | errors |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|")
	for _, r := range rows {
		r.close()
		fmt.Fprintf(w, "| %s | %.3f | %.3f | %d | %d | %d | %d | %d |\n", r.Name, r.P50, r.P99, r.Bytes, r.Tools, r.Pages, r.Lists, r.Errors)
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		if o.names {
			fmt.Fprintf(w, "%s: %s\n\n", r.Name, strings.Join(r.first, ", "))
		}
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

// ready connects and waits for tools, for a gateway can be up before its
// upstream is.
func (r *row) ready(ctx context.Context) error {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(250 * time.Millisecond) {
		err := r.client.Open()
		if err == nil {
			if err = r.list(); err == nil && r.Tools > 0 {
				return nil
			}
		}
		r.client.Close()
		if time.Now().After(end) || ctx.Err() != nil {
			if err == nil {
				err = fmt.Errorf("no tools")
			}
			return err
		}
	}
}

func (r *row) round() {
	begun := time.Now()
	err := r.list()
	took := time.Since(begun)
	if err == nil {
		r.Lists++
		r.times = append(r.times, took)
		return
	}
	r.Errors++
	r.Fault = err.Error()
	if err := r.client.Open(); err != nil {
		r.Fault, r.client = err.Error(), nil
	}
}

// maxPages bounds a list whose cursors never end.
const maxPages = 10_000

// list reads all pages once, and keeps what they held if all went well.
func (r *row) list() error {
	count, pages, bytes := 0, 0, 0
	var first []string
	members := ""
	for pages < maxPages {
		result, err := r.client.Request("tools/list", "", members)
		if err != nil {
			return err
		}
		pages++
		bytes += len(result)
		var tools, next []byte
		if err := jsonscan.Members(result, func(k, v []byte) {
			switch string(k) {
			case "tools":
				tools = v
			case "nextCursor":
				next = v
			}
		}); err != nil {
			return err
		}
		if err := jsonscan.Elements(tools, func(v []byte) {
			if count++; len(first) < 5 {
				first = append(first, name(v))
			}
		}); err != nil {
			return fmt.Errorf("tools: %w", err)
		}
		if len(next) == 0 || string(next) == "null" {
			r.Tools, r.Pages, r.Bytes, r.first = count, pages, bytes, first
			return nil
		}
		members = `"cursor":` + string(next)
	}
	return fmt.Errorf("more than %d pages", maxPages)
}

func name(tool []byte) (s string) {
	jsonscan.Members(tool, func(k, v []byte) {
		if string(k) == "name" {
			json.Unmarshal(v, &s)
		}
	})
	return s
}

func (r *row) close() {
	if r.client != nil {
		r.client.Close()
	}
	slices.Sort(r.times)
	r.P50 = stats.MS(stats.Quantile(r.times, 0.5))
	r.P99 = stats.MS(stats.Quantile(r.times, 0.99))
}
