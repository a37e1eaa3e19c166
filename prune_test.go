package ostiary_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
)

// onDisk says in which files of the data directory a text stands.
func (g *gateway) onDisk(text string) (in []string) {
	g.t.Helper()
	files, err := os.ReadDir(filepath.Join(g.dir, "data"))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, f := range files {
		if !f.Type().IsRegular() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(g.dir, "data", f.Name()))
		if err != nil {
			g.t.Fatal(err)
		}
		if bytes.Contains(b, []byte(text)) {
			in = append(in, f.Name())
		}
	}
	return in
}

// ledger opens the ledger of a gateway, which may be running.
func (g *gateway) ledger() *ostiary.Ledger {
	g.t.Helper()
	l, err := ostiary.OpenLedger(g.t.Context(), filepath.Join(g.dir, "data"))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = l.Close() }) // nothing was written
	return l
}

// startAged starts a gateway whose clock can be put forward.
func startAged(t *testing.T, tables string) (g *gateway, age func(time.Duration)) {
	t.Helper()
	g = startGateway(t, tables)
	g.stop()
	var late atomic.Int64
	g.now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	g.uptime = func() time.Duration { return time.Duration(late.Load()) }
	g.start()
	return g, func(d time.Duration) { late.Add(int64(d)) }
}

// R8.6, R9.1: the content of old records goes, and is gone from the disk; what is open, held or in force keeps its own. The
// ledger and its exports verify, checkpoints from before included, and say what is gone; a call whose records were pruned
// is missing evidence, and no call that goes on is touched.
func TestR8_6_Prune(t *testing.T) {
	const day = 24 * time.Hour
	g, age := startAged(t, withNotes("quarantine")+"[provider.ex.policy.tools.kinds]\nlabels = [\"reads_untrusted\"]\n[rule.fail]\neffect = \"ask\"\ntools = [\"aur.mcp.ex.fail\"]\n[approval]\nhold_seconds = 0\nexpiry_seconds = 604800\n")
	plain := called(t, g.ask("write_note", `{"text":"the key is `+aSecret+`"}`))
	held := called(t, g.ask("read_notes", `{}`))
	purged := called(t, g.ask("read_notes", `{}`))
	if _, err := g.DecideEvidence(t.Context(), "ev-"+string(purged), "purge", "not needed"); err != nil {
		t.Fatal(err)
	}
	must(t, g.ask("fail", `{}`), `"code":"approval_pending"`)
	request := g.wait()
	if _, err := g.Decide(t.Context(), ostiary.ApprovalDecision{ID: request.ID, Grant: true, Reason: "fine"}); err != nil {
		t.Fatal(err)
	}
	const canary = "her name was Greta Canary" // it stands in the record alone
	if _, err := g.Call(t.Context(), ostiary.CallRequest{Tool: "kinds"}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.DropTaint(t.Context(), ostiary.TaintDrop{Principal: "local:operator", Reason: canary}); err != nil {
		t.Fatal(err)
	}
	g.restart() // which signs what there is
	l := g.ledger()
	before, err := l.Checkpoint(t.Context())
	if err != nil || len(before) == 0 || len(g.onDisk(canary)) == 0 {
		t.Fatalf("checkpoint %q, %v; the canary stands in %v", before, err, g.onDisk(canary))
	}
	for _, at := range []time.Time{{}, time.Now().Add(day)} {
		if _, err := g.Prune(t.Context(), ostiary.PruneRequest{Before: at}); ostiary.FaultOf(err) != ostiary.FaultInvalid {
			t.Errorf("before %s: %v", at, err)
		}
	}
	if r, err := g.Prune(t.Context(), ostiary.PruneRequest{Before: time.Now()}); err != nil || r.Pruned != 0 || !r.Before.Before(time.Now().Add(-day+time.Minute)) {
		t.Errorf("within a day: %+v, %v", r, err)
	}

	age(3 * day)
	backup := filepath.Join(g.dir, "data", "ostiary-schema-4.db")
	for _, b := range []string{backup, filepath.Join(g.dir, "data", "ostiary-schema-5.db")} {
		if err := os.WriteFile(b, []byte(canary), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(g.dir, "data", "ostiary-schema-5.db"), g.now(), g.now()); err != nil {
		t.Fatal(err)
	}
	cut := g.now().Add(-2 * day)
	would, err := g.Prune(t.Context(), ostiary.PruneRequest{Before: cut, DryRun: true})
	if err != nil || would.Pruned == 0 || would.Kept == 0 || len(g.onDisk(canary)) == 0 {
		t.Fatalf("would prune %+v, %v", would, err)
	}
	did, err := g.Prune(t.Context(), ostiary.PruneRequest{Before: cut})
	if err != nil || did.Pruned != would.Pruned || did.Kept != would.Kept || len(did.Removed) != 1 || did.Removed[0] != backup || len(did.Left) != 1 {
		t.Fatalf("pruned %+v, %v, would have %+v", did, err, would)
	}
	if in := g.onDisk(canary); len(in) != 1 || in[0] != "ostiary-schema-5.db" {
		t.Errorf("what was pruned stands in %v", in)
	}
	if again, err := g.Prune(t.Context(), ostiary.PruneRequest{Before: cut}); err != nil || again.Pruned != 0 || again.Kept != did.Kept {
		t.Errorf("pruned again: %+v, %v", again, err)
	}

	// What goes on, goes on.
	approved := called(t, g.ask("fail", `{}`))
	if item, err := g.EvidenceContent(t.Context(), "ev-"+string(held)); err != nil || !strings.Contains(string(item.Content), aSecret) {
		t.Errorf("what is held: %v", err)
	}
	g.restart()
	for _, c := range []struct {
		name, id, class string
	}{
		{"plain", string(plain), "PARTIAL_MISSING_EVIDENCE"},
		{"purged", string(purged), "PARTIAL_MISSING_EVIDENCE"},
		{"held", string(held), "PARTIAL_REDACTED"},
		{"approved before, sent afterwards", string(approved), "RECONSTRUCTED"},
	} {
		got, err := l.Call(t.Context(), call.ID(c.id))
		if err != nil || got.Reconstruction != c.class {
			t.Errorf("%s: %s, %+v, %v; want %s", c.name, got.Reconstruction, got.Gaps, err, c.class)
		}
	}
	report, err := l.Verify(t.Context(), before)
	if err != nil || !report.OK || report.Tombstones != did.Pruned || report.Unvouched != 0 {
		t.Errorf("verified as %+v, %v, want %d tombstones", report, err, did.Pruned)
	}
	var export bytes.Buffer
	if err := l.Export(t.Context(), &export, 0, 0); err != nil {
		t.Fatal(err)
	}
	key, err := l.Verifier()
	if err != nil {
		t.Fatal(err)
	}
	if r, err := ostiary.VerifyExport(t.Context(), bytes.NewReader(export.Bytes()), key, before); err != nil || r != report {
		t.Errorf("the export verifies as %+v, %v, the ledger as %+v", r, err, report)
	}
	if strings.Contains(export.String(), canary) {
		t.Error("what was pruned is exported")
	}
	must(t, g.records(), `ledger.pruned local:operator {"before":"`)
	quiet(t, l, did)
}

// quiet fails if a tombstone says more than it may, or a record of the wrong kind was pruned.
func quiet(t *testing.T, l *ostiary.Ledger, did ostiary.PruneReport) {
	t.Helper()
	n := int64(0)
	if err := l.Records(t.Context(), 0, 0, func(r ostiary.LedgerRecord) error {
		switch {
		case r.Pruned == 0:
			return nil
		case r.Session != "" || r.Principal != "" || len(r.Body) > 0 || !r.Time.Before(did.Before):
			t.Errorf("tombstone %+v", r)
		case r.Kind == "admission.decided" || strings.HasPrefix(r.Kind, "approval."):
			t.Errorf("pruned %s, which is in force", r.Kind)
		}
		n++
		return nil
	}); err != nil || n != did.Pruned {
		t.Errorf("%d tombstones, want %d: %v", n, did.Pruned, err)
	}
}

// R8.6: keep_days prunes by itself, and a tool that is in quarantine keeps the record of it.
func TestR8_6_KeepDays(t *testing.T) {
	g, age := startAged(t, exported+"[ledger]\nkeep_days = 2\n")
	must(t, g.ask("echo", `{}`), `"status":"succeeded"`)
	g.drift("count", "description")
	age(36 * time.Hour)
	if err := g.SweepNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(t, g.records(), "!ledger.pruned", `call.intent default {`)
	age(36 * time.Hour)
	if err := g.Write(t.Context()); err != nil { // the last day before the newest record stays
		t.Fatal(err)
	}
	if err := g.SweepNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(t, g.records(), "ledger.pruned ostiary {", "!call.intent default {", "call.intent  \n", "quarantine.set  {", "admission.decided first_use {")
	if err := g.SweepNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(g.records(), "ledger.pruned"); n != 1 {
		t.Errorf("pruned %d times, want once an hour", n)
	}
	if report, err := g.ledger().Verify(t.Context()); err != nil || !report.OK || report.Tombstones == 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// F-09: keep_days trusts the clock only where it agrees with one that nobody can set, and has for an hour. A clock that was
// set ahead, for as long as may be, prunes nothing; nor does one that is wrong from the start on, in its first hour.
func TestF09_ClockJumpPrunesNothing(t *testing.T) {
	t.Parallel()
	const years, day = 10 * 365 * 24 * time.Hour, 24 * time.Hour
	g := startGateway(t, exported+"[ledger]\nkeep_days = 3650\n")
	must(t, g.ask("echo", `{}`), `"status":"succeeded"`)
	g.stop()
	var wall, up atomic.Int64
	g.now = func() time.Time { return time.Now().Add(time.Duration(wall.Load())) }
	g.uptime = func() time.Duration { return time.Duration(up.Load()) }
	set := func(w, u time.Duration) { wall.Add(int64(w)); up.Add(int64(u)) }
	sweep := func(what string, want bool) {
		t.Helper()
		must(t, g.ask("echo", `{}`), `"status":"succeeded"`)
		if err := g.SweepNow(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(g.records(), "ledger.pruned"); got != want {
			t.Fatalf("%s: pruned: %v, want %v", what, got, want)
		}
	}
	g.start()
	sweep("at the start", false)
	set(2*time.Hour, 2*time.Hour)
	sweep("two hours later, nothing is old", false)
	set(years+2*day, 0)
	sweep("ten years ahead", false)
	set(3*time.Hour, 3*time.Hour)
	sweep("and for hours", false)
	set(-years-2*day, 0)
	sweep("and back", false)
	set(years+2*day, 0)
	sweep("ahead again", false)
	g.stop()
	up.Store(0)
	g.start() // with a clock that is wrong already, for all that can be told
	sweep("started again", false)
	set(50*time.Minute, 50*time.Minute)
	sweep("in its first hour", false)
	set(11*time.Minute, 11*time.Minute)
	sweep("when it has agreed for an hour", true)
}
