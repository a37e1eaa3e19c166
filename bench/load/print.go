//go:build linux

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ostiary/ostiary/bench/internal/proc"
	"github.com/ostiary/ostiary/bench/internal/stats"
)

func (r *run) header(w io.Writer) {
	fmt.Fprintf(w, "%s, %d cores, %s, load average %s. Call %s (%s text), %d rounds of %s for each target, taking turns; ratios are to %s, within each round.\n\n",
		r.Date.Format("2006-01-02 15:04 MST"), r.Cores, r.Go, r.LoadStart, r.Options.Call, r.Options.Text, r.Options.Rounds, r.Options.Slice, r.Options.Baseline)
	for _, name := range slices.Sorted(maps.Keys(r.Skipped)) {
		fmt.Fprintf(w, "Not measured: %s: %s\n\n", name, r.Skipped[name])
	}
}

func (r *run) footer(w io.Writer, cut error) {
	r.LoadEnd = proc.LoadAverage()
	fmt.Fprintf(w, "Load average at the end %s.\n", r.LoadEnd)
	if cut != nil {
		fmt.Fprintf(w, "The run was cut short (%v): what is missing above was not measured.\n", cut)
	}
}

// print writes the cell as a Markdown table. CPU is seconds per 1,000 calls of
// the target's whole process tree and, in brackets, of its root alone where
// that differs.
func (c *cell) print(w io.Writer, o options) {
	unit := "B"
	if o.Call == "slow" {
		unit = "ms"
	}
	fmt.Fprintf(w, "### %d %s, c = %d (load average %s)\n\n", c.Size, unit, c.Workers, c.LoadAverage)
	fmt.Fprintln(w, "| target | calls/s | p50 ms | p90 | p99 | errors | mism. | CPU s/1k | RSS MiB | × calls/s (low–high) | × p50 | × CPU |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, r := range c.Rows {
		cpu, rss := "–", "–"
		if r.RSS > 0 {
			cpu = figure(r.CPUTree)
			if r.CPUTree-r.CPURoot > 0.005*r.CPUTree {
				cpu += " (" + figure(r.CPURoot) + ")"
			}
			rss = fmt.Sprintf("%.1f", stats.MiB(r.RSS))
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %d | %d | %s | %s | %s | %s | %s |\n", r.Name,
			figure(r.Rate), figure(r.P50), figure(r.P90), figure(r.P99), r.Errors, r.Mismatches, cpu, rss,
			spread(r), figure(r.P50Ratio), figure(r.CPURatio))
	}
	fmt.Fprintln(w)
	for _, r := range c.Rows {
		if r.Busy > 0 {
			fmt.Fprintf(w, "%s: still at work %s after %d of %d slices; its CPU s/1k is a lower bound.\n\n", r.Name, o.Settle, r.Busy, len(r.Slices))
		}
		for _, p := range slices.Sorted(maps.Keys(r.Problems)) {
			fmt.Fprintf(w, "%s: %d × %s\n\n", r.Name, r.Problems[p], strings.Join(strings.Fields(p), " "))
		}
	}
}

func spread(r *row) string {
	if r.RateLow == r.RateHigh {
		return figure(r.RateRatio)
	}
	return fmt.Sprintf("%s (%s–%s)", figure(r.RateRatio), figure(r.RateLow), figure(r.RateHigh))
}

// figure prints three significant digits, and a dash for nothing.
func figure(f float64) string {
	switch {
	case f == 0:
		return "–"
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	case f >= 1:
		return fmt.Sprintf("%.2f", f)
	case f >= 0.01:
		return fmt.Sprintf("%.3f", f)
	}
	return fmt.Sprintf("%.2g", f)
}
