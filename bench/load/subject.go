//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/bench/internal/mcp"
	"github.com/ostiary/ostiary/bench/internal/proc"
	"github.com/ostiary/ostiary/bench/internal/target"
)

// subject is a target under measurement, with its workers.
type subject struct {
	*target.Target
	pid     int
	workers []*worker
	skip    string // why it cannot be measured
	idleRSS int64  // of the tree, after the warm-up
}

// worker makes one call after the other on a connection (and session) of its own.
type worker struct {
	*mcp.Client
	next  int64 // id of the next call
	call  *mcp.Call
	kind  string // what call is prepared for
	rearm func() // prepares call again, for a new session
}

// firstID is the first id of the first worker; each has a hundred million.
const firstID, idsPerWorker = 1_000_000_000_000, 100_000_000

// prepare gives the subject n workers that are connected, and have an open
// session where there are any.
func (s *subject) prepare(o options, n int) error {
	for len(s.workers) < n {
		w := &worker{Client: mcp.NewClient(s.Endpoint(), o.Timeout), next: firstID + int64(len(s.workers))*idsPerWorker}
		if err := w.Open(); err != nil {
			w.Close()
			return err
		}
		s.workers = append(s.workers, w)
	}
	return nil
}

// warmUp waits until the subject's tool answers, for a gateway can be up
// before its upstream is, and then makes some calls.
func (s *subject) warmUp(ctx context.Context, o options) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := s.prepare(o, 1)
		if err == nil {
			w := s.workers[0]
			w.arm(s, o, 100)
			_, err = w.call.Do(w.id())
		}
		if err == nil {
			break
		}
		s.close()
		if time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		time.Sleep(250 * time.Millisecond)
	}
	calls := o.Warmup
	if s.Start != nil && s.Start.Warmup > 0 {
		calls = s.Start.Warmup
	}
	w := s.workers[0]
	for deadline = time.Now().Add(15 * time.Second); calls > 0 && time.Now().Before(deadline) && ctx.Err() == nil; calls-- {
		if _, err := w.call.Do(w.id()); err != nil {
			return err
		}
	}
	if s.pid != 0 {
		u, err := proc.Sample(s.pid)
		if err != nil {
			return err
		}
		s.idleRSS = u.RSS
	}
	return nil
}

func (s *subject) close() {
	var wg sync.WaitGroup
	for _, w := range s.workers {
		wg.Go(w.Close)
	}
	wg.Wait()
	s.workers = nil
}

func (w *worker) id() int64 { w.next++; return w.next - 1 }

// arm prepares the worker's call, unless it is prepared already.
func (w *worker) arm(s *subject, o options, size int) {
	if kind := fmt.Sprint(o.Call, size); w.kind != kind {
		w.kind = kind
		w.rearm = func() {
			switch o.Call {
			case "echo":
				w.call = w.NewEcho(s.Tool, size, o.Text)
			case "blob":
				w.call = w.NewBlob(s.ToolNamed("blob"), size)
			case "slow":
				w.call = w.NewSlow(s.ToolNamed("slow"), size)
			}
		}
		w.rearm()
	}
}

// slice is what one turn of one subject brought.
type slice struct {
	Calls      int           `json:"calls"` // answered and right
	Errors     int           `json:"errors"`
	Mismatches int           `json:"mismatches"`
	Elapsed    time.Duration `json:"elapsed_ns"`
	CPUTree    time.Duration `json:"cpu_tree_ns"`
	CPURoot    time.Duration `json:"cpu_root_ns"`
	CPULoad    time.Duration `json:"cpu_load_ns"` // of the load generator
	RSS        int64         `json:"rss_tree"`
	P50        time.Duration `json:"p50_ns"`
	Busy       bool          `json:"busy,omitempty"` // the target was not at rest when the wait for it ended

	latencies []time.Duration
	problems  problems
}

// problems counts failures by kind.
type problems map[string]int

// maxKinds bounds the kinds that are told apart.
const maxKinds = 10

func (p *problems) add(kind string, n int) {
	if *p == nil {
		*p = problems{}
	}
	if len(*p) >= maxKinds && (*p)[kind] == 0 {
		kind = "others"
	}
	(*p)[kind] += n
}

var number = regexp.MustCompile(`\d{5,}`)

// kind is the text of a failure without what differs from call to call.
func kind(err error) string {
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		return op.Op + ": " + op.Err.Error()
	}
	return number.ReplaceAllString(err.Error(), "#")
}

// tired is the number of failures in a row after which a worker gives up its slice.
const tired = 10

// turn runs one slice with c workers.
func (s *subject) turn(ctx context.Context, o options, size, c int) (sl slice) {
	fail := func(err error) slice {
		sl.Errors++
		sl.problems.add(kind(err), 1)
		return sl
	}
	if err := s.prepare(o, c); err != nil {
		return fail(err)
	}
	workers := s.workers[:c]
	for _, w := range workers {
		w.arm(s, o, size)
		// Servers close connections that have idled for some seconds.
		if err := w.Conn.Dial(); err != nil {
			return fail(err)
		}
	}
	var before, after proc.Usage
	var err error
	if s.pid != 0 {
		if before, err = proc.Sample(s.pid); err != nil {
			return fail(err)
		}
	}
	stop := context.AfterFunc(ctx, func() {
		for _, w := range workers {
			w.Conn.SetDeadline(time.Now())
		}
	})
	load := proc.Self()
	var left atomic.Int64
	left.Store(int64(o.MaxCalls))
	parts := make([]slice, c)
	start := time.Now()
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() { parts[i] = w.run(ctx, start.Add(o.Slice), &left) })
	}
	wg.Wait()
	sl.Elapsed = time.Since(start)
	sl.CPULoad = proc.Self() - load
	stop()
	if s.pid != 0 {
		if after, sl.Busy, err = quiet(s.pid, o.Settle); err != nil {
			return fail(err)
		}
		sl.CPUTree, sl.CPURoot, sl.RSS = after.Tree-before.Tree, after.Root-before.Root, after.RSS
	}
	for _, p := range parts {
		sl.Calls += p.Calls
		sl.Errors += p.Errors
		sl.Mismatches += p.Mismatches
		sl.latencies = append(sl.latencies, p.latencies...)
		for k, n := range p.problems {
			sl.problems.add(k, n)
		}
	}
	return sl
}

// quiet waits until the process tree rests, so that work it has put off is
// counted as its own. It looks every 50 ms, waits no longer than most, and
// reports whether the tree was still busy then.
func quiet(pid int, most time.Duration) (u proc.Usage, busy bool, err error) {
	const step, rest = 50 * time.Millisecond, 5 * time.Millisecond
	end := time.Now().Add(most)
	u, err = proc.Sample(pid)
	for err == nil && time.Now().Before(end) {
		time.Sleep(step)
		before := u.Tree
		u, err = proc.Sample(pid)
		if busy = u.Tree-before > rest; !busy {
			break
		}
	}
	return u, busy, err
}

// run makes calls until the time is up; one that was begun by then is waited
// for and counted.
func (w *worker) run(ctx context.Context, end time.Time, left *atomic.Int64) (sl slice) {
	bad := 0
	for bad < tired && ctx.Err() == nil && left.Add(-1) >= 0 {
		begun := time.Now()
		if !begun.Before(end) {
			break
		}
		at, err := w.call.Do(w.id())
		if err == nil {
			bad = 0
			sl.Calls++
			sl.latencies = append(sl.latencies, at.Sub(begun))
			continue
		}
		if ctx.Err() != nil {
			break // we were told to stop: no fault of the target's
		}
		bad++
		if errors.Is(err, mcp.ErrMismatch) {
			sl.Mismatches++
		} else {
			sl.Errors++
		}
		sl.problems.add(kind(err), 1)
		var status *mcp.StatusError
		if !w.Modern && errors.As(err, &status) && status.Status == 404 {
			// The session was ended: begin another one, which the call must carry.
			if err := w.Open(); err != nil {
				break
			}
			w.rearm()
		}
	}
	return sl
}
