package sqlstore

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

// L-6: a ledger of a million records is opened in less than 2 s, verified in less than 60 s, and its last records are read
// in less than 50 ms. It takes a minute and a gigabyte, so it runs only if asked for.
func TestL6_MillionRecords(t *testing.T) {
	if os.Getenv("OSTIARY_TEST_LARGE") == "" {
		t.Skip("set OSTIARY_TEST_LARGE=1 to run it")
	}
	const calls = 500_000
	dir := t.TempDir()
	s, err := Open(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	took := func(what string, bound time.Duration, fn func() error) {
		t.Helper()
		start := time.Now()
		if err := fn(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		d := time.Since(start)
		t.Logf("%s: %s", what, d)
		if d > bound {
			t.Errorf("%s took %s, at most %s", what, d, bound)
		}
	}
	took("write", time.Hour, func() error {
		for n := range int64(calls) {
			if err := s.Enqueue(t.Context(), appendIntent(benchID(n))); err != nil {
				return err
			}
			if err := s.Enqueue(t.Context(), appendOutcome(benchID(n))); err != nil {
				return err
			}
		}
		return s.Update(t.Context(), func(store.Tx) error { return nil })
	})
	took("last 100", 50*time.Millisecond, func() error {
		return s.View(t.Context(), func(v store.View) error {
			seq, _, err := v.Head()
			if err != nil {
				return err
			}
			return v.Records(seq-100, 100, func(ledger.Record) error { return nil })
		})
	})
	took("records of a call", 50*time.Millisecond, func() error {
		return s.View(t.Context(), func(v store.View) error {
			story, err := ledger.Collect(v, benchID(calls/2))
			if err == nil && len(story.Records) != 2 {
				t.Errorf("got %d records", len(story.Records))
			}
			return err
		})
	})
	took("close", time.Minute, s.Close)
	if info, err := os.Stat(filepath.Join(dir, dbFile)); err == nil {
		t.Logf("size: %d MiB", info.Size()>>20)
	}
	took("open", 2*time.Second, func() (err error) { s, err = Open(t.Context(), Options{Dir: dir}); return err })
	defer s.Close()
	took("verify", time.Minute, func() error {
		return s.View(t.Context(), func(v store.View) error {
			r, err := ledger.Verify(context.Background(), ledger.FromView(v), s.Verifier())
			if r.Records != 2*calls || r.Bad != nil {
				t.Errorf("got %+v", r)
			}
			return err
		})
	})
	path := filepath.Join(t.TempDir(), "export.jsonl")
	took("export", time.Minute, func() error {
		return s.View(t.Context(), func(v store.View) error {
			f, err := os.Create(path)
			if err != nil {
				return err
			}
			defer f.Close()
			return ledger.Export(context.Background(), v, s.Verifier(), f, ledger.ExportOptions{})
		})
	})
	took("verify export", time.Minute, func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		r, err := ledger.Verify(context.Background(), ledger.FromExport(f), s.Verifier())
		if r.Records != 2*calls || r.Bad != nil {
			t.Errorf("got %+v", r)
		}
		return err
	})
}
