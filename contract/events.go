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

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/world"
)

// EventMethod is the notification that carries one event.
const EventMethod = "notifications/" + WorldEvents + "/event"

// legacyLogger is the logger that marks an event among the log messages of the handshake era.
const legacyLogger = "aurora/event"

// Event is something that has happened in the world of a server.
type Event struct {
	// ID never changes and never repeats: a host commits each id of a server once, however often it arrives. 1 to 256 visible
	// ASCII characters.
	ID string
	// Source is where the event comes from, in the server's own words: a room, a feed, a device. One line of at most 256 bytes.
	Source string
	// Scope is the part of the world that has moved on. A tool that observes it is refused to callers who do not know of
	// the event.
	Scope string
	// Kind says what has happened, such as message.received: dotted segments of lower-case letters, digits, '_' and '-'. What
	// begins with engine, tool, output, cadence, ops or mcp is a host's own.
	Kind string
	// OccurredAt is when. The zero time is none.
	OccurredAt time.Time
	// Summary is one line for a model, of at most 2000 characters.
	Summary string
	// Data is what marshals to a JSON object of at most 32 KiB; nil: there is none.
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

// Check says which rule of world-events an event breaks; nil if a host could take it.
func (ev Event) Check() error {
	_, err := ev.payload()
	return err
}

// payload is the event as it travels, once it has passed the rules of a host.
func (ev Event) payload() ([]byte, error) {
	fail := func(err error) error { return fmt.Errorf("event %q: %w", ev.ID, err) }
	e := world.Event{ID: ev.ID, Source: ev.Source, Scope: call.Scope(ev.Scope), Kind: ev.Kind, Occurred: ev.OccurredAt, Summary: ev.Summary}
	if ev.Data != nil {
		raw, err := json.Marshal(ev.Data, json.Deterministic(true))
		if err != nil {
			return nil, fail(fmt.Errorf("data: %w", err))
		}
		e.Data = raw
	}
	if err := e.Check(); err != nil {
		if said, ok := errors.AsType[*world.EventError](err); ok {
			err = errors.New(said.Text)
		}
		return nil, fail(err)
	}
	payload, err := json.Marshal(struct {
		ID         string         `json:"event_id"`
		Source     string         `json:"source"`
		Scope      call.Scope     `json:"scope"`
		Kind       string         `json:"kind"`
		OccurredAt string         `json:"occurred_at"`
		Summary    string         `json:"summary"`
		Data       jsontext.Value `json:"data,omitempty"`
	}{e.ID, e.Source, e.Scope, e.Kind, e.Occurred.Format(time.RFC3339Nano), e.Summary, e.Data})
	if err != nil {
		return nil, fail(err)
	}
	if len(payload) > world.MaxEvent {
		return nil, fail(fmt.Errorf("%d bytes: at most %d are possible", len(payload), world.MaxEvent))
	}
	return payload, nil
}
