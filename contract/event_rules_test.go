package contract_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ostiary/ostiary/contract"
	"github.com/ostiary/ostiary/internal/world"
)

// R4.8, R5.2: an event that a host would refuse is not sent, and the error says why and which.
func TestR4_8_EventRules(t *testing.T) {
	ext := contract.New(contract.Options{WorldEvents: true})
	server := newServer(ext)
	client(t, connected(t, ext, server, func(r *jsonrpc.Request) { t.Errorf("%s was sent", r.Params) }), "2026-07-28", contract.WorldEvents)
	for name, c := range map[string]struct {
		change func(*contract.Event)
		want   string
	}{
		"no id":             {func(e *contract.Event) { e.ID = "" }, "event_id"},
		"id with a blank":   {func(e *contract.Event) { e.ID = "a b" }, "event_id"},
		"no source":         {func(e *contract.Event) { e.Source = "" }, "source"},
		"no scope":          {func(e *contract.Event) { e.Scope = "" }, "scope"},
		"illegal scope":     {func(e *contract.Event) { e.Scope = "Test" }, "scope"},
		"no kind":           {func(e *contract.Event) { e.Kind = "" }, "kind"},
		"illegal kind":      {func(e *contract.Event) { e.Kind = "Message" }, "kind"},
		"reserved kind":     {func(e *contract.Event) { e.Kind = "tool.succeeded" }, "tool."},
		"reserved kind mcp": {func(e *contract.Event) { e.Kind = "mcp.catalog.changed" }, "mcp."},
		"no time":           {func(e *contract.Event) { e.OccurredAt = time.Time{} }, "occurred_at"},
		"no summary":        {func(e *contract.Event) { e.Summary = " " }, "summary"},
		"long summary":      {func(e *contract.Event) { e.Summary = strings.Repeat("x", 2001) }, "summary"},
		"two lines":         {func(e *contract.Event) { e.Summary = "a\nb" }, "summary"},
		"data no object":    {func(e *contract.Event) { e.Data = []int{1} }, "data"},
		"data null":         {func(e *contract.Event) { e.Data = json.RawMessage("null") }, "data"},
		"data no JSON":      {func(e *contract.Event) { e.Data = func() {} }, "data"},
		"too much data":     {func(e *contract.Event) { e.Data = map[string]string{"x": strings.Repeat("x", 32<<10)} }, "data"},
	} {
		e := eventIn("test:1")
		c.change(&e)
		a, err := ext.Emit(t.Context(), e)
		if err == nil || !strings.Contains(err.Error(), c.want) || e.ID != "" && !strings.Contains(err.Error(), e.ID) || a != (contract.Attempt{}) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		if e.Check() == nil {
			t.Errorf("%s passes Check", name)
		}
	}
}

// What is sent is what a host reads, every member of it.
func FuzzR4_8_Event(f *testing.F) {
	f.Add("e1", "s", "test:1", "message.received", int64(1785578400), 120, "hello", "n")
	f.Add("e\\2", "\"", "a", "a", int64(0), -720, "\u00a0x\u2028", "\x00")
	f.Fuzz(func(t *testing.T, id, source, scope, kind string, at int64, zone int, summary, data string) {
		e := contract.Event{ID: id, Source: source, Scope: scope, Kind: kind, Summary: summary, Data: map[string]string{"x": data},
			OccurredAt: time.Unix(at, at&0xffff).In(time.FixedZone("", zone%840*60))}
		payload, err := contract.Payload(e)
		if err != nil {
			return
		}
		got, err := world.ReadEvent(payload)
		if err != nil {
			t.Fatalf("%s: %v", payload, err)
		}
		var x struct{ X string }
		if err := json.Unmarshal(got.Data, &x); err != nil {
			t.Fatal(err)
		}
		if got.ID != id || got.Source != source || string(got.Scope) != scope || got.Kind != kind || !got.Occurred.Equal(e.OccurredAt) || got.Summary != summary || x.X != data {
			t.Fatalf("%+v became %+v", e, got)
		}
	})
}
