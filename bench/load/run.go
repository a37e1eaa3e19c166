//go:build linux

package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/ostiary/ostiary/bench/internal/proc"
	"github.com/ostiary/ostiary/bench/internal/stats"
	"github.com/ostiary/ostiary/bench/internal/target"
)

// run is the whole measurement; it marshals to the JSON output.
type run struct {
	Date      time.Time         `json:"date"`
	Cores     int               `json:"cores"`
	Go        string            `json:"go"`
	Options   options           `json:"options"`
	LoadStart string            `json:"load_average_start"`
	LoadEnd   string            `json:"load_average_end"`
	Skipped   map[string]string `json:"skipped,omitempty"`
	IdleRSS   map[string]int64  `json:"rss_tree_after_warmup"`
	Cells     []*cell           `json:"cells"`

	subjects []*subject
	alone    func(*target.Target) // pauses the others
}

func newRun(o options, alone func(*target.Target)) *run {
	return &run{alone: alone, Date: time.Now().UTC(), Cores: runtime.NumCPU(), Go: runtime.Version(), Options: o,
		LoadStart: proc.LoadAverage(), Skipped: map[string]string{}, IdleRSS: map[string]int64{}}
}

// add takes a target in; up is what went wrong in starting it, if anything.
func (r *run) add(ctx context.Context, t *target.Target, pid int, up error) {
	s := &subject{Target: t, pid: pid}
	if up == nil {
		up = s.warmUp(ctx, r.Options)
	}
	if up != nil {
		s.skip = up.Error()
		r.Skipped[t.Name] = s.skip
	}
	if s.idleRSS > 0 {
		r.IdleRSS[t.Name] = s.idleRSS
	}
	r.subjects = append(r.subjects, s)
}

func (r *run) close() {
	for _, s := range r.subjects {
		s.close()
	}
}

// cell holds the results for one size and concurrency.
type cell struct {
	Size        int    `json:"size"`
	Workers     int    `json:"concurrency"`
	LoadAverage string `json:"load_average"`
	Rows        []*row `json:"targets"`
}

// row is one target's part of a cell.
type row struct {
	Name   string  `json:"name"`
	Slices []slice `json:"slices"`

	Calls      int     `json:"calls"`
	Errors     int     `json:"errors"`
	Mismatches int     `json:"mismatches"`
	Rate       float64 `json:"calls_per_s"` // median of the slices
	P50        float64 `json:"p50_ms"`      // of all slices' calls together
	P90        float64 `json:"p90_ms"`
	P99        float64 `json:"p99_ms"`
	CPUTree    float64 `json:"cpu_tree_s_per_1k"`
	CPURoot    float64 `json:"cpu_root_s_per_1k"`
	CPULoad    float64 `json:"cpu_load_s_per_1k"`
	Busy       int     `json:"busy_slices"` // with work left over when the wait for it ended
	RSS        int64   `json:"rss_tree"`

	// Against the baseline: the median over the rounds of the ratio within one.
	RateRatio float64 `json:"rate_ratio"`
	RateLow   float64 `json:"rate_ratio_low"` // the lowest and highest of the rounds
	RateHigh  float64 `json:"rate_ratio_high"`
	P50Ratio  float64 `json:"p50_ratio"`
	CPURatio  float64 `json:"cpu_tree_ratio"`

	Problems problems `json:"problems,omitempty"`

	latencies []time.Duration
}

// cell measures one cell. The subjects take turns, in another order each
// round, so that none always comes after the same other one; the orders are the
// same from run to run.
func (r *run) cell(ctx context.Context, size, workers int) *cell {
	c := &cell{Size: size, Workers: workers, LoadAverage: proc.LoadAverage()}
	var live []*subject
	for _, s := range r.subjects {
		if s.skip == "" {
			live = append(live, s)
			c.Rows = append(c.Rows, &row{Name: s.Name})
		}
	}
	order := rand.New(rand.NewPCG(uint64(size), uint64(workers)))
	for range r.Options.Rounds {
		for _, k := range order.Perm(len(live)) {
			if ctx.Err() != nil {
				break
			}
			r.alone(live[k].Target)
			c.Rows[k].take(live[k].turn(ctx, r.Options, size, workers), ctx.Err() != nil)
		}
	}
	var base *row
	for _, row := range c.Rows {
		if row.Name == r.Options.Baseline {
			base = row
		}
	}
	for _, row := range c.Rows {
		row.sum(base)
	}
	r.Cells = append(r.Cells, c)
	return c
}

// take adds a slice; one that was cut short is dropped.
func (r *row) take(s slice, cut bool) {
	if cut {
		return
	}
	slices.Sort(s.latencies)
	s.P50 = stats.Quantile(s.latencies, 0.5)
	r.latencies = append(r.latencies, s.latencies...)
	for k, n := range s.problems {
		r.Problems.add(k, n)
	}
	r.Slices = append(r.Slices, s)
}

func (r *row) sum(base *row) {
	var rates []float64
	var tree, root, load time.Duration
	for _, s := range r.Slices {
		r.Calls += s.Calls
		r.Errors += s.Errors
		r.Mismatches += s.Mismatches
		tree, root, load = tree+s.CPUTree, root+s.CPURoot, load+s.CPULoad
		rates = append(rates, s.rate())
		r.RSS = s.RSS
		if s.Busy {
			r.Busy++
		}
	}
	r.Rate = stats.Median(rates)
	slices.Sort(r.latencies)
	r.P50 = stats.MS(stats.Quantile(r.latencies, 0.5))
	r.P90 = stats.MS(stats.Quantile(r.latencies, 0.9))
	r.P99 = stats.MS(stats.Quantile(r.latencies, 0.99))
	if r.Calls > 0 {
		perK := func(d time.Duration) float64 { return d.Seconds() / float64(r.Calls) * 1000 }
		r.CPUTree, r.CPURoot, r.CPULoad = perK(tree), perK(root), perK(load)
	}
	if base == nil {
		return
	}
	r.RateRatio, r.RateLow, r.RateHigh = r.against(base, slice.rate)
	r.P50Ratio, _, _ = r.against(base, func(s slice) float64 { return float64(s.P50) })
	r.CPURatio, _, _ = r.against(base, func(s slice) float64 { return float64(s.CPUTree) / float64(max(s.Calls, 1)) })
}

func (s slice) rate() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Calls) / s.Elapsed.Seconds()
}

// against pairs the slices of each round, and returns the median, lowest and
// highest ratio; zeros if there is nothing to compare.
func (r *row) against(base *row, of func(slice) float64) (median, low, high float64) {
	var ratios []float64
	for i := range min(len(r.Slices), len(base.Slices)) {
		if b := of(base.Slices[i]); b > 0 && r.Slices[i].Calls > 0 {
			ratios = append(ratios, of(r.Slices[i])/b)
		}
	}
	if len(ratios) == 0 {
		return 0, 0, 0
	}
	return stats.Median(ratios), slices.Min(ratios), slices.Max(ratios)
}

func (r *run) writeJSON(path string) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
