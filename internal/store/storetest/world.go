package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/world"
)

// RunWorld runs the suite of world.Tx and world.View, as [Run] does that of the ledger. reopen closes a store and opens what
// it has left behind.
func RunWorld(t *testing.T, open func(t *testing.T) store.Store, reopen func(t *testing.T, s store.Store) store.Store) {
	each(t, open, []testCase{
		{"Commits", testCommits},
		{"CommitsOfATransaction", testCommitsOfATransaction},
		{"FactsAreUndone", testFactsAreUndone},
		{"BadFacts", testBadFacts},
		{"ScopeHeads", testScopeHeads},
		{"FactsConcurrent", testFactsConcurrent},
	})
	t.Run("WorldIsAJournal", func(t *testing.T) { testWorldIsAJournal(t, open, reopen) })
}

// Event is a plain fact that a provider has sent.
func Event(id string, scopes ...call.Scope) world.Fact {
	return world.Fact{ID: "event:chat:" + id, Scopes: scopes, Provider: "chat", Source: "group 42", Kind: "message.received", Time: clock.Add(time.Second),
		Occurred: clock, Summary: "a message \u2026 " + id, Data: []byte(`{"n":12345678901234567890}`)}
}

// FactOf is what the gate commits of a call.
func FactOf(id call.ID) world.Fact {
	return world.Fact{ID: "call:" + string(id), Scopes: Intent(id).Publish, Provider: "files", Kind: "tool.succeeded", Time: clock, Summary: "a call", CallID: id}
}

func putFact(t *testing.T, s store.Store, f world.Fact) (at world.Place, known bool) {
	t.Helper()
	update(t, s, func(tx store.Tx) (err error) { at, known, err = tx.PutFact(f); return err })
	return at, known
}

// Commits reads the commits of a scope from 1, and proves that its sequences have no gap and that its head is the last.
func Commits(ctx context.Context, s interface {
	View(context.Context, func(store.View) error) error
}, scope call.Scope) (cs []call.Commit, err error) {
	err = s.View(ctx, func(v store.View) error {
		cs = nil
		if err := v.CommitsAfter(scope, 0, 0, func(c call.Commit) error {
			cs = append(cs, c)
			if c.Scope != scope || c.Seq != int64(len(cs)) {
				return fmt.Errorf("commit %d of %s is %s %d", len(cs), scope, c.Scope, c.Seq)
			}
			return nil
		}); err != nil {
			return err
		}
		head, err := v.ScopeHead(scope)
		if err == nil && head != int64(len(cs)) {
			err = fmt.Errorf("the head of %s is %d, and it has %d commits", scope, head, len(cs))
		}
		return err
	})
	return cs, err
}

func wantCommits(t *testing.T, s store.Store, scope call.Scope, want ...world.Fact) {
	t.Helper()
	got, err := Commits(t.Context(), s, scope)
	if err != nil {
		t.Fatal(err)
	}
	var commits []call.Commit
	for i := range want {
		commits = append(commits, want[i].In(scope, int64(i+1)))
	}
	if diff := cmp.Diff(commits, got); diff != "" {
		t.Errorf("commits of %s differ (-want +got):\n%s", scope, diff)
	}
}

func testCommits(t *testing.T, s store.Store) {
	a, both, b := Event("1", "qq:group:1"), Event("2", "qq:group:1", "qq:group:2"), FactOf("c1")
	b.Scopes = []call.Scope{"qq:group:2"}
	both.Data, both.Source, both.Occurred = nil, "", time.Time{}
	at, known := putFact(t, s, a)
	if known || !maps.Equal(at, world.Place{"qq:group:1": 1}) {
		t.Errorf("got %v, known %t", at, known)
	}
	if at, known := putFact(t, s, both); known || !maps.Equal(at, world.Place{"qq:group:1": 2, "qq:group:2": 1}) {
		t.Errorf("got %v, known %t", at, known)
	}
	putFact(t, s, b)
	wantCommits(t, s, "qq:group:1", a, both)
	wantCommits(t, s, "qq:group:2", both, b)
	wantCommits(t, s, "qq:group")
	wantCommits(t, s, "qq:group:1:x")
	// A repeat is where it was, whatever it says.
	again := Event("2", "qq:group:3")
	for range 2 {
		if at, known := putFact(t, s, again); !known || !maps.Equal(at, world.Place{"qq:group:1": 2, "qq:group:2": 1}) {
			t.Errorf("a repeat: got %v, known %t", at, known)
		}
	}
	wantCommits(t, s, "qq:group:3")
	var part []int64
	if err := s.View(t.Context(), func(v store.View) error {
		return v.CommitsAfter("qq:group:1", 0, 1, func(c call.Commit) error { part = append(part, c.Seq); return nil })
	}); err != nil || !slices.Equal(part, []int64{1}) {
		t.Errorf("one commit: got %v, %v", part, err)
	}
	no := errors.New("no")
	if err := s.View(t.Context(), func(v store.View) error {
		return v.CommitsAfter("qq:group:1", 0, 0, func(call.Commit) error { return no })
	}); !errors.Is(err, no) {
		t.Errorf("got %v, want the error of yield", err)
	}
}

// A transaction sees what is committed and what it has put itself, as one.
func testCommitsOfATransaction(t *testing.T, s store.Store) {
	putFact(t, s, Event("1", "s"))
	update(t, s, func(tx store.Tx) error {
		for n := 2; n < 5; n++ {
			at, known, err := tx.PutFact(Event(fmt.Sprint(n), "s", "other"))
			if err != nil || known || at["s"] != int64(n) || at["other"] != int64(n-1) {
				return fmt.Errorf("put %d: %v, %t, %w", n, at, known, err)
			}
			if at, known, err := tx.PutFact(Event(fmt.Sprint(n), "s")); err != nil || !known || at["s"] != int64(n) || at["other"] != int64(n-1) {
				return fmt.Errorf("put %d again: %v, %t, %w", n, at, known, err)
			}
			if head, err := tx.ScopeHead("s"); err != nil || head != int64(n) {
				return fmt.Errorf("head: %d, %w", head, err)
			}
		}
		for _, c := range []struct {
			after int64
			limit int
			want  []int64
		}{{0, 0, []int64{1, 2, 3, 4}}, {0, 1, []int64{1}}, {0, 2, []int64{1, 2}}, {1, 2, []int64{2, 3}}, {3, 9, []int64{4}}, {4, 0, nil}} {
			var got []int64
			if err := tx.CommitsAfter("s", c.after, c.limit, func(c call.Commit) error { got = append(got, c.Seq); return nil }); err != nil {
				return err
			}
			if !slices.Equal(got, c.want) {
				return fmt.Errorf("after %d, at most %d: got %v, want %v", c.after, c.limit, got, c.want)
			}
		}
		return nil
	})
	wantCommits(t, s, "s", Event("1", "s"), Event("2"), Event("3"), Event("4"))
}

// What a function that fails has put is nowhere, and its sequences and ids are free.
func testFactsAreUndone(t *testing.T, s store.Store) {
	no := errors.New("no")
	putFact(t, s, Event("1", "s"))
	if err := s.Update(t.Context(), func(tx store.Tx) error {
		for _, f := range []world.Fact{Event("2", "s", "other"), Event("3", "other"), FactOf("c1")} {
			if _, _, err := tx.PutFact(f); err != nil {
				return err
			}
		}
		return no
	}); !errors.Is(err, no) {
		t.Fatal(err)
	}
	wantCommits(t, s, "s", Event("1"))
	wantCommits(t, s, "other")
	if at, known := putFact(t, s, Event("2", "s", "other")); known || at["s"] != 2 || at["other"] != 1 {
		t.Errorf("got %v, known %t", at, known)
	}
	wantCommits(t, s, FactOf("c1").Scopes[0])
}

func testBadFacts(t *testing.T, s store.Store) {
	var kept store.Tx
	update(t, s, func(tx store.Tx) error {
		kept = tx
		for _, f := range []world.Fact{Event("1"), {Scopes: []call.Scope{"s"}}, Event("1", "s", "other", "s")} {
			if at, _, err := tx.PutFact(f); err == nil {
				t.Errorf("%+v was put at %v", f, at)
			}
		}
		return nil
	})
	if _, _, err := kept.PutFact(Event("1", "s")); err == nil {
		t.Error("a transaction that is over takes a fact")
	}
	if _, err := kept.ScopeHead("s"); err == nil {
		t.Error("a transaction that is over has a head")
	}
	if err := kept.CommitsAfter("s", 0, 0, func(call.Commit) error { return nil }); err == nil {
		t.Error("a transaction that is over has commits")
	}
	wantCommits(t, s, "s")
	wantCommits(t, s, "other")
}

func testScopeHeads(t *testing.T, s store.Store) {
	heads := func(after call.Scope, limit int) (got []string) {
		t.Helper()
		if err := s.View(t.Context(), func(v store.View) error {
			return v.ScopeHeads(after, limit, func(scope call.Scope, seq int64) error {
				got = append(got, fmt.Sprint(scope, " ", seq))
				return nil
			})
		}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := heads("", 0); len(got) != 0 {
		t.Errorf("an empty world has heads %v", got)
	}
	for n, scopes := range [][]call.Scope{{"b"}, {"a", "b:2"}, {"b", "b:10"}, {"b"}} {
		putFact(t, s, Event(fmt.Sprint(n), scopes...))
	}
	for _, c := range []struct {
		after call.Scope
		limit int
		want  []string
	}{{"", 0, []string{"a 1", "b 3", "b:10 1", "b:2 1"}}, {"", 2, []string{"a 1", "b 3"}}, {"b", 1, []string{"b:10 1"}}, {"b:2", 5, nil}} {
		if got := heads(c.after, c.limit); !slices.Equal(got, c.want) {
			t.Errorf("after %q, at most %d: got %v, want %v", c.after, c.limit, got, c.want)
		}
	}
	no := errors.New("no")
	if err := s.View(t.Context(), func(v store.View) error {
		return v.ScopeHeads("", 0, func(call.Scope, int64) error { return no })
	}); !errors.Is(err, no) {
		t.Errorf("got %v, want the error of yield", err)
	}
}

// Whoever puts facts at once into scopes that overlap, each scope is one row of sequences, and a fact is in all of its
// scopes or in none.
func testFactsConcurrent(t *testing.T, s store.Store) {
	const writers, each = 8, 25
	no := errors.New("no")
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				f := Event(fmt.Sprint(w, "-", i), "all", call.Scope(fmt.Sprint("w:", w%3)))
				bad := i%4 == 0
				err := s.Update(t.Context(), func(tx store.Tx) error {
					if _, _, err := tx.PutFact(f); err != nil || !bad {
						return err
					}
					return no
				})
				if bad != errors.Is(err, no) || !bad && err != nil {
					t.Errorf("%s: %v", f.ID, err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]int{}
	total := 0
	for _, scope := range []call.Scope{"all", "w:0", "w:1", "w:2"} {
		cs, err := Commits(t.Context(), s, scope)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cs {
			seen[c.ID]++
		}
		total += len(cs)
	}
	for id, n := range seen {
		if n != 2 {
			t.Errorf("%s stands in %d scopes, want 2", id, n)
		}
	}
	if want := 2 * writers * (each - (each+3)/4); total != want {
		t.Errorf("%d commits, want %d", total, want)
	}
}

// Invariant: whatever is put, awaited or not, in transactions of which some fail, with restarts between them, each scope has
// exactly the facts that were put into it by transactions that succeeded, in their order, with sequences from 1 without a
// gap; no sequence ever means another fact than it once did; and an id that is known puts nothing and answers with its
// first place.
func testWorldIsAJournal(t *testing.T, open func(t *testing.T) store.Store, reopen func(t *testing.T, s store.Store) store.Store) {
	s := open(t)
	t.Cleanup(func() { s.Close() })
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++ // one store for all runs: each has scopes and ids of its own
		no := errors.New("no")
		journal := map[call.Scope][]string{}
		places := map[string]world.Place{}
		scope := rapid.Map(rapid.IntRange(0, 3), func(n int) call.Scope { return call.Scope(fmt.Sprintf("r%d:%d", run, n)) })
		put := func(tx store.Tx, f world.Fact, places map[string]world.Place, journal map[call.Scope][]string) error {
			want, repeat := places[f.ID]
			if !repeat {
				want = world.Place{}
				for _, scope := range f.Scopes {
					journal[scope] = append(slices.Clip(journal[scope]), f.ID)
					want[scope] = int64(len(journal[scope]))
				}
				places[f.ID] = want
			}
			at, known, err := tx.PutFact(f)
			if err == nil && (known != repeat || !maps.Equal(at, want)) {
				err = fmt.Errorf("put %s: got %v, known %t; want %v, %t", f.ID, at, known, want, repeat)
			}
			return err
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			var facts []world.Fact
			for range rapid.IntRange(1, 4).Draw(rt, "facts") {
				id := fmt.Sprintf("%d-%d", run, rapid.IntRange(0, 15).Draw(rt, "id"))
				facts = append(facts, Event(id, rapid.SliceOfNDistinct(scope, 1, 3, rapid.ID).Draw(rt, "scopes")...))
			}
			step := rapid.SampledFrom([]string{"update", "update", "enqueue", "fail", "restart"}).Draw(rt, "step")
			if step == "restart" {
				s = reopen(t, s)
				continue
			}
			// What a transaction does to the model counts if it succeeds.
			p, j := maps.Clone(places), maps.Clone(journal)
			fn := func(tx store.Tx) error {
				p, j = maps.Clone(places), maps.Clone(journal)
				for _, f := range facts {
					if err := put(tx, f, p, j); err != nil {
						return err
					}
				}
				if step == "fail" {
					return no
				}
				return nil
			}
			if step == "enqueue" {
				if err := s.Enqueue(context.Background(), fn); err != nil {
					rt.Fatal(err)
				}
				if err := s.Update(context.Background(), func(store.Tx) error { return nil }); err != nil {
					rt.Fatal(err)
				}
			} else if err := s.Update(context.Background(), fn); err != nil && !errors.Is(err, no) || step == "fail" && err == nil {
				rt.Fatal(err)
			}
			if step != "fail" {
				places, journal = p, j
			}
		}
		for scope, want := range journal {
			cs, err := Commits(context.Background(), s, scope)
			if err != nil {
				rt.Fatal(err)
			}
			got := make([]string, len(cs))
			for i, c := range cs {
				got[i] = c.ID
				if places[c.ID][scope] != c.Seq {
					rt.Fatalf("%s is at %d of %s, was put at %d", c.ID, c.Seq, scope, places[c.ID][scope])
				}
			}
			if !slices.Equal(got, want) {
				rt.Fatalf("%s has %v, want %v", scope, got, want)
			}
		}
	})
}
