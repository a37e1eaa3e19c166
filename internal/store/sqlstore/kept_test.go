package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/admission"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/storetest"
)

func fillKept(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Update(t.Context(), func(tx store.Tx) error {
		return errors.Join(tx.PutApproval(storetest.Approval("a", 1)), tx.PutApproval(storetest.Approval("b", 2)), tx.PutPin(storetest.Pin("files", "a", 1)),
			tx.PutQuarantine(admission.Quarantine{Provider: "files", Reason: admission.SchemaDrift, Since: time.Unix(1, 0)}))
	}); err != nil {
		t.Fatal(err)
	}
}

// R7.4, R6.6, F-06: approvals, pins and quarantine outlive a restart, in every field and with their index.
func TestR7_4_KeptRowsAreDurable(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	fillKept(t, s)
	closeTest(t, s)
	s = openTest(t, Options{Dir: dir})
	if err := s.Update(t.Context(), func(tx store.Tx) error {
		want := storetest.Approval("a", 1)
		if r, ok, err := tx.Approval("a"); err != nil || !ok || !cmp.Equal(r, want) {
			t.Error(cmp.Diff(want, r), ok, err)
		}
		if rs, err := tx.ApprovalsUnder(call.Digest{2, 1}); err != nil || len(rs) != 1 || rs[0].ID != "b" {
			t.Error(rs, err)
		}
		if ps, err := tx.Pins("files"); err != nil || !cmp.Equal(ps, []admission.Pin{storetest.Pin("files", "a", 1)}) {
			t.Error(ps, err)
		}
		if qs, err := tx.Quarantines(); err != nil || len(qs) != 1 || qs[0].Reason != admission.SchemaDrift {
			t.Error(qs, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// F-09: while the process lives a row keeps the monotonic reading of its times.
func TestF09_MonotonicReadingIsKept(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir()})
	r := storetest.Approval("a", 1)
	r.Created = time.Now()
	for range 2 { // in the transaction, and in a later one
		if err := s.Update(t.Context(), func(tx store.Tx) error {
			if _, ok, _ := tx.Approval("a"); !ok {
				if err := tx.PutApproval(r); err != nil {
					return err
				}
			}
			if got, _, _ := tx.Approval("a"); got.Created != r.Created { //nolint:staticcheck // the reading, not the instant
				t.Errorf("got %v, want %v", got.Created, r.Created)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// F-06: a row that is not what the store writes is not made the best of: a grant could be read out of it.
func TestF06_DamagedKeptRows(t *testing.T) {
	for _, damage := range []string{
		`UPDATE approval SET state = 'granted'`, `UPDATE approval SET call_digest = x'00'`, `UPDATE approval SET effect = ''`, `UPDATE approval SET decision = 'YES'`,
		`UPDATE pin SET state = 'OK'`, `UPDATE pin SET input = x''`, `UPDATE pin SET findings = 'none'`,
	} {
		dir := t.TempDir()
		s := openTest(t, Options{Dir: dir})
		fillKept(t, s)
		closeTest(t, s)
		db, err := sql.Open("sqlite", dsn(dir, writeParameters))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(damage); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), Options{Dir: dir}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v, want ErrDamaged", damage, err)
		}
	}
}

func TestUpsertSQL(t *testing.T) {
	want := "INSERT INTO t (a, b, c) VALUES ($1, $2, $3) ON CONFLICT (a, b) DO UPDATE SET c = excluded.c"
	if got := upsertSQL("t", "a, b, c", 2); got != want {
		t.Errorf("got %s", got)
	}
}

// To find a grant must not cost more for the many that are there.
func BenchmarkSpendForASession(b *testing.B) {
	s, err := Open(b.Context(), Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.Update(b.Context(), func(tx store.Tx) error {
		for i := range 1000 {
			if err := tx.PutApproval(storetest.Approval(approval.ID(fmt.Sprint("a", i)), byte(i))); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := s.Update(b.Context(), func(tx store.Tx) error { _, err := tx.ApprovalsUnder(call.Digest{7, 1}); return err }); err != nil {
			b.Fatal(err)
		}
	}
}
