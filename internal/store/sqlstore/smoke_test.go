package sqlstore

import (
	"bytes"
	"context"
	"testing"

	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		s, err := Open(t.Context(), Options{Dir: dir, CheckpointEvery: 10})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 25 {
			id := benchID(int64(round*100 + i))
			if err := s.Update(t.Context(), appendIntent(id)); err != nil {
				t.Fatal(err)
			}
			if err := s.Enqueue(t.Context(), appendOutcome(id)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r, err := OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	if err := r.View(t.Context(), func(v store.View) error {
		rep, err := ledger.Verify(context.Background(), ledger.FromView(v), r.Verifier())
		t.Logf("%+v %v", rep, err)
		return ledger.Export(context.Background(), v, r.Verifier(), &out, ledger.ExportOptions{After: 7})
	}); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String()[:1800])
	rep, err := ledger.Verify(context.Background(), ledger.FromExport(&out), r.Verifier())
	t.Logf("%+v %v", rep, err)
}
