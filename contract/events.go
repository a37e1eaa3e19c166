package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// EventMethod is the notification that carries one event.
const EventMethod = "notifications/" + WorldEvents + "/event"

// legacyLogger is the logger that marks an event among the log messages of the handshake era.
const legacyLogger = "aurora/event"

// Event is something that has happened in the world of a server.
type Event struct {
	// ID never changes and never repeats: a host commits each id of a server once, however often it arrives.
	ID string
	// Source is where the event comes from, in the server's own words: a room, a feed, a device.
	Source string
	// Scope is the part of the world that has moved on. A tool that observes it is refused to callers who do not know of
	// the event.
	Scope string
	// Kind says what has happened, such as message.received. The kinds of a host's own facts are not for servers.
	Kind string
	// OccurredAt is when.
	OccurredAt time.Time
	// Summary is one line for a model.
	Summary string
	// Data is what marshals to a JSON object; nil: there is none.
	Data any
}

// Attempt says what became of an event here. It is no more than that: nobody acknowledges events, none is sent again, and
// what was sent may not have arrived.
type Attempt struct {
	// Attempted is how many sessions the event was written to.
	Attempted int
	// Passed is how many open sessions it was not for: their clients did not agree to events.
	Passed int
}

// Emit checks an event and sends it to every session whose client has agreed to world-events. An error that is returned
// with a zero Attempt says that the event breaks a rule, and that nothing was sent; any other joins what went wrong with
// single sessions.
func (e *Extensions) Emit(ctx context.Context, ev Event) (Attempt, error) {
	e.mu.Lock()
	conns := make([]*conn, 0, len(e.conns))
	for _, c := range e.conns {
		conns = append(conns, c)
	}
	e.mu.Unlock()
	return emit(ctx, ev, conns)
}

// EmitTo is [Extensions.Emit] to one session alone, such as the one that a tool is called on. To a session whose transport
// is not one of [Extensions.Transport] nothing can be sent.
func (e *Extensions) EmitTo(ctx context.Context, s *mcp.ServerSession, ev Event) (Attempt, error) {
	e.mu.Lock()
	c := e.conns[s.ID()]
	e.mu.Unlock()
	if c == nil {
		return Attempt{Passed: 1}, ev.Check()
	}
	return emit(ctx, ev, []*conn{c})
}

func emit(ctx context.Context, ev Event, conns []*conn) (a Attempt, err error) {
	payload, err := ev.payload()
	if err != nil {
		return a, err
	}
	var faults []error
	for _, c := range conns {
		m := &jsonrpc.Request{}
		switch c.way() {
		case asEvents:
			m.Method, m.Params = EventMethod, payload
		case asLogs:
			m.Method, m.Params = "notifications/message", slices.Concat([]byte(`{"level":"`+eventLevel+`","logger":"`+legacyLogger+`","data":`), payload, []byte("}"))
		default:
			a.Passed++
			continue
		}
		if err := c.send(ctx, m); err != nil {
			faults = append(faults, fmt.Errorf("event %s to %s: %w", ev.ID, c.id, err))
			continue
		}
		a.Attempted++
	}
	return a, errors.Join(faults...)
}

// payload is the event as it travels.
func (ev Event) payload() ([]byte, error) {
	if err := ev.Check(); err != nil {
		return nil, err
	}
	wire := struct {
		ID         string         `json:"event_id"`
		Source     string         `json:"source"`
		Scope      string         `json:"scope"`
		Kind       string         `json:"kind"`
		OccurredAt string         `json:"occurred_at"`
		Summary    string         `json:"summary"`
		Data       jsontext.Value `json:"data,omitempty"`
	}{ev.ID, ev.Source, ev.Scope, ev.Kind, ev.OccurredAt.Format(time.RFC3339Nano), ev.Summary, nil}
	if ev.Data != nil {
		raw, err := json.Marshal(ev.Data, json.Deterministic(true))
		if err != nil {
			return nil, fmt.Errorf("event %s: data: %w", ev.ID, err)
		}
		wire.Data = raw
	}
	return json.Marshal(wire)
}
