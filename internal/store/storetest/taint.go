package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/store"
)

// RunTaints runs the suite of policy.Tx and policy.View, as [Run] does that of the ledger. reopen closes a store and opens
// what it has left behind.
func RunTaints(t *testing.T, open func(t *testing.T) store.Store, reopen func(t *testing.T, s store.Store) store.Store) {
	each(t, open, []testCase{
		{"Taint", testTaint},
		{"TaintNeverShrinks", testTaintNeverShrinks},
		{"TaintAtomicity", testTaintAtomicity},
		{"TaintDropped", testTaintDropped},
		{"TaintConcurrent", testTaintConcurrent},
	})
	// a restart between two calls keeps the taint.
	t.Run("TaintSurvivesRestart", func(t *testing.T) {
		s := open(t)
		put(t, s, "alice", "s1", policy.Private)
		if err := s.Enqueue(t.Context(), func(tx store.Tx) error { return tx.PutTaint("alice", "s1", policy.Untrusted) }); err != nil {
			t.Fatal(err)
		}
		put(t, s, "bob", "", policy.Untrusted)
		s = reopen(t, s)
		t.Cleanup(func() { s.Close() })
		wantTaint(t, s, "alice", "s1", policy.Private|policy.Untrusted)
		wantTaint(t, s, "bob", "", policy.Untrusted)
		wantTaint(t, s, "alice", "", 0)
	})
}

func put(t *testing.T, s store.Store, principal, session string, add policy.Taint) {
	t.Helper()
	update(t, s, func(tx store.Tx) error { return tx.PutTaint(principal, session, add) })
}

// wantTaint compares what both kinds of transactions see.
func wantTaint(t *testing.T, s store.Store, principal, session string, want policy.Taint) {
	t.Helper()
	var inView, inTx policy.Taint
	if err := s.View(t.Context(), func(v store.View) (err error) {
		inView, err = v.Taint(principal, session)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	update(t, s, func(tx store.Tx) (err error) {
		inTx, err = tx.Taint(principal, session)
		return err
	})
	if inView != want || inTx != want {
		t.Errorf("taint of %s in session %q: %q in a view, %q in a transaction, want %q", principal, session, inView, inTx, want)
	}
}

func testTaint(t *testing.T, s store.Store) {
	wantTaint(t, s, "alice", "s1", 0)
	put(t, s, "alice", "s1", policy.Private)
	put(t, s, "alice", "s2", policy.Untrusted)
	put(t, s, "bob", "s1", 0)
	wantTaint(t, s, "alice", "s1", policy.Private)
	wantTaint(t, s, "alice", "s2", policy.Untrusted)
	wantTaint(t, s, "bob", "s1", 0)
	wantTaint(t, s, "alice", "", 0)
	for _, odd := range []string{"", " ", "s1\x00x", "é\U0001F511", "'; DROP TABLE taint; --"} {
		put(t, s, odd, odd, policy.Untrusted)
		wantTaint(t, s, odd, odd, policy.Untrusted)
	}
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutTaint("alice", "s1", 1<<7) }); err == nil {
		t.Error("a taint that does not exist was put")
	}
}

func testTaintNeverShrinks(t *testing.T, s store.Store) {
	put(t, s, "alice", "s1", policy.Private)
	put(t, s, "alice", "s1", 0)
	put(t, s, "alice", "s1", policy.Untrusted)
	put(t, s, "alice", "s1", policy.Private)
	wantTaint(t, s, "alice", "s1", policy.Private|policy.Untrusted)
}

func testTaintAtomicity(t *testing.T, s store.Store) {
	no := errors.New("no")
	put(t, s, "alice", "s1", policy.Private)
	err := s.Update(t.Context(), func(tx store.Tx) error {
		if err := tx.PutTaint("alice", "s1", policy.Untrusted); err != nil {
			return err
		}
		if err := tx.DropTaint("alice", "s1"); err != nil {
			return err
		}
		if err := tx.PutTaint("alice", "s2", policy.Untrusted); err != nil {
			return err
		}
		switch got, err := tx.Taint("alice", "s2"); {
		case err != nil:
			return err
		case got != policy.Untrusted:
			return fmt.Errorf("a transaction does not see what it has put: %q", got)
		}
		return no
	})
	if !errors.Is(err, no) {
		t.Fatalf("got %v, want the function's error", err)
	}
	wantTaint(t, s, "alice", "s1", policy.Private)
	wantTaint(t, s, "alice", "s2", 0)
	var kept store.Tx
	update(t, s, func(tx store.Tx) error { kept = tx; return nil })
	if err := kept.PutTaint("alice", "s2", policy.Private); err == nil {
		t.Error("a transaction that is over takes a taint")
	}
}

func testTaintDropped(t *testing.T, s store.Store) {
	put(t, s, "alice", "s1", policy.Private|policy.Untrusted)
	put(t, s, "alice", "s2", policy.Private)
	update(t, s, func(tx store.Tx) error {
		if err := tx.DropTaint("alice", "s1"); err != nil {
			return err
		}
		return tx.DropTaint("alice", "never seen")
	})
	wantTaint(t, s, "alice", "s1", 0)
	wantTaint(t, s, "alice", "s2", policy.Private)
	var listed []string
	if err := s.View(t.Context(), func(v store.View) error {
		return v.EachTaint(func(principal, session string, n policy.Taint) bool {
			listed = append(listed, principal+"/"+session+": "+n.String())
			return true
		})
	}); err != nil || !slices.Equal(listed, []string{"alice/s2: private"}) {
		t.Errorf("listed %q, %v", listed, err)
	}
	// Dropped and put again in one transaction: only what was put since is there.
	update(t, s, func(tx store.Tx) error {
		if err := tx.DropTaint("alice", "s2"); err != nil {
			return err
		}
		return tx.PutTaint("alice", "s2", policy.Untrusted)
	})
	wantTaint(t, s, "alice", "s2", policy.Untrusted)
	// Put and dropped in one transaction.
	update(t, s, func(tx store.Tx) error {
		if err := tx.PutTaint("alice", "s3", policy.Untrusted); err != nil {
			return err
		}
		return tx.DropTaint("alice", "s3")
	})
	wantTaint(t, s, "alice", "s3", 0)
}

// Whatever is put at once by functions of which some fail, exactly what succeeded is there.
func testTaintConcurrent(t *testing.T, s store.Store) {
	const sessions, writers = 20, 6
	no := errors.New("no")
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range sessions {
				add := policy.Private
				if w%2 == 0 {
					add = policy.Untrusted
				}
				bad := i%3 == 0 && add == policy.Private
				err := s.Update(t.Context(), func(tx store.Tx) error {
					if err := tx.PutTaint("alice", fmt.Sprint(i), add); err != nil {
						return err
					}
					if bad {
						return no
					}
					return nil
				})
				if bad != errors.Is(err, no) || !bad && err != nil {
					t.Errorf("session %d: got %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	for i := range sessions {
		want := policy.Private | policy.Untrusted
		if i%3 == 0 {
			want = policy.Untrusted
		}
		wantTaint(t, s, "alice", fmt.Sprint(i), want)
	}
}
