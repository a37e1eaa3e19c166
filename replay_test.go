package ostiary_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
)

// checkLineage rebuilds every call that a gateway has on record: whatever a test has done with it, no join key may be
// missing or contradict (R9.1).
func checkLineage(t testing.TB, dataDir string) {
	t.Helper()
	ctx := context.Background() // that of the test is over when it is cleaned up
	l, err := ostiary.OpenLedger(ctx, dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return // it has not run
	}
	if err != nil {
		t.Error(err)
		return
	}
	defer l.Close()
	var calls []string
	if err := l.Records(ctx, 0, 0, func(r ostiary.LedgerRecord) error {
		if strings.HasPrefix(r.Kind, "call.") && !slices.Contains(calls, r.Call) {
			calls = append(calls, r.Call)
		}
		return nil
	}); err != nil {
		t.Error(err)
		return
	}
	for _, id := range calls {
		c, err := l.Call(ctx, call.ID(id))
		if err != nil || c.Reconstruction == "INVALID_LINEAGE" {
			t.Errorf("R9.1: call %s: %v, %s, %+v", id, err, c.Reconstruction, c.Gaps)
		}
	}
}

var callIn = regexp.MustCompile(`"call":"([0-9a-z]+)"`)

// called is the id of a call, out of its answer.
func called(t testing.TB, answer string) call.ID {
	t.Helper()
	m := callIn.FindStringSubmatch(answer)
	if m == nil {
		t.Fatalf("no call id in %s", answer)
	}
	return call.ID(m[1])
}

// R9.1: whatever became of a call, it can be rebuilt from the ledger and from an export of it, and both say how far.
func TestR9_1_ACallIsRebuilt(t *testing.T) {
	g := startGateway(t, withNotes("quarantine")+"\n[approval]\nhold_seconds = 0\n[rule.notes]\neffect = \"ask\"\ntools = [\"aur.mcp.ex.write_note\"]\n[rule.no]\neffect = \"deny\"\ntools = [\"aur.mcp.ex.refuse\"]\n")
	const note = `{"text":"the key is ` + aSecret + `"}`
	pending := called(t, g.ask("write_note", note))
	request := g.wait()
	if _, err := g.Decide(t.Context(), ostiary.ApprovalDecision{ID: request.ID, Grant: true, Reason: "fine"}); err != nil {
		t.Fatal(err)
	}
	approved := called(t, g.ask("write_note", note))
	withheld := called(t, g.ask("read_notes", `{}`))
	purged := called(t, g.ask("read_notes", `{}`))
	if _, err := g.DecideEvidence(t.Context(), "ev-"+string(purged), "purge", "not needed"); err != nil {
		t.Fatal(err)
	}
	denied := called(t, g.ask("refuse", `{"message":"x"}`))
	plain := called(t, g.ask("fail", `{}`))
	g.stop()

	l, err := ostiary.OpenLedger(t.Context(), filepath.Join(g.dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var export bytes.Buffer
	if err := l.Export(t.Context(), &export, 0, 0); err != nil {
		t.Fatal(err)
	}
	rebuilt := map[call.ID]ostiary.LedgerCall{}
	for _, c := range []struct {
		name, class, disposition string
		id                       call.ID
	}{
		{"approved", "RECONSTRUCTED", "released", approved},
		{"plain", "RECONSTRUCTED", "released", plain},
		{"withheld", "PARTIAL_REDACTED", "withheld", withheld},
		{"purged", "PARTIAL_MISSING_EVIDENCE", "withheld", purged},
		{"pending", "BLOCKED_BY_POLICY", "refused", pending},
		{"denied", "BLOCKED_BY_POLICY", "refused", denied},
	} {
		got, err := l.Call(t.Context(), c.id)
		if err != nil || got.Reconstruction != c.class || got.Disposition != c.disposition {
			t.Errorf("%s: %s, %s, %+v, %v; want %s, %s", c.name, got.Reconstruction, got.Disposition, got.Gaps, err, c.class, c.disposition)
			continue
		}
		rebuilt[c.id] = got
		exported, err := ostiary.ExportedCall(bytes.NewReader(export.Bytes()), c.id)
		if err != nil || !reflect.DeepEqual(exported, got) {
			t.Errorf("%s: the export tells %+v, %v; the ledger %+v", c.name, exported, err, got)
		}
		if b, err := json.Marshal(got); err != nil || strings.Contains(string(b), aSecret) {
			t.Errorf("R6.9: %s, %v", b, err)
		}
	}
	a := rebuilt[approved]
	if a.Principal != "default" || len(a.Trace) != 32 || a.Request.Tool != "aur.mcp.ex.write_note" || a.Request.Export != "default" || a.Request.Arguments.Bytes != int64(len(note)) ||
		a.Provider.Package != "ex" || a.Provider.Descriptor == "" || a.Admission == nil || a.Admission.Decider == "" || a.Policy.Rule != "rule.notes" || a.Policy.Snapshot == "" {
		t.Errorf("the path: %+v", a.Path)
	}
	if p := a.Approval; p == nil || p.ID != request.ID || p.AskedBy != pending || p.Decision != "APPROVED_ONCE" || p.Decider != "local:operator" || !(0 < p.Asked && p.Asked < p.Decided && p.Decided < p.Spent && p.Spent < a.Intent) {
		t.Errorf("the approval: %+v", p)
	}
	if e := rebuilt[purged].Evidence; e == nil || e.State != "PURGED" || e.Decider != "local:operator" || e.Reason != "not needed" {
		t.Errorf("the evidence: %+v", e)
	}
	if _, err := l.Call(t.Context(), "none"); ostiary.FaultOf(err) != ostiary.FaultNotFound {
		t.Errorf("a call that is not there: %v", err)
	}
	if _, err := ostiary.ExportedCall(bytes.NewReader([]byte("{}\n")), approved); err == nil {
		t.Error("a file that is no export was read")
	}
}
