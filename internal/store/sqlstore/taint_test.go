package sqlstore

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/storetest"
)

func TestTaints(t *testing.T) {
	storetest.RunTaints(t,
		func(t *testing.T) store.Store { return openTest(t, Options{Dir: t.TempDir()}) },
		func(t *testing.T, s store.Store) store.Store {
			dir := s.(*Store).o.Dir
			closeTest(t, s.(*Store))
			return openTest(t, Options{Dir: dir})
		})
}

// A taint that this program does not know is never read as less: the row of a newer program, or a damaged one, is an error.
func TestA27_UnknownTaintFailsClosed(t *testing.T) {
	dir := t.TempDir()
	closeTest(t, openTest(t, Options{Dir: dir}))
	db, err := sql.Open("sqlite", dsn(dir, writeParameters))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		session string
		value   any
	}{{"new", 4}, {"negative", -1}, {"large", 259}} {
		if _, err := db.Exec(`INSERT INTO taint (principal, session, taint) VALUES ('alice', $1, $2)`, row.session, row.value); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, Options{Dir: dir})
	for _, session := range []string{"new", "negative", "large"} {
		read := func(taint func(string, string) error) error { return taint("alice", session) }
		inView := s.View(t.Context(), func(v store.View) error {
			return read(func(p, n string) error { _, err := v.Taint(p, n); return err })
		})
		inTx := s.Update(t.Context(), func(tx store.Tx) error {
			return read(func(p, n string) error { _, err := tx.Taint(p, n); return err })
		})
		if !errors.Is(inView, ErrDamaged) || !errors.Is(inTx, ErrDamaged) {
			t.Errorf("session %s: got %v and %v, want ErrDamaged", session, inView, inTx)
		}
	}
}
