package ostiary

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/config"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/mcpwire"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/review"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/world"
)

const (
	// eventsDrain bounds how long a stop waits for events that were taken to be committed.
	eventsDrain = 5 * time.Second
	// eventScreenTime bounds the screening of one event. One that takes longer is withheld (F-57).
	eventScreenTime = 2 * time.Second
	// maxEventExcerpt bounds what is kept in clear of an event that was withheld.
	maxEventExcerpt = 2000
)

// withheldSummary stands for the texts of an event that are not let in. That something has happened is no less true.
const withheldSummary = "the text was withheld by the firewall"

// withheldKind stands for its kind, which is the provider's own word too.
const withheldKind = "event.withheld"

// newIntake makes what takes the events of all providers.
func (h *Host) newIntake() *world.Intake {
	return world.NewIntake(world.IntakeOptions{
		Prepare: h.prepareEvent, Commit: h.commitEvents, Admitted: h.admitted.book.CheckProvider, Record: h.eventsTurned,
		Logger: h.log.With("component", "world"),
	})
}

// eventsOf takes the events of a new connection.
func (h *Host) eventsOf(gen provider.Generation, p *provider.Profile) mcpwire.Events {
	c, _ := h.o.Config.Provider(p.Package)
	return h.events.Stream(p.Package, gen.String(), c.EventScopes)
}

// prepareEvent judges what an event says, for models will read it (R8.1), and makes a fact of it. What is not let in is left
// out; the fact is committed all the same, because its scope has moved on.
func (h *Host) prepareEvent(ctx context.Context, pkg string, e world.Event) world.Arrival {
	if h.scopeSays(ctx, pkg, e.Scope) {
		return world.Arrival{Refused: world.ScopeWithheld}
	}
	const id, source, kind, words, summary, data = "id", "source", "kind", "kind_words", "summary", "data"
	said := content.NewObject(nil).String(id, e.ID).String(source, e.Source).String(kind, e.Kind).String(words, wordsOf(e.Kind)).String(summary, e.Summary)
	if e.Data != nil {
		said.Raw(data, e.Data)
	}
	v := h.screenEvent(ctx, pkg, said.End())
	// One event is one fact, whatever is made of its texts: its name is derived from what the provider calls it and from
	// nothing that was judged.
	sum := sha256.Sum256([]byte("event:" + pkg + ":" + e.ID))
	name := hex.EncodeToString(sum[:])
	f := world.Fact{ID: "event:" + pkg + ":sha256:" + name, Scopes: []call.Scope{e.Scope}, Provider: pkg, Source: e.Source, Kind: e.Kind,
		Occurred: e.Occurred, Summary: e.Summary, Data: e.Data}
	if v.Withheld() {
		f.Source, f.Kind, f.Summary, f.Data = "", withheldKind, withheldSummary, nil
		return world.Arrival{Fact: f, Withheld: true, Evidence: h.holdEvent(pkg, name, &e, &v)}
	}
	released := content.Member(v.Released, "structuredContent")
	text := func(name string) string { s, _ := content.String(content.Member(released, name)); return s }
	f.Source, f.Summary, f.Data = text(source), text(summary), content.Member(released, data)
	if text(kind) != e.Kind || text(words) != wordsOf(e.Kind) {
		f.Kind = withheldKind
	}
	return world.Arrival{Fact: f}
}

// scopeSays reports whether screening finds something in a scope. Clients read it like any text; but a part of it cannot be
// left out, for it would be another scope.
func (h *Host) scopeSays(ctx context.Context, pkg string, s call.Scope) bool {
	said := content.NewObject(nil).String("scope", string(s)).String("words", wordsOf(string(s))).End()
	v := h.screenEvent(ctx, pkg, said)
	return v.Withheld() || !bytes.Equal(content.Member(v.Released, "structuredContent"), said)
}

// wordsOf is a name as somebody would read it who takes what divides its parts for blanks: note:Do.this is "note Do this".
func wordsOf(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(":._~@+=-", r) {
			return ' '
		}
		return r
	}, name)
}

// screenEvent runs the firewall on an object, as if a tool had answered with it. Its panic, like that of an inspector, withholds (F-57).
func (h *Host) screenEvent(ctx context.Context, pkg string, said []byte) (v firewall.Verdict) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("panic in the firewall", "provider", pkg, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			v = firewall.Verdict{Reasons: []firewall.Code{firewall.CodeDetectorFailed}}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, eventScreenTime)
	defer cancel()
	c, _ := h.o.Config.Provider(pkg)
	result := content.NewObject(nil).Raw("content", []byte("[]")).Raw("structuredContent", said).End()
	return h.firewall.ScreenResult(ctx, result, c.Firewall.Rules, nil)
}

// holdEvent seals an event that was withheld, for somebody to look at.
func (h *Host) holdEvent(pkg, name string, e *world.Event, v *firewall.Verdict) *evidence.Sealed {
	original := content.NewObject(nil).String("event_id", e.ID).String("source", e.Source).String("scope", string(e.Scope)).String("kind", e.Kind).
		String("occurred_at", e.Occurred.Format(time.RFC3339Nano)).String("summary", e.Summary)
	if e.Data != nil {
		original.Raw("data", e.Data)
	}
	item := evidence.Item{ID: evidence.ID("ev-event-" + name[:32]), Provider: pkg, Direction: evidence.Event, Verdict: v.Kind.String(),
		Excerpt: review.Clip(string(v.Redacted), maxEventExcerpt), Created: h.o.Now()}
	for _, r := range v.Reasons {
		item.Reasons = append(item.Reasons, string(r))
	}
	held, err := evidence.Hold(h.vault, item, original.End(), evidenceLimits(h.o.Config))
	if err != nil {
		h.log.Error("hold an event as evidence", "provider", pkg, "err", err)
	}
	if held.Item.ID == "" {
		return nil
	}
	return &held
}

// commitEvents puts facts into the journal, with a record of which and where (R5.3).
func (h *Host) commitEvents(ctx context.Context, pkg, generation string, batch []world.Arrival) ([]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	known, digests := make([]bool, len(batch)), make([]string, len(batch))
	for i := range batch {
		digests[i] = factDigest(&batch[i].Fact)
	}
	err := h.store.Update(ctx, func(tx store.Tx) error { // everybody waits for what is done in here
		now := h.o.Now()
		facts := []byte{'['}
		for i := range batch {
			f := batch[i].Fact
			f.Time = now
			at, there, err := tx.PutFact(f)
			if err != nil {
				return err
			}
			if known[i] = there; there {
				continue
			}
			if len(facts) > 1 {
				facts = append(facts, ',')
			}
			fact := content.NewObject(facts).Raw("at", content.FrontierJSON(at)).String("digest", digests[i])
			if held, ok := batch[i].Evidence.(*evidence.Sealed); ok && held != nil {
				item, err := evidence.Keep(tx, *held)
				if err != nil && !errors.Is(err, store.ErrConflict) {
					return err
				}
				fact.String("evidence", string(item.ID))
			}
			facts = fact.String("id", f.ID).End()
		}
		if len(facts) == 1 { // all of them were there: nothing has happened
			return nil
		}
		body := content.NewObject(nil).Raw("facts", append(facts, ']')).String("generation", generation).String("provider", pkg).End()
		return tx.Append(ledger.Entry{Time: now, Kind: ledger.KindWorldCommitted, Body: body})
	})
	return known, err
}

// factDigest stands in the ledger for what a fact says.
func factDigest(f *world.Fact) string {
	said := content.NewObject(nil).String("source", f.Source).String("kind", f.Kind).String("occurred", f.Occurred.UTC().Format(time.RFC3339Nano)).String("summary", f.Summary)
	if f.Data != nil {
		data := jsontext.Value(f.Data).Clone()
		if err := data.Canonicalize(jsontext.CanonicalizeRawInts(false)); err == nil {
			said.Raw("data", data)
		}
	}
	return call.Digest(sha256.Sum256(said.End())).String()
}

// eventsTurned records what did not become facts.
func (h *Host) eventsTurned(t world.Turned) {
	h.log.Warn("events of a provider are not taken", "provider", t.Provider, "generation", t.Generation, "refused", t.Counts, "total", t.Total)
	h.note(ledger.KindWorldRefused, "", map[string]any{"provider": t.Provider, "generation": t.Generation, "refused": t.Counts, "total": t.Total})
}

// eventStats are the counters of a provider's events; nil if it has none and nobody expects any.
func (h *Host) eventStats(pkg string) *world.IntakeStats {
	st, ok := h.events.Stats(pkg)
	c, _ := h.o.Config.Provider(pkg)
	if !ok || st.Received == 0 && (c.Events == "" || c.Events == config.EventsOff) {
		return nil
	}
	return &st
}
