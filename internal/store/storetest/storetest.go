package storetest

import (
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

// Run runs the suite. open returns an empty store, which the suite closes; it may use t.Cleanup for what is beneath.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	each(t, open, []testCase{
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
		{"RecordsOfKind", testRecordsOfKind},
		{"Bury", testBury},
		{"EmptyLedger", testEmptyLedger},
		{"ContextEnded", testContextEnded},
		{"Watch", testWatch},
		{"CloseCommitsTheQueue", testClose},
		{"ConcurrentChain", testConcurrentChain},
		{"Evidence", testEvidence},
		{"EvidenceAtomicity", testEvidenceAtomicity},
		{"EvidenceList", testEvidenceList},
		{"EvidenceLarge", testEvidenceLarge},
		{"EvidenceConcurrent", testEvidenceConcurrent},
		{"Approvals", testApprovals},
		{"ApprovalsAreUndone", testApprovalsAreUndone},
		{"ApprovalsAgree", testApprovalsAgree},
		{"GrantIsSpentWithTheIntent", testGrantIsSpentWithTheIntent},
		{"GrantIsSpentOnce", testGrantIsSpentOnce},
		{"Pins", testPins},
		{"Quarantines", testQuarantines},
		{"AdmissionIsUndone", testAdmissionIsUndone},
	})
}

type testCase struct {
	name string
	test func(*testing.T, store.Store)
}

// each runs tests, each on a store of its own.
func each(t *testing.T, open func(t *testing.T) store.Store, tests []testCase) {
	for _, c := range tests {
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
	return ledger.Intent{CallID: id, Started: clock, Principal: "alice", Session: "s1", Tool: "aur.mcp.files.read", Provider: "files",
		Publish: []call.Scope{"aurora:mcp:files", "files:" + call.Scope(id)}}
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
		if _, _, err := tx.PutFact(FactOf(id)); err != nil {
			return err
		}
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
