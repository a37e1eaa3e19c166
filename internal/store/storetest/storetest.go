package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

// Run runs the suite. open returns an empty store, which the suite closes; it may use t.Cleanup for what is beneath.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, store.Store)
	}{
		{"Append", testAppend},
		{"AppendOddKeys", testAppendOddKeys},
		{"AppendBadBody", testAppendBadBody},
		{"BodyIsCopied", testBodyIsCopied},
		{"Intents", testIntents},
		{"IntentConflict", testIntentConflict},
		{"IntentAtomicity", testIntentAtomicity},
		{"UpdateErrorLeavesNothing", testUpdateErrorLeavesNothing},
		{"UpdatePanicIsAnError", testUpdatePanic},
		{"FailuresDoNotTouchOthers", testFailuresDoNotTouchOthers},
		{"TxIsOverAfterwards", testTxIsOver},
		{"EnqueueBeforeUpdate", testEnqueueBeforeUpdate},
		{"EnqueueIsCommitted", testEnqueueIsCommitted},
		{"ViewIsConsistent", testViewIsConsistent},
		{"ViewErrors", testViewErrors},
		{"Records", testRecords},
		{"EmptyLedger", testEmptyLedger},
		{"ContextEnded", testContextEnded},
		{"Watch", testWatch},
		{"CloseCommitsTheQueue", testClose},
		{"ConcurrentChain", testConcurrentChain},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			c.test(t, s)
		})
	}
}

var clock = time.Date(2026, 9, 1, 12, 0, 0, 123456789, time.UTC)

// Entry is a plain record of a call.
func Entry(kind ledger.Kind, id call.ID) ledger.Entry {
	return ledger.Entry{Time: clock, Kind: kind, CallID: id, Session: "s1", Principal: "alice", Body: []byte(`{"n":12345678901234567890}`)}
}

// Intent is a plain intent of a call.
func Intent(id call.ID) ledger.Intent {
	return ledger.Intent{CallID: id, Started: clock, Principal: "alice", Session: "s1", Tool: "aur.mcp.files.read"}
}

// OpenCall writes what the gate writes before a call is sent.
func OpenCall(id call.ID) func(store.Tx) error {
	return func(tx store.Tx) error {
		if err := tx.Append(Entry(ledger.KindCallIntent, id)); err != nil {
			return err
		}
		return tx.OpenIntent(Intent(id))
	}
}

// CloseCall writes what the gate writes afterwards.
func CloseCall(id call.ID) func(store.Tx) error {
	return func(tx store.Tx) error {
		if err := tx.Append(Entry(ledger.KindCallOutcome, id)); err != nil {
			return err
		}
		return tx.CloseIntent(id)
	}
}

func update(t *testing.T, s store.Store, fn func(store.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), fn); err != nil {
		t.Fatalf("update: %v", err)
	}
}

func records(t *testing.T, s store.Store) []ledger.Record {
	t.Helper()
	var rs []ledger.Record
	if err := s.View(t.Context(), func(v store.View) error {
		rs = nil
		return v.Records(0, 0, func(r ledger.Record) error {
			rs = append(rs, r)
			return nil
		})
	}); err != nil {
		t.Fatalf("view: %v", err)
	}
	return rs
}

func intents(t *testing.T, s store.Store) []ledger.Intent {
	t.Helper()
	var is []ledger.Intent
	update(t, s, func(tx store.Tx) (err error) {
		is, err = tx.OpenIntents()
		return err
	})
	return is
}

// checkChain proves that the records follow each other without a gap and hash as they should.
func checkChain(t *testing.T, rs []ledger.Record) {
	t.Helper()
	w := ledger.NewWalker(ledger.Hash{}, ledger.Edge{})
	for i := range rs {
		if err := w.Record(&rs[i]); err != nil {
			t.Fatal(err)
		}
	}
}

func testAppend(t *testing.T, s store.Store) {
	update(t, s, func(tx store.Tx) error {
		for i := range 3 {
			e := Entry(ledger.KindCallRefused, call.ID(fmt.Sprint("c", i)))
			e.Body = []byte(`{ "z": 1.50, "a": [9007199254740993, "é"] }`)
			if err := tx.Append(e); err != nil {
				return err
			}
		}
		return tx.Append(ledger.Entry{Time: clock, Kind: ledger.KindOpened})
	})
	rs := records(t, s)
	if len(rs) != 4 {
		t.Fatalf("got %d records, want 4", len(rs))
	}
	checkChain(t, rs)
	for i, r := range rs[:3] {
		if want := call.ID(fmt.Sprint("c", i)); r.CallID != want || r.Session != "s1" || r.Principal != "alice" || !r.Time.Equal(clock) || r.Kind != ledger.KindCallRefused {
			t.Errorf("record %d: got %+v", i, r)
		}
		if got, want := string(r.Body), `{"a":[9007199254740993,"é"],"z":1.5}`; got != want {
			t.Errorf("record %d: body %s, want %s", i, got, want)
		}
	}
	if got := string(rs[3].Body); got != "{}" {
		t.Errorf("nil body is stored as %s, want {}", got)
	}
}

// F-52: what a peer can put into a join key must not keep a call out of the ledger.
func testAppendOddKeys(t *testing.T, s store.Store) {
	e := Entry(ledger.KindProtocolRefused, "")
	e.Session = "a\xff\r\n\x00\x1b[31m"
	e.Principal = "\u202egnp.exe\u2028\U0001F600"
	update(t, s, func(tx store.Tx) error { return tx.Append(e) })
	rs := records(t, s)
	checkChain(t, rs)
	if rs[0].Session != "a\uFFFD\r\n\x00\x1b[31m" || rs[0].Principal != e.Principal {
		t.Errorf("got session %q, principal %q", rs[0].Session, rs[0].Principal)
	}
}

func testAppendBadBody(t *testing.T, s store.Store) {
	for _, body := range []string{`[1]`, `"x"`, `{`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}", `{} {}`, ` `} {
		e := Entry(ledger.KindCallRefused, "c")
		e.Body = []byte(body)
		err := s.Update(t.Context(), func(tx store.Tx) error {
			_ = tx.Append(e) // ignored: the transaction must not commit without its record all the same
			return nil
		})
		if !errors.Is(err, ledger.ErrBody) {
			t.Errorf("body %q: got error %v, want ErrBody", body, err)
		}
	}
	if rs := records(t, s); len(rs) != 0 {
		t.Errorf("got %d records, want none", len(rs))
	}
}

func testBodyIsCopied(t *testing.T, s store.Store) {
	body := []byte(`{"a":1}`)
	update(t, s, func(tx store.Tx) error {
		copy(body, `{"a":1}`)
		e := Entry(ledger.KindCallRefused, "c")
		e.Body = body
		err := tx.Append(e)
		copy(body, `XXXXXXX`)
		return err
	})
	checkChain(t, records(t, s))
}

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
	if got := is[1]; !got.Started.Equal(want.Started) {
		t.Errorf("started %s, want %s", got.Started, want.Started)
	} else if got.Started = want.Started; got != want {
		t.Errorf("got %+v, want %+v", got, want)
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

func testViewIsConsistent(t *testing.T, s store.Store) {
	update(t, s, OpenCall("a"))
	if err := s.View(t.Context(), func(v store.View) error {
		if err := s.Update(t.Context(), OpenCall("b")); err != nil {
			return err
		}
		n := 0
		if err := v.Records(0, 0, func(ledger.Record) error { n++; return nil }); err != nil {
			return err
		}
		seq, _, err := v.Head()
		if n != 1 || seq != 1 {
			t.Errorf("a view that began with one record shows %d, head %d", n, seq)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if rs := records(t, s); len(rs) != 2 {
		t.Errorf("a later view shows %d records, want 2", len(rs))
	}
}

func testViewErrors(t *testing.T, s store.Store) {
	update(t, s, OpenCall("a"))
	no := errors.New("no")
	if err := s.View(t.Context(), func(store.View) error { return no }); err != no { //nolint:errorlint // as it is
		t.Errorf("got %v, want the function's error as it is", err)
	}
	if err := s.View(t.Context(), func(v store.View) error {
		return v.Records(0, 0, func(ledger.Record) error { return no })
	}); !errors.Is(err, no) {
		t.Errorf("got %v, want the yield's error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.View(ctx, func(store.View) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func testRecords(t *testing.T, s store.Store) {
	for i := range 10 {
		update(t, s, func(tx store.Tx) error { return tx.Append(Entry(ledger.KindCallIntent, call.ID(fmt.Sprint("c", i%3)))) })
	}
	all := records(t, s)
	if err := s.View(t.Context(), func(v store.View) error {
		for _, c := range []struct {
			after       int64
			limit       int
			first, last int64
		}{{0, 3, 1, 3}, {4, 2, 5, 6}, {8, 0, 9, 10}, {8, 5, 9, 10}, {10, 0, 0, 0}, {99, 1, 0, 0}} {
			var first, last int64
			if err := v.Records(c.after, c.limit, func(r ledger.Record) error {
				if first == 0 {
					first = r.Seq
				}
				last = r.Seq
				return nil
			}); err != nil {
				return err
			}
			if first != c.first || last != c.last {
				t.Errorf("records after %d, at most %d: %d to %d, want %d to %d", c.after, c.limit, first, last, c.first, c.last)
			}
		}
		var of []int64
		if err := v.RecordsOfCall("c1", func(r ledger.Record) error { of = append(of, r.Seq); return nil }); err != nil {
			return err
		}
		if fmt.Sprint(of) != "[2 5 8]" {
			t.Errorf("records of c1: %v, want [2 5 8]", of)
		}
		seq, hash, err := v.Head()
		if seq != 10 || hash != all[9].Hash {
			t.Errorf("head is %d %s, want 10 %s", seq, hash, all[9].Hash)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func testEmptyLedger(t *testing.T, s store.Store) {
	if err := s.View(t.Context(), func(v store.View) error {
		seq, hash, err := v.Head()
		if seq != 0 || hash != (ledger.Hash{}) {
			t.Errorf("head of an empty ledger: %d %s", seq, hash)
		}
		return errors.Join(err,
			v.RecordsOfCall("c", func(ledger.Record) error { return errors.New("a record of nothing") }),
			v.RecordsOfCall("", func(ledger.Record) error { return errors.New("a record of nothing") }),
			v.Checkpoints(func(int64, []byte) error { return errors.New("a checkpoint of nothing") }))
	}); err != nil {
		t.Error(err)
	}
	if err := s.Healthy(); err != nil {
		t.Errorf("healthy: %v", err)
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

func testWatch(t *testing.T, s store.Store) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	a, b := s.Watch(ctx), s.Watch(ctx)
	for range 5 {
		update(t, s, func(tx store.Tx) error { return tx.Append(Entry(ledger.KindCallRefused, "c")) })
	}
	for _, ch := range []<-chan struct{}{a, b} {
		select {
		case <-ch:
		case <-ctx.Done():
			t.Fatal("no signal after a commit")
		}
	}
	if cap(a) != 1 {
		t.Errorf("capacity is %d, want 1", cap(a))
	}
	short, end := context.WithCancel(ctx)
	c := s.Watch(short)
	end()
	update(t, s, func(tx store.Tx) error { return tx.Append(Entry(ledger.KindCallRefused, "c")) })
	for range c { // ends: the channel is closed, at the latest after one signal
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
