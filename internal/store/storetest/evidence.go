package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

// Item is a plain item of evidence.
func Item(id evidence.ID) evidence.Item {
	return evidence.Item{
		ID: id, CallID: call.ID("call-" + id), Session: "s1", Principal: "alice", Provider: "files", Tool: "aur.mcp.files.read",
		Direction: evidence.Progress, Verdict: "QUARANTINED", Reasons: []string{"a.b", "c\nd"}, Sensitivity: "REGULATED", Excerpt: "é [redacted]",
		SHA256: evidence.Hash{1, 31: 2}, Size: 7, Created: clock, Expires: clock.Add(time.Hour),
		Claim: call.Digest{3, 31: 4}, Outcome: call.Outcome{Status: call.Succeeded, Delivery: call.Confirmed, Effect: call.EffectDone, CallID: call.ID("call-" + id)},
	}
}

func insert(i evidence.Item, sealed string) func(store.Tx) error {
	return func(tx store.Tx) error { return tx.InsertEvidence(i, []byte(sealed)) }
}

func decided(i evidence.Item, to evidence.State) evidence.Item {
	d := evidence.Decision{To: to, By: "bob", At: clock.Add(time.Minute), Reason: "words"}
	i.State = to
	if to == evidence.Purged {
		i.Purge, i.Excerpt = d, ""
	} else {
		i.Decision = d
	}
	return i
}

func decide(from evidence.State, i evidence.Item) func(store.Tx) error {
	return func(tx store.Tx) error { return tx.DecideEvidence(from, i) }
}

// checkItem compares an item and its payload with what is wanted, in a view and in a transaction.
func checkItem(t *testing.T, s store.Store, want evidence.Item, sealed string) {
	t.Helper()
	check := func(got evidence.Item, ok bool, err error) error {
		if !ok || err != nil {
			return fmt.Errorf("evidence %s: %t, %w", want.ID, ok, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("evidence %s (-want +got):\n%s", want.ID, d)
		}
		return nil
	}
	update(t, s, func(tx store.Tx) error { return check(tx.Evidence(want.ID)) })
	if err := s.View(t.Context(), func(v store.View) error {
		b, ok, err := v.SealedEvidence(want.ID)
		if err != nil || ok != (sealed != "") || string(b) != sealed {
			t.Errorf("payload of %s: %.40q, %t, %v, want %.40q", want.ID, b, ok, err, sealed)
		}
		return check(v.Evidence(want.ID))
	}); err != nil {
		t.Error(err)
	}
}

func checkSize(t *testing.T, s store.Store, want int64) {
	t.Helper()
	update(t, s, func(tx store.Tx) error {
		got, err := tx.EvidenceSize()
		if got != want {
			t.Errorf("size of evidence is %d, want %d", got, want)
		}
		if err == nil {
			var share evidence.Share
			if share, err = tx.EvidenceShare(Item("").Provider); share != (evidence.Share{All: want}) {
				t.Errorf("the share of the only provider is %+v, want %d", share, want)
			}
		}
		return err
	})
}

// R8.6: what is held is there again as it was, and what is decided stays.
func testEvidence(t *testing.T, s store.Store) {
	a, b := Item("a"), Item("b")
	b.CallID, b.Session, b.Principal, b.Tool, b.Direction, b.Reasons = "", "", "", "", evidence.Definition, nil
	b.Claim, b.Outcome = call.Digest{}, call.Outcome{}
	update(t, s, insert(a, "sealed a"))
	update(t, s, insert(b, "sealed b"))
	checkItem(t, s, a, "sealed a")
	checkItem(t, s, b, "sealed b")
	checkSize(t, s, 16)
	a = decided(a, evidence.Released)
	update(t, s, decide(evidence.Held, a))
	checkItem(t, s, a, "sealed a")
	a.Delivery = evidence.Delivery{To: "c9", At: clock.Add(2 * time.Minute)}
	update(t, s, decide(evidence.Released, a))
	checkItem(t, s, a, "sealed a")
	a = decided(a, evidence.Purged)
	update(t, s, decide(evidence.Released, a))
	checkItem(t, s, a, "")
	checkSize(t, s, 8)

	none := Item("none")
	if err := s.Update(t.Context(), insert(Item("b"), "x")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("insert twice: got %v, want ErrConflict", err)
	}
	if err := s.Update(t.Context(), decide(evidence.Held, decided(a, evidence.Rejected))); !errors.Is(err, store.ErrConflict) {
		t.Errorf("decide from another state: got %v, want ErrConflict", err)
	}
	if err := s.Update(t.Context(), decide(evidence.Held, decided(none, evidence.Rejected))); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("decide on nothing: got %v, want ErrNotFound", err)
	}
	checkItem(t, s, a, "")
	if err := s.View(t.Context(), func(v store.View) error {
		_, ok, err := v.Evidence("none")
		_, there, perr := v.SealedEvidence("none")
		if ok || there {
			t.Error("there is evidence of nothing")
		}
		return errors.Join(err, perr)
	}); err != nil {
		t.Error(err)
	}
}

// What a transaction has done to evidence it sees itself, and when it fails nothing of it is left.
func testEvidenceAtomicity(t *testing.T, s store.Store) {
	no := errors.New("no")
	a := Item("a")
	update(t, s, insert(a, "sealed a"))
	steps := func(tx store.Tx) error {
		b := Item("b")
		for _, fn := range []func(store.Tx) error{
			insert(b, "sealed b"), decide(evidence.Held, decided(b, evidence.Rejected)),
			decide(evidence.Held, decided(a, evidence.Purged)), insert(Item("c"), "sealed c"), decide(evidence.Held, decided(Item("c"), evidence.Purged)),
		} {
			if err := fn(tx); err != nil {
				return err
			}
		}
		got, ok, err := tx.Evidence("b")
		if err != nil || !ok || got.State != evidence.Rejected {
			return fmt.Errorf("in its transaction b is %+v, %t, %w", got, ok, err)
		}
		if err := tx.InsertEvidence(b, nil); !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("insert twice in one transaction: got %v, want ErrConflict", err)
		}
		size, err := tx.EvidenceSize()
		if size != 8 {
			t.Errorf("in its transaction the size is %d, want 8", size)
		}
		return err
	}
	if err := s.Update(t.Context(), func(tx store.Tx) error { return errors.Join(steps(tx), no) }); err != nil && err.Error() != "no" {
		t.Fatal(err)
	}
	checkItem(t, s, a, "sealed a")
	checkSize(t, s, 8)
	if err := s.View(t.Context(), func(v store.View) error {
		items, err := v.ListEvidence(evidence.Filter{})
		if len(items) != 1 {
			t.Errorf("a failed transaction has left %+v", items)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	update(t, s, steps)
	checkItem(t, s, decided(a, evidence.Purged), "")
	checkItem(t, s, decided(Item("b"), evidence.Rejected), "sealed b")
	checkItem(t, s, decided(Item("c"), evidence.Purged), "")
	checkSize(t, s, 8)
}

func testEvidenceList(t *testing.T, s store.Store) {
	for n := range 10 {
		i := Item(evidence.ID(fmt.Sprint("e", n)))
		i.Expires = clock.Add(time.Duration(n) * time.Hour)
		if n%2 == 1 {
			i.Provider, i.CallID = "search", "c"
		}
		update(t, s, insert(i, "x"))
		switch n {
		case 2, 3:
			update(t, s, decide(evidence.Held, decided(i, evidence.Rejected)))
		case 1:
			update(t, s, decide(evidence.Held, decided(i, evidence.Purged)))
		}
	}
	for _, c := range []struct {
		name   string
		filter evidence.Filter
		want   string
	}{
		{"all", evidence.Filter{}, "[e9 e8 e7 e6 e5 e4 e3 e2 e1 e0]"},
		{"page", evidence.Filter{Limit: 3}, "[e9 e8 e7]"},
		{"next page", evidence.Filter{Limit: 3, Before: "e7"}, "[e6 e5 e4]"},
		{"before nothing", evidence.Filter{Before: "none"}, "[]"},
		{"call", evidence.Filter{CallID: "c"}, "[e9 e7 e5 e3 e1]"},
		{"provider", evidence.Filter{Provider: "files", Limit: 2}, "[e8 e6]"},
		{"state", evidence.Filter{States: []evidence.State{evidence.Rejected}}, "[e3 e2]"},
		{"states", evidence.Filter{States: []evidence.State{evidence.Rejected, evidence.Purged}, Before: "e3"}, "[e2 e1]"},
		{"expired", evidence.Filter{ExpiredAt: clock.Add(4 * time.Hour)}, "[e4 e3 e2 e0]"},
		{"expired, all", evidence.Filter{ExpiredAt: clock.Add(2 * time.Hour), Provider: "files", States: []evidence.State{evidence.Held}, Before: "e9", Limit: 5}, "[e0]"},
	} {
		if err := s.View(t.Context(), func(v store.View) error {
			items, err := v.ListEvidence(c.filter)
			ids := []evidence.ID{}
			for n := range items {
				ids = append(ids, items[n].ID)
				if !c.filter.Matches(&items[n]) {
					t.Errorf("%s: %s does not match", c.name, items[n].ID)
				}
			}
			if got := fmt.Sprint(ids); got != c.want {
				t.Errorf("%s: got %s, want %s", c.name, got, c.want)
			}
			return err
		}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A payload of the largest size comes back, and one commit holds it together with the ledger's records.
func testEvidenceLarge(t *testing.T, s store.Store) {
	sealed := string(bytes.Repeat([]byte{0, 1, 2, 0xff}, 2<<20))
	update(t, s, func(tx store.Tx) error {
		if err := OpenCall("c")(tx); err != nil {
			return err
		}
		return insert(Item("a"), sealed)(tx)
	})
	checkItem(t, s, Item("a"), sealed)
	if rs := records(t, s); len(rs) != 1 {
		t.Errorf("got %d records, want 1", len(rs))
	}
}

// Of several who decide at once, one does; and those who fail take nothing of others with them.
func testEvidenceConcurrent(t *testing.T, s store.Store) {
	const items, deciders = 8, 6
	var wg sync.WaitGroup
	won := make(chan evidence.ID, items*deciders)
	for n := range items {
		id := evidence.ID(fmt.Sprint("e", n))
		update(t, s, insert(Item(id), "x"))
		for d := range deciders {
			wg.Go(func() {
				to := []evidence.State{evidence.Released, evidence.Rejected, evidence.Purged}[d%3]
				err := s.Update(t.Context(), func(tx store.Tx) error {
					if err := tx.Append(Entry(ledger.KindCallRefused, call.ID(id))); err != nil {
						return err
					}
					return tx.DecideEvidence(evidence.Held, decided(Item(id), to))
				})
				switch {
				case err == nil:
					won <- id
				case !errors.Is(err, store.ErrConflict):
					t.Errorf("decide: %v", err)
				}
			})
		}
	}
	wg.Wait()
	close(won)
	count := map[evidence.ID]int{}
	for id := range won {
		count[id]++
	}
	for n := range items {
		if id := evidence.ID(fmt.Sprint("e", n)); count[id] != 1 {
			t.Errorf("%s was decided %d times", id, count[id])
		}
	}
	if rs := records(t, s); len(rs) != items {
		t.Errorf("got %d records, want %d", len(rs), items)
	}
}
