//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/bench/internal/mcp"
	"github.com/ostiary/ostiary/bench/internal/proc"
	"github.com/ostiary/ostiary/bench/internal/stats"
	bench "github.com/ostiary/ostiary/bench/internal/target"
)

// memory is what a gateway with ten stdio providers takes, at rest and after some calls.
func (o *options) memory(ctx context.Context, out io.Writer) error {
	var ten []provider
	for i := range 10 {
		ten = append(ten, provider{name: "p" + strconv.Itoa(i+1), ledger: "durable", command: []string{o.exe("upstream"), "-stdio"}, tools: working})
	}
	return o.with(ctx, o.ostiaryTarget("ostiary", portTen, "flat", ten...), func(ctx context.Context, t *bench.Target, pid int) error {
		time.Sleep(2 * time.Second) // to come to rest
		before, err := rss(pid)
		if err != nil {
			return err
		}
		if _, err := calls(ctx, t, 10_000, time.Minute); err != nil {
			return err
		}
		time.Sleep(2 * time.Second)
		after, err := rss(pid)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "The gateway's own process, without the providers': %.1f MiB resident at rest, %.1f MiB after 10,000 calls.\n\n", stats.MiB(before), stats.MiB(after))
		return nil
	})
}

// long compares the memory after ten thousand calls with that after a million.
func (o *options) long(ctx context.Context, out io.Writer) error {
	direct, err := o.loadTarget(o.direct())
	if err != nil {
		return err
	}
	var group bench.Group
	defer group.Down()
	if err := group.Up(ctx, direct); err != nil {
		return err
	}
	soak := o.ostiaryTarget("ostiary", portSoak, "raw", provider{name: "up", ledger: "relaxed", url: "http://" + address(portDirect) + "/mcp", tools: working})
	return o.with(ctx, soak, func(ctx context.Context, t *bench.Target, pid int) error {
		first, err := calls(ctx, t, 10_000, time.Minute)
		if err != nil {
			return err
		}
		early, err := rss(pid)
		if err != nil {
			return err
		}
		started := time.Now()
		more, err := calls(ctx, t, o.soak-first, o.soakTime)
		if err != nil {
			return err
		}
		late, err := rss(pid)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "Resident after %d calls: %.1f MiB; after %d: %.1f MiB (relaxed ledger, %d callers, %.0f calls/s).\n\n",
			first, stats.MiB(early), first+more, stats.MiB(late), callers(), float64(more)/time.Since(started).Seconds())
		if first+more < o.soak {
			fmt.Fprintf(out, "The time ran out before %d calls.\n\n", o.soak)
		}
		return nil
	})
}

// loadTarget makes of an entry what the harness's own packages work with.
func (o *options) loadTarget(t target) (*bench.Target, error) {
	t.Needs = nil
	b, err := json.Marshal([]target{t})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(o.dir, "one-target.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return nil, err
	}
	all, _, err := bench.Load(file, nil)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// with starts a target for the time of a function.
func (o *options) with(ctx context.Context, t target, do func(context.Context, *bench.Target, int) error) error {
	one, err := o.loadTarget(t)
	if err != nil {
		return err
	}
	var group bench.Group
	defer group.Down()
	if err := group.Up(ctx, one); err != nil {
		return err
	}
	return do(ctx, one, group.PID(one))
}

// rss is what the process itself has resident, without its children.
func rss(pid int) (int64, error) {
	u, err := proc.Sample(pid)
	if err != nil {
		return 0, err
	}
	return u.RootRSS, nil
}

func callers() int { return 8 * runtime.NumCPU() }

// calls makes n calls of 100 bytes, or as many as the time allows, and returns how many there were. Every answer is checked.
func calls(ctx context.Context, t *bench.Target, n int, within time.Duration) (int, error) {
	return callsBy(ctx, callers(), t, n, within)
}

func callsBy(ctx context.Context, callers int, t *bench.Target, n int, within time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var next, done atomic.Int64
	errs := make(chan error, callers)
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			c := mcp.NewClient(t.Endpoint(), 20*time.Second)
			defer c.Close()
			if err := c.Open(); err != nil {
				errs <- err
				return
			}
			call := c.NewEcho(t.Tool, 100, mcp.Plain)
			for {
				id := next.Add(1)
				if id > int64(n) || ctx.Err() != nil {
					return
				}
				if _, err := call.Do(1e12 + id); err != nil {
					errs <- err
					return
				}
				done.Add(1)
			}
		})
	}
	running.Wait()
	select {
	case err := <-errs:
		return int(done.Load()), err
	default:
		return int(done.Load()), nil
	}
}
