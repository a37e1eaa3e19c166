//go:build unix

package session

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// sink keeps what it is told, in order.
type sink struct {
	mu   sync.Mutex
	said []string
	last string // word on whether events hold
}

func (s *sink) say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, what)
}

func (s *sink) Event(payload []byte) {
	id, _ := content.String(content.Member(payload, "event_id"))
	if string(content.Member(payload, "n")) != "12345678901234567890" {
		id = "not byte for byte: " + string(payload)
	}
	s.say(id)
}

func (s *sink) Agreed(holds bool) {
	what := "no"
	if holds {
		what = "yes"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != what { // the same word again says nothing
		s.said, s.last = append(s.said, what), what
	}
}

func (s *sink) Unasked() { s.say("unasked") }

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.said, " ")
}

const withEvents = `"tools":{},"logging":{},"extensions":{"org.aurorabot/world-events":{"version":1}}`

// R5.1, R5.3, R5.4: what reaches whoever takes events, of all that a server says: its events and nothing else, with the word
// on whether they hold at the right place among them; and what is a log message stays one.
func TestR5_1_WhatIsAnEvent(t *testing.T) {
	t.Parallel()
	modern, legacy := "discover=modern", "discover=-32601&init=2025-11-25"
	for name, c := range map[string]struct {
		traits        string
		world, legacy bool
		want          string // what is told: ids of events, and whether they hold
		logs          string // loggers of messages that reach the call
	}{
		"modern, agreed":                  {modern + "&caps=" + withEvents, true, false, "yes e1", "aurora/event other"},
		"modern, said at once":            {modern + "&events=at-once&caps=" + withEvents, true, false, "yes e1 e1", "aurora/event other"},
		"modern, said before":             {modern + "&events=early&caps=" + withEvents, true, false, "e1 yes e1", "aurora/event other"},
		"modern, not switched on":         {modern + "&caps=" + withEvents, false, false, "no unasked", "aurora/event other"},
		"modern, not offered by it":       {modern + `&caps="tools":{},"logging":{}`, true, false, "no e1", "aurora/event other"},
		"modern, another version":         {modern + "&caps=" + strings.Replace(withEvents, "1}", "2}", 1), true, false, "no e1", "aurora/event other"},
		"modern, loose settings":          {modern + "&caps=" + strings.Replace(withEvents, "1}", "1.0}", 1), true, false, "no e1", "aurora/event other"},
		"modern, with the switch for old": {modern + "&caps=" + withEvents, false, true, "no unasked", "aurora/event other"},
		"legacy, switched on":             {legacy + "&caps=" + withEvents, false, true, "yes unasked l1", "other"},
		"legacy, said at once":            {legacy + "&events=at-once&caps=" + withEvents, false, true, "unasked l1 unasked yes l1 unasked l1", "other"},
		"legacy, said before":             {legacy + "&events=early&caps=" + withEvents, false, true, "unasked l1 unasked l1 yes unasked l1", "other"},
		"legacy, not switched on":         {legacy + "&caps=" + withEvents, false, false, "no unasked", "aurora/event other"},
		"legacy, with the extension":      {legacy + "&caps=" + withEvents, true, false, "no e1", "aurora/event other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := new(sink)
			s, err := opened(t, c.traits, func(o *Options) { o.Events, o.WorldEvents, o.LegacyEvents = told, c.world, c.legacy })
			if err != nil {
				t.Fatal(err)
			}
			allow(s, "events", "vendor")
			var logs []string
			s.Call(t.Context(), Call{Tool: descriptor("events"), LogLevel: "debug", Log: func(m call.LogMessage) { logs = append(logs, m.Logger) }})
			s.Call(t.Context(), Call{Tool: descriptor("vendor")})
			if got := told.String(); got != c.want {
				t.Errorf("told %q, want %q", got, c.want)
			}
			if got := strings.Join(logs, " "); got != c.logs {
				t.Errorf("logs of %q, want %q", got, c.logs)
			}
			if holds := strings.Contains(c.want, "yes"); s.Negotiated().WorldEvents != holds {
				t.Errorf("negotiated %v", s.Negotiated().WorldEvents)
			}
		})
	}
}

// R5.1: the settings of world-events are as strict as those of tool-contract.
func TestR5_1_EventsAreStrict(t *testing.T) {
	t.Parallel()
	for settings, want := range settingsOf {
		caps := []byte(`{"extensions":{"org.aurorabot/world-events":` + settings + `}}`)
		if content.CheckValue(caps, content.FrameLimits{}) != nil {
			continue // such a message is none
		}
		s := &Session{opts: Options{WorldEvents: true, Events: new(sink)}}
		if got := s.eventsHold(true, caps); got != want {
			t.Errorf("%s: %v", settings, got)
		}
	}
}

// R5.1: world-events is offered only where it is switched on, only in the era that has it, and beside the contract.
func TestR5_1_Offer(t *testing.T) {
	t.Parallel()
	const contract, events = `"org.aurorabot/tool-contract":{"version":1}`, `"org.aurorabot/world-events":{"version":1}`
	for name, c := range map[string]struct {
		traits string
		change func(*Options)
		want   string // the extensions, "": none are offered
	}{
		"both":           {"discover=modern", func(o *Options) { o.ToolContract, o.WorldEvents, o.Events = true, true, new(sink) }, `{` + contract + `,` + events + `}`},
		"events alone":   {"discover=modern", func(o *Options) { o.WorldEvents, o.Events = true, new(sink) }, `{` + events + `}`},
		"off":            {"discover=modern", func(o *Options) { o.Events = new(sink) }, ""},
		"nobody to take": {"discover=modern", func(o *Options) { o.WorldEvents = true }, ""},
		"the legacy way": {"discover=modern", func(o *Options) { o.LegacyEvents, o.Events = true, new(sink) }, ""},
		"in a handshake": {"init=2025-11-25&discover=-32601", func(o *Options) {
			o.ToolContract, o.WorldEvents, o.Events, o.Protocol = true, true, new(sink), "2025-11-25"
		}, `{` + contract + `}`},
		"handshake alone": {"init=2025-11-25&discover=-32601", func(o *Options) { o.WorldEvents, o.Events, o.Protocol = true, new(sink), "2025-11-25" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := opened(t, c.traits, c.change)
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "the server has been asked", func() bool { return len(received(s)) > 0 })
			for _, line := range s.Stats().StderrTail {
				if offered, ok := strings.CutPrefix(line, "offered "); ok && offered != c.want {
					t.Errorf("offered %s", offered)
				}
			}
			if c.want != "" {
				eventually(t, "the offer has been seen", func() bool { return slices.Contains(s.Stats().StderrTail, "offered "+c.want) })
			}
		})
	}
}

// R5.5: over HTTP nothing is offered, nothing holds, and what comes on the stream of a request is no event that holds.
func TestR5_5_NoEventsOverHTTP(t *testing.T) {
	t.Parallel()
	for era, traits := range map[string]url.Values{"modern": {"discover": {"modern"}}, "legacy": {"discover": {"-32601"}, "init": {"2025-11-25"}}} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			traits.Set("caps", withEvents)
			told := new(sink)
			var mu sync.Mutex
			p := &peer{is: traits}
			s, err := openHTTP(t, newWebPeer(t, func(w http.ResponseWriter, r *http.Request, f content.Frame) {
				for _, caps := range [][]byte{content.Member(f.Params, "capabilities"), content.Member(content.Member(f.Params, "_meta"), keyCapabilities)} {
					if content.Member(caps, "extensions") != nil {
						t.Errorf("offered %s", caps)
					}
				}
				switch {
				case r.Method != http.MethodPost:
					w.WriteHeader(http.StatusMethodNotAllowed)
				case f.Method == "tools/call":
					w.Header().Set("Content-Type", "text/event-stream")
					event(w, "%s", eventMessage)
					event(w, "%s", loggedBy("aurora/event"))
					event(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, f.ID)
				default:
					viaPeer(p, &mu, w, f)
				}
			}), func(o *Options) { o.Events, o.WorldEvents, o.LegacyEvents = told, true, true })
			if err != nil {
				t.Fatal(err)
			}
			allow(s, "events")
			s.Call(t.Context(), Call{Tool: descriptor("events")})
			if got := told.String(); got != "no unasked" || s.Negotiated().WorldEvents {
				t.Errorf("told %q", got)
			}
		})
	}
}

// R5.4: one level holds for all that a legacy server says, so no call may have it say less than its events.
func TestR5_4_TheLevelOfEvents(t *testing.T) {
	t.Parallel()
	s, err := opened(t, "discover=-32601&init=2025-11-25", func(o *Options) { o.Events, o.LegacyEvents = new(sink), true })
	if err != nil {
		t.Fatal(err)
	}
	allow(s, "logs")
	s.Call(t.Context(), Call{Tool: descriptor("logs"), LogLevel: "error", Log: func(call.LogMessage) {}})
	s.logs.mu.Lock()
	defer s.logs.mu.Unlock()
	if s.logs.set != levelOf("info")+1 {
		t.Errorf("the server was asked for %d", s.logs.set)
	}
}
