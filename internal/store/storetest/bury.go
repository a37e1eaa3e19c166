package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

// R8.6: the content of records goes, with a record that vouches for it, both or neither; everything else of them stays.
func testBury(t *testing.T, s store.Store) {
	for n := range 4 {
		update(t, s, OpenCall(call.ID(fmt.Sprint("c", n))))
	}
	before := records(t, s)
	burial := ledger.Burial{By: "op", At: clock, Before: clock}
	no := errors.New("no")
	for name, c := range map[string]struct {
		fn   func(store.Tx) error
		want error
	}{
		"undone":    {func(tx store.Tx) error { return errors.Join(tx.Bury([]int64{1, 3}, burial), no) }, no},
		"not there": {func(tx store.Tx) error { return tx.Bury([]int64{3, 9}, burial) }, store.ErrNotFound},
		"twice": {func(tx store.Tx) error {
			if err := tx.Bury([]int64{1, 3}, burial); err != nil {
				return err
			}
			return tx.Bury([]int64{3, 4}, burial)
		}, store.ErrConflict},
	} {
		if err := s.Update(t.Context(), c.fn); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	for _, seqs := range [][]int64{nil, {3, 1}, {1, 1}} {
		if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Bury(seqs, burial) }); err == nil {
			t.Errorf("buried %v", seqs)
		}
	}
	if got := records(t, s); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Fatalf("what was undone has left %v, want %v", got, before)
	}
	update(t, s, func(tx store.Tx) error {
		if err := tx.Bury([]int64{1, 3}, burial); err != nil {
			return err
		}
		return tx.Append(Entry(ledger.KindClosed, ""))
	})
	update(t, s, func(tx store.Tx) error { return tx.Bury([]int64{2, 6}, burial) })
	got := records(t, s)
	checkChain(t, got)
	pruned := map[int64]int64{1: 5, 3: 5, 2: 7, 6: 7}
	for i, r := range got {
		want := pruned[r.Seq]
		switch {
		case r.Pruned != want:
			t.Errorf("record %d was pruned by %d, want %d", r.Seq, r.Pruned, want)
		case want > 0 && (len(r.Body) > 0 || r.Session != "" || r.Principal != "" || r.Kind == "" || r.Time.IsZero()):
			t.Errorf("tombstone %d: %+v", r.Seq, r)
		case i < len(before) && (r.Hash != before[i].Hash || r.Prev != before[i].Prev || r.CallID != before[i].CallID || r.Kind != before[i].Kind || !r.Time.Equal(before[i].Time)):
			t.Errorf("record %d is %+v, was %+v", r.Seq, r, before[i])
		case (r.Seq == 5 || r.Seq == 7) != (r.Kind == ledger.KindPruned):
			t.Errorf("record %d is of kind %s", r.Seq, r.Kind)
		}
	}
	if len(got) != 7 {
		t.Errorf("got %d records, want 7", len(got))
	}
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Bury([]int64{1}, burial) }); !errors.Is(err, store.ErrConflict) {
		t.Errorf("buried again: %v", err)
	}
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Bury([]int64{5}, burial) }); err == nil {
		t.Error("what vouches for others is buried")
	}
	var of []int64
	if err := s.View(t.Context(), func(v store.View) error {
		return v.RecordsOfCall("c0", func(r ledger.Record) error { of = append(of, r.Seq); return nil })
	}); err != nil || fmt.Sprint(of) != "[1]" {
		t.Errorf("the tombstone of a call: %v, %v", of, err)
	}
	if open := intents(t, s); len(open) != 4 {
		t.Errorf("%d intents are open, want 4", len(open))
	}
}
