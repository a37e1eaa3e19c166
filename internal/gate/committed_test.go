package gate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/gate"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/store"
)

// crashed is what a store would find that starts on the disk as it is now: all of the data directory, copied.
func crashed(t testing.TB, dir string) store.Store {
	t.Helper()
	to := t.TempDir()
	for _, name := range []string{"ostiary.db", "ostiary.db-wal", ledger.KeyFile, ledger.VerifierFile} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return open(t, to)
}

// resulting is the state that a call has left on disk: its records, whether its intent is open, what its session has read,
// what was held of it, and its fact in the world.
func resulting(t testing.TB, s store.Store, id call.ID) (out []string) {
	t.Helper()
	if err := s.Update(context.Background(), func(tx store.Tx) error {
		open, err := tx.OpenIntents()
		for _, i := range open {
			out = append(out, "open "+string(i.CallID))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.View(context.Background(), func(v store.View) error {
		if err := v.RecordsOfCall(id, func(r ledger.Record) error { out = append(out, string(r.Kind)); return nil }); err != nil {
			return err
		}
		taint, err := v.Taint("alice", "s")
		if err != nil {
			return err
		}
		if taint != 0 {
			out = append(out, "taint "+taint.String())
		}
		item, ok, err := v.Evidence(evidence.ID("ev-" + id))
		if ok {
			out = append(out, "evidence "+item.State.String())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range commits(t, s, own) {
		out = append(out, "fact "+c.ID)
	}
	return out
}

// R9.3: a result counts as committed only when the result and the state that it leads to are in the store: the outcome, the
// end of the intent, what the session has read, what was held, and the fact in the world are one transaction. Until it is
// on disk none of them is, and nobody has been given anything; after it all of them are.
func TestR9_3_ResultAndStateAreOneCommit(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	f := newFixtureWith(t, s, false, func(t testing.TB, _ *fixture, _ *policy.Policy) *policy.Policy {
		both := policy.ReadsPrivate | policy.ReadsUntrusted
		p, err := policy.New([]string{"p"}, []policy.ToolSet{{Package: "p", Available: true, Approval: policy.ApprovalNever, Tools: map[string]policy.Override{"write": {Labels: &both}}}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	})
	f.answer = func(context.Context, gate.Cleared) call.Answer {
		return call.Answer{Delivery: call.Confirmed, ResultType: "complete",
			Result: []byte(`{"content":[{"type":"text","text":"ghp_16C7e42F292c6912E7710c838347Ae178B4a"}]}`)} // made up, of the shape of a token
	}
	seen := map[string][]string{}
	id := call.ID("")
	f.options.NewID = func() call.ID { id = call.ID(fmt.Sprintf("c%06d", ids.Add(1))); return id }
	f.options.Failpoint = func(step string) {
		after := crashed(t, dir)
		defer after.Close()
		seen[step] = resulting(t, after, id)
		next := f.options
		next.Store = after
		restarted, err := gate.New(next)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := restarted.Recover(context.Background()); err != nil || n == 1 != (step != "outcome") {
			t.Errorf("after a crash at %s the next start closes %d calls: %v", step, n, err)
		}
		if got := resulting(t, after, id); !slices.Contains(got, "call.outcome") || slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "open") }) {
			t.Errorf("after a crash at %s and a start: %v", step, got)
		}
	}
	f.remake(t)
	if o := f.call("write", `{"n":1}`).Outcome; o.Code != call.CodeWithheld || o.Effect != call.EffectDone {
		t.Fatalf("the call ended as %+v", o)
	}
	before := []string{"open " + string(id), "call.intent"}
	all := []string{"call.intent", "call.outcome", "taint untrusted, private", "evidence HELD", "fact call:" + string(id)}
	for _, step := range []string{"intent", "answer", "verdict"} {
		if !slices.Equal(seen[step], before) {
			t.Errorf("after %s there is %q on disk, want %q", step, seen[step], before)
		}
	}
	if !slices.Equal(seen["outcome"], all) {
		t.Errorf("after the outcome there is %q on disk, want %q", seen["outcome"], all)
	}
}
