package sqlstore

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return openTest(t, Options{Dir: t.TempDir(), CheckpointEvery: 7}) })
}

// openTest opens a store that logs to the test. The caller closes it; so does the end of the test.
func openTest(t *testing.T, o Options) *Store {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func closeTest(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// verifyDir verifies the ledger of a data directory from its rows and from an export, and returns its records. The
// world must agree with them.
func verifyDir(t *testing.T, dir string) (ledger.Report, []ledger.Record) {
	t.Helper()
	r, err := OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var report ledger.Report
	var records []ledger.Record
	var export bytes.Buffer
	if err := r.View(t.Context(), func(v store.View) (err error) {
		if report, err = ledger.Verify(context.Background(), ledger.FromView(v), r.Verifier()); err != nil {
			return err
		}
		if err := v.Records(0, 0, func(r ledger.Record) error { records = append(records, r); return nil }); err != nil {
			return err
		}
		return ledger.Export(context.Background(), v, r.Verifier(), &export, ledger.ExportOptions{})
	}); err != nil {
		t.Fatal(err)
	}
	again, err := ledger.Verify(context.Background(), ledger.FromExport(&export), r.Verifier())
	if err != nil {
		t.Fatal(err)
	}
	if again != report {
		t.Errorf("the export verifies as %+v, the store as %+v", again, report)
	}
	if report.Bad != nil {
		t.Fatal(report.Bad)
	}
	checkWorld(t, dir, records)
	return report, records
}

// checkWorld proves that the calls of the world and the outcomes of the ledger are the same, in the same order (R5.6).
func checkWorld(t *testing.T, dir string, records []ledger.Record) {
	t.Helper()
	r, err := OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var want []call.ID
	for _, record := range records {
		if record.Kind == ledger.KindCallOutcome {
			want = append(want, record.CallID)
		}
	}
	commits, err := storetest.Commits(t.Context(), r, storetest.FactOf("").Scopes[0])
	if err != nil {
		t.Fatal(err)
	}
	got := make([]call.ID, len(commits))
	for i, c := range commits {
		got[i] = c.CallID
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the world has calls %v, the ledger has the outcomes of %v", got, want)
	}
	own := map[call.Scope]bool{} // the scopes that are one call's each
	for _, id := range want {
		own[storetest.FactOf(id).Scopes[1]] = true
	}
	if err := r.View(t.Context(), func(v store.View) error {
		return v.ScopeHeads("", 0, func(scope call.Scope, head int64) error {
			if own[scope] && head == 1 || head == int64(len(got)) && scope == storetest.FactOf("").Scopes[0] {
				delete(own, scope)
				return nil
			}
			return fmt.Errorf("scope %s has %d commits", scope, head)
		})
	}); err != nil || len(own) > 0 {
		t.Fatalf("%v; without a commit: %v", err, own)
	}
}

// checkCalls compares the records with what was acked and with the open intents.
func checkCalls(t *testing.T, records []ledger.Record, open []ledger.Intent, acked map[call.ID]string) {
	t.Helper()
	intents, outcomes := map[call.ID]int64{}, map[call.ID]bool{}
	for _, r := range records {
		switch r.Kind {
		case ledger.KindCallIntent:
			intents[r.CallID] = r.Seq
		case ledger.KindCallOutcome:
			outcomes[r.CallID] = true
		}
	}
	for id, what := range acked {
		if intents[id] == 0 || what == "closed" && !outcomes[id] {
			t.Errorf("%s was acked as %s, but the ledger has intent %t, outcome %t", id, what, intents[id] != 0, outcomes[id])
		}
	}
	for _, in := range open {
		if outcomes[in.CallID] || intents[in.CallID] != in.Seq {
			t.Errorf("%s is open at %d, but the ledger has intent %d, outcome %t", in.CallID, in.Seq, intents[in.CallID], outcomes[in.CallID])
		}
		delete(intents, in.CallID)
	}
	for id := range intents {
		if !outcomes[id] {
			t.Errorf("%s has an intent and no outcome, and is not open", id)
		}
	}
}
