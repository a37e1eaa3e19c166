//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/bench/internal/mcp"
	"github.com/ostiary/ostiary/bench/internal/rawhttp"
	"github.com/ostiary/ostiary/bench/internal/target"
)

// streams are the open streams of one target.
type streams struct {
	o options
	t *target.Target

	mu      sync.Mutex
	clients []*mcp.Client // connected, on 2025-11-25 with a session
	live    []*stream
	fault   string // the first failure
	closed  bool
}

// stream is one open stream; a goroutine reads it until it ends.
type stream struct {
	c      *mcp.Client
	events atomic.Int64
	ended  atomic.Bool
	done   chan struct{}
}

// each runs f n times, some of them at the same time, and stops early after a
// fair number of failures.
func (s *streams) each(ctx context.Context, n int, f func(i int) error) {
	var wg sync.WaitGroup
	var next, failed atomic.Int64
	for range s.o.parallel {
		wg.Go(func() {
			for ctx.Err() == nil && failed.Load() < 20 {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					failed.Add(1)
					s.mu.Lock()
					if s.fault == "" {
						s.fault = err.Error()
					}
					s.mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

// connect opens the connections, and begins the sessions.
func (s *streams) connect(ctx context.Context) {
	s.each(ctx, s.o.n, func(int) error {
		c := mcp.NewClient(s.t.Endpoint(), s.o.timeout)
		if err := c.Open(); err != nil {
			c.Close()
			return err
		}
		s.mu.Lock()
		s.clients = append(s.clients, c)
		s.mu.Unlock()
		return nil
	})
}

// open opens a stream for each client.
func (s *streams) open(ctx context.Context) {
	if len(s.clients) == 0 {
		s.connect(ctx)
	}
	clients := s.clients
	s.each(ctx, len(clients), func(i int) error {
		st, err := begin(clients[i])
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.live = append(s.live, st)
		s.mu.Unlock()
		return nil
	})
}

func begin(c *mcp.Client) (*stream, error) {
	request := c.Head("GET", "", "", 0)
	if c.Modern {
		body := c.Body(`"listen"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
		request = append(c.Head("POST", "subscriptions/listen", "", len(body)), body...)
	} else {
		// A server may have closed the connection of the session since.
		if err := c.Conn.Dial(); err != nil {
			return nil, err
		}
	}
	r, err := c.Conn.Do(request)
	if err != nil {
		return nil, err
	}
	if r.Status != 200 || !r.Events {
		body, _ := c.Conn.Next(r)
		c.Conn.Close()
		return nil, fmt.Errorf("no stream: HTTP %d %.200s", r.Status, body)
	}
	if c.Modern { // the acknowledgement comes first
		if m, err := c.Conn.Next(r); err != nil {
			return nil, fmt.Errorf("no acknowledgement: %w", err)
		} else if _, err := mcp.Result(m); err != nil && err != mcp.ErrNoAnswer {
			return nil, err
		}
	}
	c.Conn.SetDeadline(time.Time{})
	st := &stream{c: c, done: make(chan struct{})}
	go st.read(r)
	return st, nil
}

func (st *stream) read(r rawhttp.Response) {
	defer close(st.done)
	for {
		if _, err := st.c.Conn.Next(r); err != nil {
			st.ended.Store(true)
			return
		}
		st.events.Add(1)
	}
}

// count returns how many streams are still open, and what came on all of them.
func (s *streams) count() (kept int, events int64) {
	for _, st := range s.live {
		if !st.ended.Load() {
			kept++
		}
		events += st.events.Load()
	}
	return kept, events
}

// close ends the streams, then the sessions.
func (s *streams) close() {
	if s.closed {
		return
	}
	s.closed = true
	for _, st := range s.live {
		st.c.Conn.SetDeadline(time.Now())
		<-st.done
	}
	s.each(context.Background(), len(s.clients), func(i int) error { s.clients[i].Close(); return nil })
}
