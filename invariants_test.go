package ostiary_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ostiary/ostiary"
)

// checkStopped checks what must hold of a data directory whatever has happened to it, once the gateway has been stopped in
// order: the ledger verifies (I7); every intent has exactly one end (I2), and a grant is spent by one call alone (I5); no
// secret is anywhere in clear (I6); and nothing is left behind or readable by others (I8).
func checkStopped(t testing.TB, data string, secrets ...string) {
	t.Helper()
	l, err := ostiary.OpenLedger(context.Background(), data)
	if err != nil {
		t.Errorf("I7: %v", err)
		return
	}
	defer l.Close()
	if report, err := l.Verify(context.Background()); err != nil || !report.OK {
		t.Errorf("I7: %+v, %v", report, err)
	}
	checkEnds(t, l)
	checkFiles(t, data, secrets)
}

// checkEnds goes through the records of all calls.
func checkEnds(t testing.TB, l *ostiary.Ledger) {
	t.Helper()
	open, ended := map[string]bool{}, map[string]bool{}
	spent, through := map[string]int{}, map[string]int{}
	if err := l.Records(context.Background(), 0, 0, func(r ostiary.LedgerRecord) error {
		var body struct{ Approval, Decision string }
		if r.Pruned == 0 {
			if err := json.Unmarshal(r.Body, &body); err != nil {
				return err
			}
		}
		switch r.Kind {
		case "call.intent":
			if open[r.Call] || ended[r.Call] {
				t.Errorf("I2: call %s has two intents, or one after its end", r.Call)
			}
			open[r.Call] = true
			if body.Approval != "" {
				through[body.Approval]++
			}
		case "approval.spent":
			if r.Pruned != 0 { // and so is the intent that was written with it
				return nil
			}
			if spent[body.Approval]++; body.Decision == "APPROVED_ONCE" && spent[body.Approval] > 1 {
				t.Errorf("I5: grant %s was spent twice", body.Approval)
			}
		case "call.outcome":
			if !open[r.Call] {
				t.Errorf("I2: call %s has two ends, or no intent: %s", r.Call, r.Body)
			}
			delete(open, r.Call)
			ended[r.Call] = true
		case "call.refused":
			if open[r.Call] || ended[r.Call] {
				t.Errorf("I2: call %s was refused, and has another end", r.Call)
			}
			ended[r.Call] = true
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	for id := range open {
		t.Errorf("I2: call %s has no end", id)
	}
	if !maps.Equal(spent, through) {
		t.Errorf("I5: grants were spent: %v; calls went through with them: %v", spent, through)
	}
}

// checkFiles reads every file under a data directory.
func checkFiles(t testing.TB, data string, secrets []string) {
	t.Helper()
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("I6: others may look at %s: %v", path, info.Mode())
		}
		if !info.Mode().IsRegular() {
			return nil
		}
		name := d.Name()
		if strings.Contains(name, "tmp") || strings.Contains(name, "new") {
			t.Errorf("I8: %s is left behind", path)
		}
		raw, err := os.ReadFile(path)
		for _, s := range secrets {
			if bytes.Contains(raw, []byte(s)) {
				t.Errorf("I6: %s has a secret in clear", path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// remembered is what must outlive the process (I3, I5): admissions, quarantines, requests and grants, evidence.
func (g *gateway) remembered() string {
	g.t.Helper()
	admitted, err1 := g.Admissions(g.t.Context(), "")
	isolated, err2 := g.Quarantined(g.t.Context())
	asked, err3 := g.Approvals(g.t.Context(), true)
	held, err4 := g.Evidence(g.t.Context(), ostiary.EvidenceFilter{})
	var decided []any // the rest depends on what is offered now
	for _, a := range admitted {
		decided = append(decided, []any{a.Provider, a.Tool, a.Decider, a.Decided})
	}
	out, err5 := json.MarshalIndent([]any{decided, isolated, asked, held}, "", " ")
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			g.t.Fatal(err)
		}
	}
	return string(out)
}
