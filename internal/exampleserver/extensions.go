package exampleserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The extensions that the server offers with [Options.Extensions].
const (
	toolContract = "org.aurorabot/tool-contract"
	worldEvents  = "org.aurorabot/world-events"
	eventMethod  = "notifications/" + worldEvents + "/event"
	eventLogger  = "aurora/event" // where servers of the handshake era said what had happened
)

// capabilities are what the server declares. It does not look at what the client declares: to see what a client makes of
// what it has not agreed to is what it is for.
func (s *server) capabilities(modern bool) string {
	var extensions []string
	if settings := s.opts.ContractSettings; s.opts.Extensions && settings != "none" {
		if settings == "" {
			settings = `{"version":1}`
		}
		extensions = append(extensions, `"`+toolContract+`":`+settings)
	}
	if s.opts.Extensions && modern {
		settings := s.opts.EventSettings
		if settings == "" {
			settings = `{"version":1}`
		}
		extensions = append(extensions, `"`+worldEvents+`":`+settings)
	}
	c := `{"tools":{"listChanged":true},"logging":{}`
	if extensions != nil {
		c += `,"extensions":{` + strings.Join(extensions, ",") + `}`
	}
	return c + `}`
}

// extensionTools are listed with [Options.Extensions].
func extensionTools() []tool {
	const room = `"room":{"type":"string","pattern":"^[a-z0-9]+$"}`
	return []tool{
		{"post", "Posts a text in a room. It observes and publishes that room alone.",
			`{"type":"object","properties":{` + room + `,"text":{"type":"string"}},"required":["room"]}`,
			writes + `,"_meta":{"` + toolContract + `":{"observe":["example:room:{room}"],"publish":["example:room:{room}"]}}`, (*server).post},
		{"maybe", "Says that it does not know what it did, in the way that it is told to.",
			`{"type":"object","properties":{"error":{"type":"boolean"},"meta":{"description":"What to say instead of {\"status\":\"unknown\"}"}}}`, writes, (*server).maybe},
		{"emit", "Sends events: so many, or one as it is told. Without an id each has a new one.",
			`{"type":"object","properties":{"count":{"type":"integer","minimum":1,"maximum":100000},"per_second":{"type":"integer","minimum":1},"id":{"type":"string"},"scope":{"type":"string"},"kind":{"type":"string"},"summary":{"type":"string"},"raw":{"type":"object"}}}`,
			writes, (*server).emit},
	}
}

func findExtensionTool(name string) *tool {
	for _, t := range extensionTools() {
		if t.name == name {
			return &t
		}
	}
	return nil
}

func (s *server) post(_ context.Context, _ *exchange, args object) (answer, *rpcError) {
	room, _ := args.str("room")
	return text("posted in " + room), nil
}

func (s *server) maybe(_ context.Context, _ *exchange, args object) (answer, *rpcError) {
	said := []byte(`{"status":"unknown"}`)
	if raw, ok := args["meta"]; ok {
		said = raw
	}
	a := text("the line went dead; perhaps it was posted")
	if args.isTrue("error") {
		a = toolError("the line went dead; perhaps it was posted")
	}
	a.meta = append([]byte(`,"`+toolContract+`":`), said...)
	return a, nil
}

func (s *server) emit(ctx context.Context, ex *exchange, args object) (answer, *rpcError) {
	n, fault := args.integer("count", 1, 1, 100_000)
	if fault != nil {
		return answer{}, fault
	}
	rate, fault := args.integer("per_second", 0, 1, 1_000_000)
	if fault != nil {
		return answer{}, fault
	}
	began, burst := time.Now(), max(1, rate/100) // a timer for each event would cost more than the event
	for i := range n {
		if rate > 0 && i%burst == 0 {
			if err := wait(ctx, time.Until(began.Add(time.Duration(i)*time.Second/time.Duration(rate)))); err != nil {
				return answer{none: true}, nil
			}
		}
		ex.happened(s.event(args, i))
	}
	return text(strconv.Itoa(n) + " events sent; whether they arrive is not known here"), nil
}

// event is an event as it is asked for, or as events are.
func (s *server) event(args object, number int) string {
	if raw, ok := args["raw"]; ok {
		return string(raw)
	}
	or := func(name, otherwise string) []byte {
		if v, ok := args.str(name); ok {
			otherwise = v
		}
		return quote(otherwise)
	}
	return fmt.Sprintf(`{"event_id":%s,"source":"example","scope":%s,"kind":%s,"occurred_at":"%s","summary":%s,"data":{"number":%d}}`,
		or("id", s.newEventID()), or("scope", "example:room:1"), or("kind", "message.received"),
		time.Now().UTC().Format(time.RFC3339Nano), or("summary", "somebody said something"), number)
}

// happened sends an event in the way of the era.
func (ex *exchange) happened(event string) {
	if ex.modern {
		ex.notify(notification(eventMethod, []byte(event)))
		return
	}
	ex.notify(notification("notifications/message", []byte(`{"level":"info","logger":"`+eventLogger+`","data":`+event+`}`)))
}

// newEventID never repeats while the server runs, nor, but for the clock, after it.
func (s *server) newEventID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events++
	return fmt.Sprintf("%x-%d", s.began.UnixNano(), s.events)
}
