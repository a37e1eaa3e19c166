package sqlstore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/storetest"
)

func TestWorld(t *testing.T) {
	storetest.RunWorld(t,
		func(t *testing.T) store.Store { return openTest(t, Options{Dir: t.TempDir()}) },
		func(t *testing.T, s store.Store) store.Store {
			dir := s.(*Store).o.Dir
			closeTest(t, s.(*Store))
			return openTest(t, Options{Dir: dir})
		})
}

// F-04: sequences that a group had given when the disk was full are given anew: no gap stays, and what was only enqueued is
// there when the store has recovered.
func TestF04_WorldAfterAFullDisk(t *testing.T) {
	s, before := openHooked(t, t.TempDir(), never)
	put := func(n int) func(store.Tx) error {
		return func(tx store.Tx) error {
			_, _, err := tx.PutFact(storetest.Event(fmt.Sprint(n), "all", call.Scope(fmt.Sprint("n:", n%2))))
			return err
		}
	}
	for n := range 3 {
		if err := s.Update(t.Context(), put(n)); err != nil {
			t.Fatal(err)
		}
	}
	makeRoom := fillUp(t, before, s)
	n, enqueued := 3, 3
	for refused := false; !refused; n++ {
		if n > 10000 {
			t.Fatal("the disk is not full")
		}
		if n%2 == 0 {
			if err := s.Enqueue(t.Context(), put(n)); errors.Is(err, store.ErrUnavailable) {
				refused = true
			} else if err != nil {
				t.Fatal(err)
			} else {
				enqueued++
			}
			continue
		}
		err := s.Update(t.Context(), put(n))
		if err == nil {
			enqueued++ // there was room in a page
		} else if refused = errors.Is(err, store.ErrUnavailable); !refused {
			t.Fatal(err)
		}
	}
	makeRoom()
	waitHealthy(t, s)
	if err := s.Update(t.Context(), put(n)); err != nil {
		t.Fatal(err)
	}
	commits, err := storetest.Commits(t.Context(), s, "all")
	if err != nil || len(commits) != enqueued+1 {
		t.Errorf("%d commits, %v, want the %d that were taken and one more", len(commits), err, enqueued)
	}
	for _, scope := range []call.Scope{"n:0", "n:1"} {
		if _, err := storetest.Commits(t.Context(), s, scope); err != nil {
			t.Error(err)
		}
	}
}
