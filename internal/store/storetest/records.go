package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

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

func testRecordsOfKind(t *testing.T, s store.Store) {
	update(t, s, func(tx store.Tx) error {
		for _, e := range []ledger.Entry{Entry(ledger.KindAdmission, ""), Entry(ledger.KindOpened, ""), Entry(ledger.KindAdmission, "c"), Entry(ledger.KindAdmission, "")} {
			if err := tx.Append(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err := s.View(t.Context(), func(v store.View) error {
		var of []int64
		err := v.RecordsOfKind(ledger.KindAdmission, func(r ledger.Record) error { of = append(of, r.Seq); return nil })
		if fmt.Sprint(of) != "[1 4]" { // those of a call are found by it
			t.Errorf("records %v, want [1 4]", of)
		}
		return errors.Join(err, v.RecordsOfKind("none", func(ledger.Record) error { return errors.New("a record of nothing") }))
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
