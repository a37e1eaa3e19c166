package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Transport gives a stdio or in-memory transport two things that the SDK has no place for: a look at the client's settings
// by their own bytes, and a way to send events. Everything else passes through.
//
// It is not for Streamable HTTP, where world-events do not exist: see [Extensions.Handler].
func (e *Extensions) Transport(t mcp.Transport) mcp.Transport { return seam{e, t} }

type seam struct {
	e     *Extensions
	inner mcp.Transport
}

// Connect implements [mcp.Transport].
func (s seam) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := s.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{Connection: inner, e: s.e, turn: make(chan struct{}, 1), gone: make(chan struct{}), asked: map[jsonrpc.ID]bool{}}
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.e.made++
	if c.id = inner.SessionID(); c.id == "" {
		c.id = fmt.Sprintf("session-%d", s.e.made)
	}
	s.e.conns[c.id] = c
	return c, nil
}

// conn is the connection of one session.
type conn struct {
	mcp.Connection
	e    *Extensions
	id   string
	turn chan struct{} // one event is written at a time
	gone chan struct{}
	once sync.Once

	mu    sync.Mutex // guards what follows
	asked map[jsonrpc.ID]bool
	// heard: the client has seen the server's settings in an answer, and had said its own. holds: it says so still.
	heard, holds bool
	greeted      bool // it initialized, as one of the handshake era does
	ready        bool // and has seen the answer
	level        string
}

// SessionID implements [mcp.Connection]. It is never empty, so that a session can be found by it.
func (c *conn) SessionID() string { return c.id }

// Read implements [mcp.Connection].
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err != nil {
		c.leave()
		return m, err
	}
	if r, ok := m.(*jsonrpc.Request); ok {
		c.take(r)
	}
	return m, nil
}

// take reads what a message says of its sender, and cleans its settings.
func (c *conn) take(r *jsonrpc.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.Method == "initialize":
		r.Params, _ = sanitise(r.Params, "capabilities")
		c.greeted, c.heard, c.holds = true, false, false
	case r.Method == "notifications/initialized":
		c.ready = c.greeted
	case r.Method == "logging/setLevel":
		c.level = text(r.Params, "level")
	case r.IsCall():
		var s said
		r.Params, s = sanitise(r.Params, "_meta", mcp.MetaKeyClientCapabilities)
		if text(r.Params, "_meta", mcp.MetaKeyProtocolVersion) < modern {
			return
		}
		c.holds = s.events
		if r.Method == "server/discover" {
			c.asked[r.ID] = s.events
		}
	}
}

// Write implements [mcp.Connection].
func (c *conn) Write(ctx context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Response)
	if !ok || !c.isDiscovery(r.ID) {
		return c.Connection.Write(ctx, m)
	}
	// From this answer on the client can take events, and not before it: events wait until it is written.
	if err := c.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-c.turn }()
	c.mu.Lock()
	c.heard = c.asked[r.ID] && r.Error == nil
	delete(c.asked, r.ID)
	c.mu.Unlock()
	return c.Connection.Write(ctx, m)
}

func (c *conn) isDiscovery(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.asked[id]
	return ok
}

// Close implements [mcp.Connection].
func (c *conn) Close() error {
	c.leave()
	return c.Connection.Close()
}

func (c *conn) leave() {
	c.once.Do(func() {
		close(c.gone)
		c.e.mu.Lock()
		defer c.e.mu.Unlock()
		delete(c.e.conns, c.id)
	})
}

// way is how events can be sent to a client.
type way uint8

const (
	notAtAll way = iota
	asEvents     // world-events version 1 holds
	asLogs       // it is of the handshake era, and LegacyEvents is on
)

func (c *conn) way() way {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.e.o.WorldEvents && c.heard && c.holds && !c.greeted:
		return asEvents
	case c.e.o.LegacyEvents && c.ready && slices.Index(levels, c.level) <= slices.Index(levels, eventLevel):
		return asLogs
	}
	return notAtAll
}

// levels of log messages, from the least severe. A client that never asked for one gets all.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// eventLevel is that of an event among log messages.
const eventLevel = "info"

var errGone = errors.New("the connection has ended")

// takeTurn waits until nothing else is written.
func (c *conn) takeTurn(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-c.gone:
		return errGone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send writes a notification. It returns when ctx ends even if the client does not read; the notification may then still
// go out, and the next one waits for it.
func (c *conn) send(ctx context.Context, m *jsonrpc.Request) error {
	if err := c.takeTurn(ctx); err != nil {
		return err
	}
	written := make(chan error, 1)
	go func() {
		written <- c.Connection.Write(context.WithoutCancel(ctx), m)
		<-c.turn
	}()
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
