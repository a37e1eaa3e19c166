package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
)

// Whatever is held, decided and purged, in whatever order and at whatever time: an item that was rejected or purged is
// never released, no step is taken twice or back, every step names who took it and when, and a purged item has neither
// payload nor excerpt. A result is delivered at most once, after it was released and before it was purged, and only to the
// claim that it belongs to. No more is kept than may be, of all, of one provider and of its events.
func TestStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, now, limits := newMemory(), clock, Limits{Retention: time.Hour, MaxTotal: 1000}
		was := map[ID]Item{}
		ever := map[ID]map[State]bool{}
		claims := []call.Digest{{}, {1}, {2}}
		delivered := map[ID]int{}
		id := func() ID { return ID(fmt.Sprint("e", rapid.IntRange(0, 9).Draw(t, "id"))) }
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(-10, 40).Draw(t, "minutes")) * time.Minute)
			},
			"hold": func(t *rapid.T) {
				i := item(id())
				i.Created, i.Claim = now, rapid.SampledFrom(claims).Draw(t, "claim")
				i.Provider, i.Direction = rapid.SampledFrom([]string{"files", "chat", "mail"}).Draw(t, "provider"), rapid.SampledFrom([]Direction{Result, Event}).Draw(t, "direction")
				h, err := Hold(fakeSeal{}, i, rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "payload"), limits)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Keep(m, h); err != nil && !errors.Is(err, errConflict) {
					t.Fatal(err)
				}
			},
			"decide": func(t *rapid.T) {
				d := Decision{By: rapid.SampledFrom([]string{"bob", "carol", ""}).Draw(t, "who"), At: now}
				step := rapid.SampledFrom([]func(Tx, ID, Decision) (Item, error){Release, Reject, Purge}).Draw(t, "step")
				_, err := step(m, id(), d)
				if err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrDecided) && !errors.Is(err, ErrOver) {
					t.Fatal(err)
				}
			},
			"deliver": func(t *rapid.T) {
				id, claim := id(), rapid.SampledFrom(claims).Draw(t, "claimed")
				before, _, _ := m.Evidence(id)
				got, err := Deliver(m, id, claim, "to", now)
				if err != nil {
					for _, known := range []error{ErrUnknown, ErrHeld, ErrDecided, ErrOver, ErrDelivered} {
						if errors.Is(err, known) {
							return
						}
					}
					t.Fatal(err)
				}
				if delivered[id]++; delivered[id] > 1 || !before.Admitted(now) || before.Claim != claim || claim.IsZero() || got.Delivery.To != "to" {
					t.Fatalf("%s is delivered for %v, %d times: %+v", id, claim, delivered[id], before)
				}
			},
			"sweep": func(t *rapid.T) {
				ids, err := Expired(m, now, 3)
				if err != nil {
					t.Fatal(err)
				}
				if swept, err := Sweep(m, ids, now); err != nil || len(swept) != len(ids) {
					t.Fatalf("swept %d of %d, %v", len(swept), len(ids), err)
				}
			},
			"": func(t *rapid.T) {
				for _, i := range m.items {
					before, known := was[i.ID]
					if known && before.State != i.State && !before.State.mayBecome(i.State) {
						t.Fatalf("%s went from %s to %s", i.ID, before.State, i.State)
					}
					if known && before.State == i.State && (before.Decision != i.Decision || before.Purge != i.Purge) {
						t.Fatalf("%s: what was decided has changed", i.ID)
					}
					if ever[i.ID] == nil {
						ever[i.ID] = map[State]bool{}
					}
					ever[i.ID][i.State] = true
					if ever[i.ID][Released] && ever[i.ID][Rejected] {
						t.Fatalf("%s was released and rejected", i.ID)
					}
					if i.State == Released && ever[i.ID][Purged] {
						t.Fatalf("%s was released after it was purged", i.ID)
					}
					decided := i.Decision.By != "" && !i.Decision.At.IsZero() && (i.Decision.To == Released || i.Decision.To == Rejected)
					purged := i.Purge.By != "" && !i.Purge.At.IsZero() && i.Purge.To == Purged
					if (i.State == Released || i.State == Rejected) && (!decided || i.Decision.To != i.State) {
						t.Fatalf("%s is %s by nobody: %+v", i.ID, i.State, i.Decision)
					}
					if i.State == Held && i.Decision != (Decision{}) || (i.State == Purged) != purged {
						t.Fatalf("%s is %s: %+v, %+v", i.ID, i.State, i.Decision, i.Purge)
					}
					if (i.Delivery.To != "") != (delivered[i.ID] > 0) || known && before.Delivery.To != "" && before.Delivery != i.Delivery {
						t.Fatalf("%s: its delivery is %+v, and was %+v", i.ID, i.Delivery, before.Delivery)
					}
					if i.Admitted(now) && (i.State != Released || !now.Before(i.Expires)) {
						t.Fatalf("%s is admitted as %s", i.ID, i.State)
					}
					_, there := m.sealed[i.ID]
					if there == (i.State == Purged) || i.State == Purged && i.Excerpt != "" {
						t.Fatalf("%s is %s, payload %t, excerpt %q", i.ID, i.State, there, i.Excerpt)
					}
					was[i.ID] = i
				}
				if size, _ := m.EvidenceSize(); size > limits.MaxTotal {
					t.Fatalf("%d bytes are kept", size)
				}
				for _, pkg := range []string{"files", "chat", "mail"} {
					if s, _ := m.EvidenceShare(pkg); s.All > limits.MaxTotal/2 || s.Events > limits.MaxTotal/8 {
						t.Fatalf("of %s is kept %+v", pkg, s)
					}
				}
			},
		})
	})
}

// A payload belongs to one item: no other item has the same associated bytes.
func FuzzAssociated(f *testing.F) {
	f.Add("a", "b", "c", "d", "a", "b", "c", "d")
	f.Add("a\n1:b", "", "c", "d", "a", "\n1:b", "c", "d")
	f.Fuzz(func(t *testing.T, id, call1, provider, tool, id2, call2, provider2, tool2 string) {
		a, b := item(ID(id)), item(ID(id2))
		a.CallID, a.Provider, a.Tool = call.ID(call1), provider, call.ToolID(tool)
		b.CallID, b.Provider, b.Tool = call.ID(call2), provider2, call.ToolID(tool2)
		same := id == id2 && call1 == call2 && provider == provider2 && tool == tool2
		if bytes.Equal(a.associated(), b.associated()) != same {
			t.Fatalf("%q and %q", a.associated(), b.associated())
		}
	})
}

// Texts of strangers are bounded and valid.
func FuzzClip(f *testing.F) {
	f.Add("é\xff", 2)
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = min(max(most, 0), 64)
		got := clip(s, most)
		if len(got) > most || clip(got, most) != got {
			t.Fatalf("%q", got)
		}
	})
}
