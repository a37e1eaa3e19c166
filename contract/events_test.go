package contract_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/contract"
)

const wireEvent = `{"event_id":"e1","source":"test","scope":"test:1","kind":"message.received","occurred_at":"2026-08-01T12:00:00+02:00","summary":"a message","data":{"a":2,"n":1}}`

// R4.8, R5.1: an event goes to the sessions whose clients have agreed to events in 2026-07-28, and to no other.
func TestR4_8_Emit(t *testing.T) {
	ext := contract.New(contract.Options{WorldEvents: true})
	server := newServer(ext)
	got := make(chan *jsonrpc.Request, 1)
	never := func(r *jsonrpc.Request) {
		t.Errorf("%s %s was sent to a client that did not agree", r.Method, r.Params)
	}
	listens := client(t, connected(t, ext, server, func(r *jsonrpc.Request) { got <- r }), "2026-07-28", contract.WorldEvents)
	client(t, connected(t, ext, server, never), "2026-07-28", contract.ToolContract)
	client(t, connected(t, ext, server, never), old, contract.WorldEvents)
	a, err := ext.Emit(t.Context(), eventIn("test:1"))
	if err != nil || a != (contract.Attempt{Attempted: 1, Passed: 2}) {
		t.Fatalf("%+v, %v", a, err)
	}
	if r := <-got; r.Method != "notifications/org.aurorabot/world-events/event" || string(r.Params) != wireEvent || r.IsCall() {
		t.Errorf("%s %s", r.Method, r.Params)
	}
	// A tool can tell the session that called it alone.
	res, err := listens.CallTool(t.Context(), &mcp.CallToolParams{Name: "typed", Arguments: map[string]any{"how": "event", "group": "1"}})
	if err != nil || !reflect.DeepEqual(res.StructuredContent, map[string]any{"n": 1.0}) {
		t.Fatalf("%+v, %v", res, err)
	}
	<-got
	// A session that is gone is not written to.
	listens.Close()
	for ss := range server.Sessions() {
		if init := ss.InitializeParams(); init.ProtocolVersion != old && init.Capabilities.Extensions[contract.WorldEvents] != nil {
			ss.Wait()
		}
	}
	if a, err := ext.Emit(t.Context(), eventIn("test:1")); err != nil || a != (contract.Attempt{Passed: 2}) {
		t.Errorf("%+v, %v", a, err)
	}
}

// R4.8: events are off unless they are asked for, whatever a client offers.
func TestR4_8_EventsAreOffByDefault(t *testing.T) {
	ext := contract.New(contract.Options{})
	server := newServer(ext)
	client(t, connected(t, ext, server, func(r *jsonrpc.Request) { t.Errorf("%s was sent", r.Method) }), "2026-07-28", contract.WorldEvents)
	client(t, connected(t, ext, server, func(r *jsonrpc.Request) { t.Errorf("%s was sent", r.Method) }), old, contract.WorldEvents)
	if a, err := ext.Emit(t.Context(), eventIn("test:1")); err != nil || a != (contract.Attempt{Passed: 2}) {
		t.Errorf("%+v, %v", a, err)
	}
}

// R4.8, R5.4: for clients of the handshake era events are log messages of one logger, as severe as info.
func TestR4_8_LegacyEvents(t *testing.T) {
	ext := contract.New(contract.Options{LegacyEvents: true})
	server := newServer(ext)
	p := newPeer(t, ext.Transport, server)
	expect := func(when string, want contract.Attempt) {
		t.Helper()
		done := make(chan struct{})
		go func() {
			defer close(done)
			if a, err := ext.Emit(t.Context(), eventIn("test:1")); err != nil || a != want {
				t.Errorf("%s: %+v, %v", when, a, err)
			}
		}()
		if want.Attempted > 0 {
			if got, _ := json.Marshal(p.next()); string(got) != `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":`+sorted(wireEvent)+`,"level":"info","logger":"aurora/event"}}` {
				t.Errorf("%s: %s", when, got)
			}
		}
		<-done
	}
	expect("before anything", contract.Attempt{Passed: 1})
	p.ask(fmt.Sprintf(initialize, "{}"))
	expect("before the handshake is over", contract.Attempt{Passed: 1})
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.ask(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	expect("after it", contract.Attempt{Attempted: 1})
	p.ask(`{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"warning"}}`)
	expect("with a client that wants warnings alone", contract.Attempt{Passed: 1})
	p.ask(`{"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"debug"}}`)
	expect("with one that wants everything", contract.Attempt{Attempted: 1})
}

func sorted(object string) string {
	var m any
	must(json.Unmarshal([]byte(object), &m))
	b, _ := json.Marshal(m)
	return string(b)
}

// R4.8, R5.5: over HTTP there are no events, and a session of HTTP is told so, not an error.
func TestR4_8_NoWayToASession(t *testing.T) {
	ext := contract.New(contract.Options{WorldEvents: true})
	server := newServer(ext)
	st, ct := mcp.NewInMemoryTransports()
	ss, err := server.Connect(t.Context(), st, nil) // not through Transport
	if err != nil {
		t.Fatal(err)
	}
	client(t, ct, "2026-07-28", contract.WorldEvents)
	if a, err := ext.EmitTo(t.Context(), ss, eventIn("test:1")); err != nil || a != (contract.Attempt{Passed: 1}) {
		t.Errorf("%+v, %v", a, err)
	}
}

// R4.8: a client that does not read holds up no caller beyond its context. What is in its pipe already may still arrive.
func TestR4_8_EmitEndsWithItsContext(t *testing.T) {
	ext := contract.New(contract.Options{WorldEvents: true})
	p := newPeer(t, ext.Transport, newServer(ext))
	p.ask(modernCall(1, "server/discover", "", fmt.Sprintf(`{%q:{"version":1}}`, contract.WorldEvents)))
	for n := range 2 { // the first is in the pipe, the second waits for it
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			a, err := ext.Emit(ctx, eventIn("test:1"))
			if a != (contract.Attempt{}) {
				t.Errorf("%d: %+v", n, a)
			}
			done <- err
		}()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "e1") {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// R4.8, R5.1: whatever a client says and in whatever order, an event is written to it if, and only if, it has had an answer
// to a server/discover that offered events strictly, its last request of 2026-07-28 still offers them, and it never shook
// hands as an older client does.
func TestR4_8_WhoGetsEvents(t *testing.T) {
	must(flag.Set("rapid.checks", sequences))
	rapid.Check(t, func(r *rapid.T) {
		ext := contract.New(contract.Options{WorldEvents: true})
		server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, ext.Offer(nil))
		here, there := io.Pipe()
		back, out := io.Pipe()
		ss, err := server.Connect(context.Background(), ext.Transport(&mcp.IOTransport{Reader: here, Writer: out}), nil)
		must(err)
		defer func() { there.Close(); back.Close(); ss.Wait() }()
		lines := make(chan map[string]any, 100)
		go func() {
			defer close(lines)
			for dec := json.NewDecoder(back); ; {
				var m map[string]any
				if dec.Decode(&m) != nil {
					return
				}
				lines <- m
			}
		}()
		var heard, holds, greeted bool
		ask := func(line string) map[string]any {
			if _, err := io.WriteString(there, line+"\n"); err != nil {
				r.Fatal(err)
			}
			return <-lines
		}
		offer := rapid.Map(rapid.SampledFrom([]string{`{"version":1}`, `{"version":1.0}`, `{}`, ""}), func(s string) string {
			if s == "" {
				return "{}"
			}
			return fmt.Sprintf(`{%q:%s}`, contract.WorldEvents, s)
		})
		id := 0
		r.Repeat(map[string]func(*rapid.T){
			"discover": func(r *rapid.T) {
				id++
				o := offer.Draw(r, "offer")
				strict := strings.Contains(o, `"version":1}`)
				line := modernCall(id, "server/discover", "", o)
				refused := rapid.Bool().Draw(r, "refused")
				if refused {
					line = strings.Replace(line, "2026-07-28", "2030-01-01", 1)
				}
				if m := ask(line); (m["error"] != nil) != refused {
					r.Fatalf("%s: %v", line, m)
				}
				holds, heard = strict, strict && !refused
			},
			"list": func(r *rapid.T) {
				id++
				o := offer.Draw(r, "offer")
				if m := ask(modernCall(id, "tools/list", "", o)); m["result"] == nil {
					r.Fatal(m)
				}
				holds = strings.Contains(o, `"version":1}`)
			},
			"initialize": func(r *rapid.T) {
				id++
				ask(strings.Replace(fmt.Sprintf(initialize, offer.Draw(r, "offer")), `"id":1`, fmt.Sprintf(`"id":%d`, id), 1))
				greeted = true
			},
			"": func(r *rapid.T) {
				want := contract.Attempt{Passed: 1}
				if heard && holds && !greeted {
					want = contract.Attempt{Attempted: 1}
				}
				if a, err := ext.Emit(context.Background(), eventIn("test:1")); err != nil || a != want {
					r.Fatalf("%+v, %v, want %+v", a, err, want)
				}
				if want.Attempted == 1 {
					if m := <-lines; m["method"] != contract.EventMethod {
						r.Fatal(m)
					}
				}
			},
		})
	})
}
