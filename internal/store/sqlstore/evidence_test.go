package sqlstore

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/storetest"
)

// What is known of evidence in memory is found again at the next start.
func TestEvidenceSurvivesRestart(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	for n := range 3 {
		if err := s.Update(t.Context(), func(tx store.Tx) error {
			return tx.InsertEvidence(storetest.Item(evidence.ID(fmt.Sprint("e", n))), make([]byte, 10))
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Update(t.Context(), func(tx store.Tx) error {
		_, err := evidence.Purge(tx, "e1", evidence.Decision{By: "bob", At: time.Unix(1, 0)})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	closeTest(t, s)
	s = openTest(t, Options{Dir: dir})
	if err := s.Update(t.Context(), func(tx store.Tx) error {
		size, err := tx.EvidenceSize()
		if size != 20 {
			t.Errorf("%d bytes, want 20", size)
		}
		return errors.Join(err, tx.InsertEvidence(storetest.Item("e3"), nil))
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.View(t.Context(), func(v store.View) error {
		items, err := v.ListEvidence(evidence.Filter{})
		if len(items) != 4 || items[0].ID != "e3" || items[2].Purge.By != "bob" {
			t.Errorf("found %+v", items)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// Whatever a group does and undoes, its overlay is what it was before what failed: the size is the sum of what is kept.
func TestEvidenceUndo(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir()})
	no := errors.New("no")
	rapid.Check(t, func(rt *rapid.T) {
		fail := rapid.Bool().Draw(rt, "fail")
		var before, after int64
		want := map[evidence.ID]evidence.State{}
		look := func(tx store.Tx) error {
			clear(want)
			for n := range 6 {
				id := evidence.ID(fmt.Sprint("u", n))
				if i, ok, err := tx.Evidence(id); err != nil {
					return err
				} else if ok {
					want[id] = i.State
				}
			}
			var err error
			if before, err = tx.EvidenceSize(); err != nil {
				return err
			}
			share, err := tx.EvidenceShare(storetest.Item("").Provider)
			if share.All != before {
				return fmt.Errorf("the only provider has %+v of %d", share, before)
			}
			return err
		}
		if err := s.Update(t.Context(), look); err != nil {
			rt.Fatal(err)
		}
		initial := maps.Clone(want)
		steps := rapid.SliceOfN(rapid.IntRange(0, 23), 1, 6).Draw(rt, "steps")
		err := s.Update(t.Context(), func(tx store.Tx) error {
			for _, n := range steps {
				id, err := evidence.ID(fmt.Sprint("u", n%6)), error(nil)
				d := evidence.Decision{By: "bob", At: time.Unix(1, 0)}
				switch n / 6 {
				case 0:
					err = tx.InsertEvidence(storetest.Item(id), make([]byte, 5+n))
				case 1:
					_, err = evidence.Reject(tx, id, d)
				case 2:
					_, err = evidence.Release(tx, id, d)
				case 3:
					_, err = evidence.Purge(tx, id, d)
				}
				_ = err // each step does all or nothing; the rest goes on
			}
			if err := look(tx); err != nil {
				return err
			}
			after = before
			if fail {
				return no
			}
			return nil
		})
		if fail != errors.Is(err, no) || !fail && err != nil {
			rt.Fatalf("update: %v", err)
		}
		expected := maps.Clone(want)
		if fail {
			expected = initial
		}
		var kept int64
		if err := s.Update(t.Context(), look); err != nil {
			rt.Fatal(err)
		}
		if err := s.readers.QueryRow(`SELECT coalesce(sum(length(sealed)), 0) FROM evidence_payload`).Scan(&kept); err != nil {
			rt.Fatal(err)
		}
		if kept != before || !fail && before != after {
			rt.Fatalf("%d bytes are kept, %d are known, %d were known in the transaction", kept, before, after)
		}
		if !maps.Equal(expected, want) {
			rt.Fatalf("failed: %t: it is %v, and should be %v", fail, want, expected)
		}
		if err := s.View(t.Context(), func(v store.View) error {
			for id, state := range want {
				if i, ok, err := v.Evidence(id); err != nil || !ok || i.State != state {
					rt.Fatalf("%s is %s, %t, %v, want %s", id, i.State, ok, err, state)
				}
			}
			return nil
		}); err != nil {
			rt.Fatal(err)
		}
	})
}
