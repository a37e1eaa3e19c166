package world_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/world"
)

// event is a payload that is in order, but for the members given: name and raw value; an empty value takes one out.
func event(members ...string) string {
	at := map[string]string{"event_id": `"e-1"`, "source": `"qq"`, "scope": `"qq:group:42"`, "kind": `"message.received"`,
		"occurred_at": `"2026-07-28T09:30:00+02:00"`, "summary": `"somebody said hello"`}
	for i := 0; i < len(members); i += 2 {
		at[members[i]] = members[i+1]
	}
	var out []string
	for _, name := range []string{"event_id", "source", "scope", "kind", "occurred_at", "summary", "data", "extra"} {
		if at[name] != "" {
			out = append(out, `"`+name+`":`+at[name])
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

func quote(s string) string {
	b, _ := jsontext.AppendQuote(nil, s)
	return string(b)
}

// R5.2: what an event must be, and by which reason it is refused otherwise.
func TestR5_2_Events(t *testing.T) {
	long := strings.Repeat
	for _, c := range []struct {
		payload string
		want    world.Refusal // "": it is one
	}{
		{event(), ""},
		{event("data", `{"n":9007199254740993,"a":[1.0, {}]}`), ""},
		{event("event_id", quote(long("i", 256))), ""},
		{event("event_id", `"urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"`), ""},
		{event("summary", quote(long("å", 2000))), ""},
		{event("summary", `"two\nlines"`), ""},
		{event("source", `"QQ 群"`), ""},
		{event("kind", `"message"`), ""},
		{event("kind", `"toolbox.opened"`), ""},
		{event("kind", quote("a."+long("k", 126))), ""},
		{event("occurred_at", `"2026-07-28T09:30:00Z"`), ""},
		{event("occurred_at", `"2026-07-28T09:30:00.123456789-11:30"`), ""},
		{event("data", `{"blob":"`+long("b", 32<<10-11)+`"}`), ""},

		{``, world.Malformed}, {`null`, world.Malformed}, {`[]`, world.Malformed}, {`"x"`, world.Malformed}, {`{`, world.Malformed},
		{event() + event(), world.Malformed}, {event() + "x", world.Malformed},
		{`{"event_id":"a","event_id":"b"}`, world.Malformed},
		{strings.Replace(event(), "hello", "\xff", 1), world.Malformed},
		{event("extra", quote(long("x", 64<<10))), world.Malformed},
		{event("extra", `1`), world.UnknownField},
		{strings.Replace(event(), `"kind"`, `"Kind"`, 1), world.UnknownField},

		{event("event_id", ""), world.BadID}, {event("event_id", `""`), world.BadID}, {event("event_id", `7`), world.BadID}, {event("event_id", `null`), world.BadID},
		{event("event_id", `"a b"`), world.BadID}, {event("event_id", `"a\u0000"`), world.BadID}, {event("event_id", `"ä"`), world.BadID},
		{event("event_id", `"a\u200bb"`), world.BadID}, {event("event_id", quote(long("i", 257))), world.BadID},

		{event("source", ""), world.BadSource}, {event("source", `""`), world.BadSource}, {event("source", `[]`), world.BadSource},
		{event("source", `"a\nb"`), world.BadSource}, {event("source", quote(long("s", 257))), world.BadSource},

		{event("scope", ""), world.BadScope}, {event("scope", `"QQ:42"`), world.BadScope}, {event("scope", `"qq:"`), world.BadScope}, {event("scope", `"qq:*"`), world.BadScope},
		{event("scope", `["qq:42"]`), world.BadScope}, {event("scope", `"qq:гр"`), world.BadScope},

		{event("kind", ""), world.BadKind}, {event("kind", `""`), world.BadKind}, {event("kind", `"Message"`), world.BadKind}, {event("kind", `"a..b"`), world.BadKind},
		{event("kind", `".a"`), world.BadKind}, {event("kind", `"a."`), world.BadKind}, {event("kind", `"a b"`), world.BadKind}, {event("kind", `"a:b"`), world.BadKind},
		{event("kind", `1`), world.BadKind}, {event("kind", quote("a."+long("k", 127))), world.BadKind},
		{event("kind", `"engine.tick"`), world.ReservedKind}, {event("kind", `"tool.succeeded"`), world.ReservedKind}, {event("kind", `"output.sent"`), world.ReservedKind},
		{event("kind", `"cadence.x"`), world.ReservedKind}, {event("kind", `"ops.x"`), world.ReservedKind}, {event("kind", `"mcp.catalog.changed"`), world.ReservedKind},
		{event("kind", `"tool"`), world.ReservedKind}, {event("kind", `"tool\u002esucceeded"`), world.ReservedKind},

		{event("occurred_at", ""), world.BadTime}, {event("occurred_at", `"2026-07-28T09:30:00"`), world.BadTime}, {event("occurred_at", `"2026-07-28 09:30:00Z"`), world.BadTime},
		{event("occurred_at", `"2026-07-28"`), world.BadTime}, {event("occurred_at", `1785223800`), world.BadTime}, {event("occurred_at", `"2026-02-30T09:30:00Z"`), world.BadTime},
		{event("occurred_at", `"2026-07-28T9:30:00Z"`), world.BadTime}, {event("occurred_at", `"2026-07-28T09:30:00,5Z"`), world.BadTime},
		{event("occurred_at", `"2026-07-28T09:30:00.1234567890Z"`), world.BadTime}, {event("occurred_at", `"0001-01-01T00:00:00Z"`), world.BadTime},
		{event("occurred_at", `"9999-12-31T23:59:59Z"`), world.BadTime}, {event("occurred_at", `"today"`), world.BadTime},

		{event("summary", ""), world.BadSummary}, {event("summary", `""`), world.BadSummary}, {event("summary", `" \n\t"`), world.BadSummary},
		{event("summary", `{"text":"x"}`), world.BadSummary}, {event("summary", `["a","b"]`), world.BadSummary},
		{event("summary", quote(long("å", 2001))), world.BadSummary}, {event("summary", `"a\u001b[31m"`), world.BadSummary}, {event("summary", `"a\u0085b"`), world.BadSummary},

		{event("data", `null`), world.BadData}, {event("data", `[]`), world.BadData}, {event("data", `"x"`), world.BadData}, {event("data", `1`), world.BadData},
		{event("data", `{"blob":"`+long("b", 32<<10-10)+`"}`), world.BadData},
	} {
		name := c.payload
		if len(name) > 200 {
			name = name[:200] + "…"
		}
		e, err := world.ReadEvent([]byte(c.payload))
		no, refused := errors.AsType[*world.EventError](err)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!refused || no.Refusal != c.want || no.Text == ""):
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		case c.want == "":
			if err := e.Check(); err != nil {
				t.Errorf("%s: read, and then %v", name, err)
			}
		}
	}

	e, err := world.ReadEvent([]byte(event("summary", `"one\r\ntwo\tthree"`, "data", `{ "n" : 9007199254740993 }`)))
	want := world.Event{ID: "e-1", Source: "qq", Scope: "qq:group:42", Kind: "message.received", Occurred: time.Date(2026, 7, 28, 7, 30, 0, 0, time.UTC),
		Summary: "one two three", Data: []byte(`{"n":9007199254740993}`)}
	e.Occurred = e.Occurred.UTC()
	if err != nil || fmt.Sprintf("%+v", e) != fmt.Sprintf("%+v", want) {
		t.Errorf("read %+v, %v", e, err)
	}
}

// R5.2: which scopes a provider may speak of.
func TestR5_2_EventScopes(t *testing.T) {
	for _, c := range []struct {
		patterns string
		scope    call.Scope
		may      bool
	}{
		{"", "qq:group:42", true},
		{"", "aurora:mcp:chat", true},
		{"", "aurora:mcp:chat:room", true},
		{"", "aurora:mcp:chat2", false},
		{"", "aurora:mcp:files", false},
		{"", "aurora:mcp:files:chat", false},
		{"", "aurora:other", true},
		{"*", "aurora:mcp:files", false},
		{"*", "qq", true},
		{"qq:*", "qq:group:42", true},
		{"qq:*", "qq:", false},
		{"qq:*", "qqq:group", false},
		{"qq:*", "aurora:mcp:chat", false},
		{"qq:*:42", "qq:group:42", true},
		{"qq:*:42", "qq:group:x:42", true},
		{"qq:*:42", "qq:group:4242x", false},
		{"qq:*4*2", "qq:group:42", true},
		{"qq:*4*4*", "qq:4", false},
		{"qq:group:42", "qq:group:42", true},
		{"qq:group:42", "qq:group:421", false},
		{"a:b qq:*", "qq:1", true},
	} {
		var patterns []world.ScopePattern
		for _, p := range strings.Fields(c.patterns) {
			patterns = append(patterns, world.ScopePattern(p))
		}
		in, committed := newTestIntake(t, func(*world.IntakeOptions) {})
		s := in.Stream("chat", "gateway/chat#1", patterns)
		s.Agreed(true)
		in.Started("chat")
		in.Open()
		s.Event([]byte(event("scope", quote(string(c.scope)))))
		in.Stop(t.Context())
		st, _ := in.Stats("chat")
		legal := world.CheckScope(c.scope) == nil
		if got := len(*committed) == 1; got != c.may || !c.may && legal && st.Refused[world.ForeignScope] != 1 {
			t.Errorf("%q with %q: committed %v, %v", c.scope, c.patterns, got, st.Refused)
		}
	}
	for pattern, legal := range map[world.ScopePattern]bool{"*": true, "qq:*": true, "*:x": true, "qq:a*b": true, "": false, "QQ:*": false, "qq::*": false, "qq:{x}": false, "qq:?": false} {
		if err := pattern.Check(); (err == nil) != legal {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// Whatever a payload is, what is read of it is an event that satisfies every rule, and reads the same again when it is
// written anew.
func FuzzR5_2_ReadEvent(f *testing.F) {
	f.Add([]byte(event()))
	f.Add([]byte(event("data", `{"a":{"b":[1e400,-0]}}`, "summary", `"\ud83d\ude00"`)))
	f.Add([]byte(event("occurred_at", `"2026-07-28T24:00:00Z"`)))
	f.Add([]byte(event("occurred_at", `"2026-07-28T09:30:00+99:99"`)))
	f.Add([]byte(`{"event_id":"\ud800"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := world.ReadEvent(b)
		if err != nil {
			if no, ok := errors.AsType[*world.EventError](err); !ok || no.Refusal == "" || no.Text == "" {
				t.Fatalf("%q: %v", b, err)
			}
			return
		}
		if err := e.Check(); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if strings.HasPrefix(e.Kind, "tool.") || strings.ContainsAny(e.Summary, "\n\r\x00\x1b") || strings.ContainsAny(e.ID, " \n") {
			t.Fatalf("%+v", e)
		}
		again := event("event_id", quote(e.ID), "source", quote(e.Source), "scope", quote(string(e.Scope)), "kind", quote(e.Kind),
			"occurred_at", quote(e.Occurred.Format(time.RFC3339Nano)), "summary", quote(e.Summary), "data", string(e.Data))
		back, err := world.ReadEvent([]byte(again))
		if err != nil && len(again) <= world.MaxEvent {
			t.Fatalf("%s: %v", again, err)
		}
		if err == nil && (!back.Occurred.Equal(e.Occurred) || back.ID != e.ID || back.Summary != e.Summary || string(back.Data) != string(e.Data)) {
			t.Fatalf("%+v is %+v when it is read again", e, back)
		}
	})
}
