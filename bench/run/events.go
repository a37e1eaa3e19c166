//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ostiary/ostiary/bench/internal/stats"
	bench "github.com/ostiary/ostiary/bench/internal/target"
)

// eventRate is how many events a second one provider sends.
const eventRate = 1000

// eventCallers call the other provider's tool meanwhile.
const eventCallers = 8

// events measures what the events of one provider cost the calls of another: slices with and without them in turns, compared
// within each pair. It looks whether every event that was received became a fact, and what memory they take.
func (o *options) events(ctx context.Context, out io.Writer) error {
	t := o.ostiaryTarget("ostiary", portEvents, "flat",
		provider{name: "up", ledger: "durable", command: []string{o.exe("upstream"), "-stdio"}, tools: working},
		provider{name: "ev", ledger: "durable", command: []string{o.ostiary, "example-server", "-extensions"}, tools: []string{"emit"}, keys: "events = \"world_events\"\n"})
	return o.with(ctx, t, func(ctx context.Context, one *bench.Target, pid int) error {
		if _, err := rate(ctx, one, o.eventSlice); err != nil { // warm
			return err
		}
		if err := emit(ctx, t, o.eventSlice); err != nil {
			return err
		}
		var before, after int64
		var ratios, quiet, busy []float64
		for round := range o.eventRounds {
			if round == 1 {
				var err error
				if before, err = rss(pid); err != nil {
					return err
				}
			}
			pair := map[bool]float64{}
			for _, with := range [...]bool{round%2 == 0, round%2 == 1} { // the order changes, so that what grows hits both alike
				emitted := make(chan error, 1)
				if with {
					go func() { emitted <- emit(ctx, t, o.eventSlice) }()
				} else {
					emitted <- nil
				}
				r, err := rate(ctx, one, o.eventSlice)
				if err := errors.Join(err, <-emitted); err != nil {
					return err
				}
				pair[with] = r
			}
			quiet, busy, ratios = append(quiet, pair[false]), append(busy, pair[true]), append(ratios, pair[true]/pair[false])
		}
		after, err := rss(pid)
		if err != nil {
			return err
		}
		st, err := o.eventsOf(ctx, t)
		if err != nil {
			return err
		}
		if st.Committed+st.Repeated != st.Received || st.Waiting != 0 {
			return fmt.Errorf("of %d events received %d became facts: %+v", st.Received, st.Committed, st)
		}
		slices.Sort(ratios)
		fmt.Fprintf(out, "One provider sends %d events a second, in bursts of 10 ms; %d callers call a tool of another one (durable ledger), %d pairs of slices of %s with and without events.\n\n",
			eventRate, eventCallers, o.eventRounds, o.eventSlice)
		fmt.Fprintf(out, "| calls/s without events | with | ratio within a pair: median | lowest | highest | events received | became facts | lost | MiB resident before | after |\n|---|---|---|---|---|---|---|---|---|---|\n")
		fmt.Fprintf(out, "| %.0f | %.0f | %.2f | %.2f | %.2f | %d | %d | 0 | %.1f | %.1f |\n\n", stats.Median(quiet), stats.Median(busy), stats.Median(ratios), ratios[0], ratios[len(ratios)-1],
			st.Received, st.Committed, stats.MiB(before), stats.MiB(after))
		return nil
	})
}

// rate is how many calls a second go through for a while.
func rate(ctx context.Context, t *bench.Target, within time.Duration) (float64, error) {
	began := time.Now()
	n, err := callsBy(ctx, eventCallers, t, 1<<40, within)
	return float64(n) / time.Since(began).Seconds(), err
}

// emit has the provider send events for a while, and returns when it has.
func emit(ctx context.Context, t target, within time.Duration) error {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"emit","method":"tools/call","params":{"name":"ev__emit","arguments":{"count":%d,"per_second":%d,"scope":"bench:room"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		int(within.Seconds()*eventRate), eventRate)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL+t.Path, strings.NewReader(body))
	if err != nil {
		return err
	}
	for k, v := range t.Headers {
		req.Header.Set(k, v)
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": "tools/call", "Mcp-Name": "ev__emit"} {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && !strings.Contains(string(answer), `"status":"succeeded"`) {
		err = fmt.Errorf("emit: %s", answer)
	}
	return err
}

// eventCounts are what the gateway says of the events.
type eventCounts struct {
	Received, Committed, Repeated, Waiting int64
	Refused                                map[string]int64
}

// eventsOf asks the gateway, until nothing waits or that takes too long.
func (o *options) eventsOf(ctx context.Context, t target) (st eventCounts, err error) {
	for range 50 {
		cmd := exec.CommandContext(ctx, o.ostiary, append([]string{"status", "--json"}, t.Start.Cmd[2:]...)...)
		raw, err := cmd.Output()
		if err != nil {
			return st, fmt.Errorf("status: %w", err)
		}
		var s struct {
			Providers []struct {
				Package string      `json:"provider_id"`
				Events  eventCounts `json:"events"`
			}
		}
		if err := json.Unmarshal(raw, &s); err != nil {
			return st, err
		}
		for _, p := range s.Providers {
			if p.Package == "ev" {
				st = p.Events
			}
		}
		if st.Waiting == 0 && st.Received > 0 {
			return st, nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return st, ctx.Err()
		}
	}
	return st, nil
}
