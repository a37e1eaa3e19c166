package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

func testIntents(t *testing.T, s store.Store) {
	for i := range 3 {
		update(t, s, OpenCall(call.ID(fmt.Sprint("c", i))))
	}
	update(t, s, CloseCall("c1"))
	is := intents(t, s)
	if len(is) != 2 || is[0].CallID != "c0" || is[1].CallID != "c2" {
		t.Fatalf("got %+v, want c0 and c2, oldest first", is)
	}
	want := Intent("c2")
	want.Seq = 3
	if diff := cmp.Diff(want, is[1]); diff != "" {
		t.Errorf("got an intent that differs (-want +got):\n%s", diff)
	}
	// The intent may be opened before its record is appended.
	update(t, s, func(tx store.Tx) error {
		if err := tx.OpenIntent(Intent("c3")); err != nil {
			return err
		}
		return tx.Append(Entry(ledger.KindCallIntent, "c3"))
	})
	if is := intents(t, s); is[2].Seq != 5 {
		t.Errorf("got sequence %d, want 5", is[2].Seq)
	}
	update(t, s, CloseCall("c0"))
	update(t, s, OpenCall("c0")) // an id that was closed may be opened: that it is not is the gate's business
}

func testIntentConflict(t *testing.T, s store.Store) {
	update(t, s, OpenCall("c"))
	if err := s.Update(t.Context(), OpenCall("c")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("open twice: got %v, want ErrConflict", err)
	}
	update(t, s, CloseCall("c"))
	if err := s.Update(t.Context(), CloseCall("c")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("close twice: got %v, want ErrNotFound", err)
	}
	if rs := records(t, s); len(rs) != 2 {
		t.Errorf("got %d records, want 2: refused transactions leave none", len(rs))
	}
	// Within one transaction, and with the error swallowed.
	update(t, s, func(tx store.Tx) error {
		if err := OpenCall("d")(tx); err != nil {
			return err
		}
		if err := tx.OpenIntent(Intent("d")); !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("open twice in one transaction: got %v, want ErrConflict", err)
		}
		if err := CloseCall("d")(tx); err != nil {
			return err
		}
		if err := tx.CloseIntent("d"); !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("close twice in one transaction: got %v, want ErrNotFound", err)
		}
		return nil
	})
	if is := intents(t, s); len(is) != 0 {
		t.Errorf("got open intents %+v, want none", is)
	}
}

func testIntentAtomicity(t *testing.T, s store.Store) {
	no := errors.New("no")
	update(t, s, OpenCall("a"))
	err := s.Update(t.Context(), func(tx store.Tx) error {
		for _, fn := range []func(store.Tx) error{CloseCall("a"), OpenCall("b"), CloseCall("b"), OpenCall("a"), CloseCall("a"), OpenCall("c")} {
			if err := fn(tx); err != nil {
				return err
			}
		}
		return no
	})
	if !errors.Is(err, no) {
		t.Fatalf("got %v, want the function's error", err)
	}
	if is := intents(t, s); len(is) != 1 || is[0].CallID != "a" || is[0].Seq != 1 {
		t.Errorf("got %+v, want only a", is)
	}
}

func testUpdateErrorLeavesNothing(t *testing.T, s store.Store) {
	no := errors.New("no")
	if err := s.Update(t.Context(), func(tx store.Tx) error {
		if err := OpenCall("c")(tx); err != nil {
			return err
		}
		return no
	}); err != no { //nolint:errorlint // as it is, not wrapped
		t.Errorf("got %v, want the function's error as it is", err)
	}
	update(t, s, OpenCall("d"))
	rs := records(t, s)
	checkChain(t, rs)
	if len(rs) != 1 || rs[0].CallID != "d" {
		t.Errorf("got %+v, want only d", rs)
	}
}

func testUpdatePanic(t *testing.T, s store.Store) {
	if err := s.Update(t.Context(), func(tx store.Tx) error {
		_ = OpenCall("c")(tx)
		panic("at the disco")
	}); err == nil {
		t.Error("got no error from a function that panics")
	}
	update(t, s, OpenCall("c"))
	if rs := records(t, s); len(rs) != 1 {
		t.Errorf("got %d records, want 1", len(rs))
	}
}

// Functions that share a commit share no fate: exactly those that succeed are in the ledger, once each.
func testFailuresDoNotTouchOthers(t *testing.T, s store.Store) {
	const writers, each = 16, 20
	no := errors.New("no")
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				id := call.ID(fmt.Sprintf("c%d-%d", w, i))
				bad := (w+i)%3 == 0
				err := s.Update(t.Context(), func(tx store.Tx) error {
					if err := OpenCall(id)(tx); err != nil {
						return err
					}
					if bad {
						return no
					}
					return nil
				})
				if bad != errors.Is(err, no) || !bad && err != nil {
					t.Errorf("%s: got %v", id, err)
				}
			}
		})
	}
	wg.Wait()
	rs := records(t, s)
	checkChain(t, rs)
	seen := map[call.ID]bool{}
	for _, r := range rs {
		if seen[r.CallID] {
			t.Errorf("%s is there twice", r.CallID)
		}
		seen[r.CallID] = true
	}
	for w := range writers {
		for i := range each {
			id := call.ID(fmt.Sprintf("c%d-%d", w, i))
			if want := (w+i)%3 != 0; seen[id] != want {
				t.Errorf("%s in the ledger: %t, want %t", id, seen[id], want)
			}
		}
	}
	if is := intents(t, s); len(is) != len(rs) {
		t.Errorf("got %d open intents, want %d", len(is), len(rs))
	}
}

func testTxIsOver(t *testing.T, s store.Store) {
	var kept store.Tx
	update(t, s, func(tx store.Tx) error {
		kept = tx
		return nil
	})
	if err := kept.Append(Entry(ledger.KindCallRefused, "c")); err == nil {
		t.Error("a transaction that is over takes a record")
	}
	if rs := records(t, s); len(rs) != 0 {
		t.Errorf("got %d records, want none", len(rs))
	}
}

// What one caller enqueues and updates is committed in the order of the calls.
func testEnqueueBeforeUpdate(t *testing.T, s store.Store) {
	for i := range 50 {
		id := call.ID(fmt.Sprint("c", i))
		if err := s.Enqueue(t.Context(), OpenCall(id)); err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			update(t, s, CloseCall(id)) // fails if the intent is not there
		} else if err := s.Enqueue(t.Context(), CloseCall(id)); err != nil {
			t.Fatal(err)
		}
	}
	update(t, s, func(store.Tx) error { return nil })
	rs := records(t, s)
	checkChain(t, rs)
	if len(rs) != 100 {
		t.Fatalf("got %d records, want 100: an update comes after all that was enqueued before it", len(rs))
	}
	for i, r := range rs {
		if want := call.ID(fmt.Sprint("c", i/2)); r.CallID != want {
			t.Fatalf("record %d is of %s, want %s", i+1, r.CallID, want)
		}
	}
}

func testEnqueueIsCommitted(t *testing.T, s store.Store) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	changed := s.Watch(ctx)
	if err := s.Enqueue(ctx, OpenCall("c")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	case <-ctx.Done():
		t.Fatal("what was enqueued was not committed")
	}
	if rs := records(t, s); len(rs) != 1 {
		t.Errorf("got %d records, want 1", len(rs))
	}
}

func testContextEnded(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fn := func(tx store.Tx) error { return tx.Append(Entry(ledger.KindCallRefused, "c")) }
	if err := s.Update(ctx, fn); !errors.Is(err, context.Canceled) {
		t.Errorf("update: got %v, want context.Canceled", err)
	}
	if err := s.Enqueue(ctx, fn); !errors.Is(err, context.Canceled) {
		t.Errorf("enqueue: got %v, want context.Canceled", err)
	}
}

func testClose(t *testing.T, s store.Store) {
	var ran atomic.Int64
	for i := range 100 {
		if err := s.Enqueue(t.Context(), func(tx store.Tx) error {
			ran.Add(1)
			return tx.Append(Entry(ledger.KindCallRefused, call.ID(fmt.Sprint("c", i))))
		}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	if n := ran.Load(); n < 100 {
		t.Errorf("%d of 100 enqueued functions ran before the store was closed", n)
	}
	fn := func(tx store.Tx) error { return tx.Append(Entry(ledger.KindCallRefused, "late")) }
	if err := s.Update(t.Context(), fn); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("update after close: got %v, want ErrUnavailable", err)
	}
	if err := s.Enqueue(t.Context(), fn); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("enqueue after close: got %v, want ErrUnavailable", err)
	}
	if err := s.View(t.Context(), func(store.View) error { return nil }); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("view after close: got %v, want ErrUnavailable", err)
	}
	if err := s.Healthy(); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("healthy after close: got %v, want ErrUnavailable", err)
	}
}

// Whatever is written at once, the ledger is one chain without gaps, and each call's records stand in their order.
func testConcurrentChain(t *testing.T, s store.Store) {
	const writers, each = 8, 40
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				id := call.ID(fmt.Sprintf("c%d-%d", w, i))
				first, second := s.Update, s.Enqueue
				if i%2 == 0 {
					first, second = second, first
				}
				if err := first(t.Context(), OpenCall(id)); err != nil {
					t.Errorf("open %s: %v", id, err)
				}
				if err := second(t.Context(), CloseCall(id)); err != nil {
					t.Errorf("close %s: %v", id, err)
				}
			}
		})
	}
	wg.Wait()
	if is := intents(t, s); len(is) != 0 {
		t.Errorf("got %d open intents, want none", len(is))
	}
	rs := records(t, s)
	checkChain(t, rs)
	if len(rs) != 2*writers*each {
		t.Errorf("got %d records, want %d", len(rs), 2*writers*each)
	}
	open := map[call.ID]bool{}
	for _, r := range rs {
		if (r.Kind == ledger.KindCallOutcome) != open[r.CallID] {
			t.Fatalf("record %d of %s is a %s", r.Seq, r.CallID, r.Kind)
		}
		open[r.CallID] = true
	}
}
