package ostiary_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ostiary/ostiary"
)

var callID = regexp.MustCompile(`\[call ([0-9a-z]+)\]`)

// withheld calls a tool whose result is withheld, and says which call it was.
func (g *gateway) withheld(tool, arguments string, words ...string) string {
	g.t.Helper()
	body := g.ask(tool, arguments)
	must(g.t, body, append(words, `"code":"withheld"`, `"delivery":"confirmed"`, "!"+aSecret)...)
	m := callID.FindStringSubmatch(body)
	if m == nil {
		g.t.Fatalf("no call is named in %s", body)
	}
	return m[1]
}

// collect makes a call again, and names the earlier one whose result it wants.
func (g *gateway) collect(tool, arguments, id string) string {
	g.t.Helper()
	status, body, err := callModernMeta(context.Background(), http.DefaultClient, g.Addr(), tool, arguments, `"org.ostiary/call":"`+id+`"`)
	if err != nil || status != http.StatusOK {
		g.t.Fatalf("collect the result of %s: status %d, %v: %s", id, status, err, body)
	}
	return string(body)
}

// R8.1: what was held reaches its caller once somebody has released it, also after a restart; nothing is sent for that, and a
// repeat that does not name the call is a new wish.
func TestR8_1_AReleasedResultIsCollected(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	g := startGateway(t, withNotes("quarantine"), "-counter", ran)
	must(t, g.ask("write_note", `{"text":"the key is `+aSecret+`"}`), `"status":"succeeded"`)
	id := g.withheld("read_notes", `{}`, `_meta[\"org.ostiary/call\"]`, "nothing is sent")
	must(t, g.collect("read_notes", `{}`, id), `"code":"withheld"`, `"delivery":"confirmed"`, "nobody has released it yet", "!"+aSecret)
	must(t, g.collect("read_notes", `{}`, "0"+id), `"code":"invalid_request"`, `"delivery":"not_sent"`)
	if _, err := g.DecideEvidence(t.Context(), "ev-"+id, "release", "revoked"); err != nil {
		t.Fatal(err)
	}
	g.restart()
	must(t, g.ask("write_note", `{"text":"the key is `+aSecret+`"}`), `"status":"succeeded"`) // the server has no memory
	before := count(t, ran)
	must(t, g.collect("write_note", `{"text":"x"}`, id), `"code":"invalid_request"`) // it is the result of another call
	must(t, g.collect("read_notes", `{}`, id), `"status":"succeeded"`, `"released_by":"local:operator"`, `"call":"`+id+`"`, aSecret)
	must(t, g.collect("read_notes", `{}`, id), `"code":"withheld"`, "given it already", "!waits for review", "!not let in", "!"+aSecret)
	if n := count(t, ran); n != before {
		t.Errorf("%d calls were sent to collect a result", n-before)
	}
	g.withheld("read_notes", `{}`) // a new wish
	if n := count(t, ran); n != before+1 {
		t.Errorf("a new call was sent %d times", n-before)
	}
	if got, err := g.Evidence(t.Context(), ostiary.EvidenceFilter{Call: id}); err != nil || len(got) != 1 || got[0].Delivered.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
	for _, verb := range []string{"reject", "purge"} {
		id := g.withheld("read_notes", `{}`)
		if _, err := g.DecideEvidence(t.Context(), "ev-"+id, verb, ""); err != nil {
			t.Fatal(err)
		}
		must(t, g.collect("read_notes", `{}`, id), `"code":"withheld"`, map[string]string{"reject": "must not be let in", "purge": "no longer kept"}[verb], "!"+aSecret)
	}
	// Without the key of the vault nothing is handed over, nor lost.
	id = g.withheld("read_notes", `{}`)
	if _, err := g.DecideEvidence(t.Context(), "ev-"+id, "release", ""); err != nil {
		t.Fatal(err)
	}
	key, aside := filepath.Join(g.dir, "data", "vault.key"), filepath.Join(g.dir, "vault.key")
	if err := os.Rename(key, aside); err != nil {
		t.Fatal(err)
	}
	g.restart()
	must(t, g.collect("read_notes", `{}`, id), `"code":"withheld"`, "cannot be read now", "!"+aSecret)
	if err := os.Rename(aside, key); err != nil {
		t.Fatal(err)
	}
	must(t, g.collect("read_notes", `{}`, id), `"status":"succeeded"`, aSecret)
	g.stop()
	must(t, g.records(), `result.delivered default {"evidence":"ev-`+id, `"released_by":"local:operator"`, "!"+aSecret)
}

// R8.4: a rule that says ask about a result asks, while the call is held and after it; a yes lets the result in, a no does not.
func TestR8_4_AskAboutAResult(t *testing.T) {
	g := startGateway(t, withNotes("ask")+"[approval]\nhold_seconds = 20\n")
	must(t, g.ask("write_note", `{"text":"the key is `+aSecret+`"}`), `"status":"succeeded"`)
	for _, c := range []struct {
		name   string
		decide func(ostiary.ApprovalInfo) error
		words  []string
	}{
		{"granted", func(r ostiary.ApprovalInfo) error {
			_, err := g.Decide(t.Context(), ostiary.ApprovalDecision{ID: r.ID, Grant: true})
			return err
		}, []string{`"status":"succeeded"`, aSecret, `"verdict":"APPROVAL_REQUIRED","released_by":"local:operator"`}},
		{"the evidence is released", func(r ostiary.ApprovalInfo) error {
			_, err := g.DecideEvidence(t.Context(), r.Evidence, "release", "")
			return err
		}, []string{`"status":"succeeded"`, aSecret}},
		{"declined", func(r ostiary.ApprovalInfo) error {
			_, err := g.Decide(t.Context(), ostiary.ApprovalDecision{ID: r.ID})
			return err
		}, []string{`"code":"withheld"`, "declined", "!" + aSecret}},
	} {
		answer := make(chan string, 1)
		go func() { answer <- g.ask("read_notes", `{}`) }()
		r := g.wait()
		if !strings.HasPrefix(r.ID, "ar-") || r.Evidence != "ev-"+r.Call || strings.Contains(r.Summary+r.Arguments, "key is") {
			t.Errorf("%s: the request is %+v", c.name, r)
		}
		if err := c.decide(r); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		must(t, <-answer, c.words...)
		items, err := g.Evidence(t.Context(), ostiary.EvidenceFilter{Call: r.Call})
		request, rerr := g.Approval(t.Context(), r.ID)
		want := map[bool][2]string{true: {"REJECTED", "DECLINED"}, false: {"RELEASED", "SPENT"}}[c.name == "declined"]
		if err != nil || rerr != nil || len(items) != 1 || items[0].State != want[0] || request.State != want[1] {
			t.Errorf("%s: %+v, %+v, %v, %v", c.name, items, request, err, rerr)
		}
		if _, err := g.Revoke(t.Context(), ostiary.Revocation{ID: r.ID}); ostiary.FaultOf(err) != ostiary.FaultDecided {
			t.Errorf("%s: taken back afterwards: %v", c.name, err)
		}
	}

	g = startGateway(t, withNotes("ask")+"[approval]\nhold_seconds = 0\n")
	must(t, g.ask("write_note", `{"text":"the key is `+aSecret+`"}`), `"status":"succeeded"`)
	id := g.withheld("read_notes", `{}`, "request ar-")
	g.restart() // the request is durable
	if _, err := g.Decide(t.Context(), ostiary.ApprovalDecision{ID: g.wait().ID, Grant: true, ForSession: true}); ostiary.FaultOf(err) != ostiary.FaultInvalid {
		t.Errorf("a result was released for a session: %v", err)
	}
	if _, err := g.Decide(t.Context(), ostiary.ApprovalDecision{ID: g.wait().ID, Grant: true}); err != nil {
		t.Fatal(err)
	}
	must(t, g.collect("read_notes", `{}`, id), `"status":"succeeded"`, aSecret)
}
