package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
)

// tale writes the records of a call as the gateway does.
type tale struct {
	records []Record
}

const (
	taleDescriptor = `"descriptor":"sha256:d1"`
	taleTool       = `"provider":"p","tool":"aur.mcp.p.t"`
	taleRequest    = `"arguments":{"bytes":2,"sha256":"a1"},"export":"e","policy":"sha256:01","trace":"4bf92f3577b34da6a3ce929d0e0e4736",`
	taleApproval   = `"approval":"ap-%[1]s","asked_by":"%[1]s","binding":"sha256:b1","effect":"READ_ONLY","policy":"sha256:01",` + taleDescriptor + `,` + taleTool
)

func (s *tale) tell(kind Kind, id call.ID, principal, format string, args ...any) {
	n := int64(len(s.records) + 1)
	s.records = append(s.records, Record{Seq: n, Entry: Entry{Time: time.Unix(n, 0).UTC(), Kind: kind, CallID: id, Session: "s", Principal: principal,
		Body: fmt.Appendf(nil, "{"+format+"}", args...)}})
}

func (s *tale) admitted() {
	s.tell(KindAdmission, "", "op", `"decider":"op","definitions":{"":"sha256:i1","t":"sha256:d1"},"provider":"p","state":"ADMITTED"`)
}

func (s *tale) asked(by call.ID) {
	s.tell(KindApprovalAsked, by, "alice", taleApproval+`,"state":"WAITING"`, by)
}

func (s *tale) decided(by call.ID, state, decision string) {
	s.tell(KindApprovalDecided, by, "alice", taleApproval+`,"decider":"op","decision":%q,"state":%q`, by, decision, state)
}

func (s *tale) spent(by call.ID, state, decision, spentBy string) {
	s.tell(KindApprovalSpent, "c", "alice", taleApproval+`,"decider":"op","decision":%q,"spent_by":%q,"state":%q`, by, decision, spentBy, state)
}

func (s *tale) intent(approval string) {
	if approval != "" {
		approval = `"approval":"` + approval + `",`
	}
	s.tell(KindCallIntent, "c", "alice", approval+taleRequest+`"effect":"READ_ONLY","generation":"p#1","rule":"r","schema":"sha256:s1",`+taleDescriptor+`,`+taleTool)
}

func (s *tale) outcome(more string) {
	s.tell(KindCallOutcome, "c", "alice", `"delivery":"confirmed","effect":"none","status":"succeeded"`+more)
}

func (s *tale) refused(code call.Code, more string) {
	s.tell(KindCallRefused, "c", "alice", taleRequest+`"code":%q,"rule":"r","stage":%q,`+taleDescriptor+`,`+taleTool+more, code, code.Info().Stage)
}

func (s *tale) evidence(state string) {
	s.tell(KindEvidenceDecided, "c", "op", `"decider":"op","evidence":"ev-c","reason":"","sha256":"x","state":%q`, state)
}

func (s *tale) delivered(to call.ID) {
	s.tell(KindResultDelivered, "c", "alice", `"evidence":"ev-c","released_by":"op","sha256":"x","to":%q,"tool":"aur.mcp.p.t"`, to)
}

const (
	came     = `,"result":{"bytes":9,"sha256":"f1"},"verdict":"ACCEPTED_OBSERVATION"`
	redacted = `,"released":{"bytes":5,"sha256":"f2"}` + came
	held     = `,"code":"withheld","evidence":"ev-c","result":{"bytes":9,"sha256":"f1"},"stage":"FIREWALL","verdict":"QUARANTINED"`
)

// tales are whole stories, by what a replay of each says.
var tales = []struct {
	name        string
	class       Completeness
	disposition string
	tell        func(*tale)
}{
	{"released", Reconstructed, Released, func(s *tale) { s.admitted(); s.intent(""); s.outcome(came) }},
	{"tool error", Reconstructed, Released, func(s *tale) { s.admitted(); s.intent(""); s.outcome(`,"code":"tool_error"` + came) }},
	{"error of the provider", Reconstructed, Released, func(s *tale) {
		s.admitted()
		s.intent("")
		s.outcome(`,"code":"provider_error","error":{"bytes":3,"sha256":"e1"},"provider_error":-32603,"verdict":"ACCEPTED_OBSERVATION"`)
	}},
	{"interrupted", Reconstructed, NothingCame, func(s *tale) { s.admitted(); s.intent(""); s.outcome(`,"code":"interrupted"`) }},
	{"admitted again", Reconstructed, Released, func(s *tale) { s.admitted(); s.admitted(); s.intent(""); s.outcome(came) }},
	{"approved while it waited", Reconstructed, Released, func(s *tale) {
		s.admitted()
		s.asked("c")
		s.decided("c", stateGranted, approvedOnce)
		s.spent("c", "SPENT", approvedOnce, "c")
		s.intent("ap-c")
		s.outcome(came)
	}},
	{"approved for an earlier call", Reconstructed, Released, func(s *tale) {
		s.admitted()
		s.asked("b")
		s.decided("b", stateGranted, approvedOnce)
		s.spent("b", "SPENT", approvedOnce, "c")
		s.intent("ap-b")
		s.outcome(came)
	}},
	{"approved for the session", Reconstructed, Released, func(s *tale) {
		s.admitted()
		s.asked("b")
		s.decided("b", stateGranted, approvedSession)
		s.spent("b", stateGranted, approvedSession, "")
		s.intent("ap-b")
		s.outcome(came)
		s.decided("b", "REVOKED", approvedSession) // later calls have to ask anew
	}},
	{"refused for a fault", Reconstructed, Refused, func(s *tale) { s.refused(call.CodeInvalidArguments, "") }},
	{"redacted", PartialRedacted, ReleasedRedacted, func(s *tale) { s.admitted(); s.intent(""); s.outcome(redacted) }},
	{"withheld", PartialRedacted, Withheld, func(s *tale) { s.admitted(); s.intent(""); s.outcome(held) }},
	{"withheld and let go", PartialRedacted, Withheld, func(s *tale) { s.admitted(); s.intent(""); s.outcome(held); s.evidence(stateReleased) }},
	{"withheld and handed over", PartialRedacted, Delivered, func(s *tale) {
		s.admitted()
		s.intent("")
		s.outcome(held)
		s.evidence(stateReleased)
		s.delivered("d")
	}},
	{"asked about, and handed over in the same call", PartialRedacted, Delivered, func(s *tale) {
		s.admitted()
		s.intent("")
		s.outcome(held)
		s.tell(KindApprovalAsked, "c", "alice", `"approval":"ar-c","asked_by":"c","binding":"sha256:b2","evidence":"ev-c","state":"WAITING"`)
		s.evidence(stateReleased)
		s.tell(KindApprovalDecided, "c", "alice", `"approval":"ar-c","asked_by":"c","binding":"sha256:b2","decider":"op","decision":"APPROVED_ONCE","evidence":"ev-c","spent_by":"c","state":"SPENT"`)
		s.delivered("c")
	}},
	{"handed over, and purged", PartialMissingEvidence, Delivered, func(s *tale) {
		s.admitted()
		s.intent("")
		s.outcome(held)
		s.evidence(stateReleased)
		s.delivered("d")
		s.evidence(statePurged)
	}},
	{"not told", PartialRedacted, NotTold, func(s *tale) { s.admitted(); s.intent(""); s.outcome(`,"told":"ledger_unavailable"` + came) }},
	{"never let in", PartialRedacted, NotReleased, func(s *tale) {
		s.admitted()
		s.intent("")
		s.outcome(`,"code":"contract_invalid","result":{"bytes":9,"sha256":"f1"}`)
	}},
	{"withheld and purged", PartialMissingEvidence, Withheld, func(s *tale) {
		s.admitted()
		s.intent("")
		s.outcome(held)
		s.evidence(stateRejected)
		s.evidence(statePurged)
	}},
	{"open", PartialMissingEvidence, Open, func(s *tale) { s.admitted(); s.intent("") }},
	{"denied", BlockedByPolicy, Refused, func(s *tale) { s.refused(call.CodeDenied, "") }},
	{"drifted", BlockedByPolicy, Refused, func(s *tale) { s.refused(call.CodeSchemaDrift, "") }},
	{"pending", BlockedByPolicy, Refused, func(s *tale) {
		s.asked("c")
		s.refused(call.CodeApprovalPending, `,"approval":"ap-c","asked_by":"c"`)
		s.decided("c", stateGranted, approvedOnce)
	}},
	{"declined for an earlier call", BlockedByPolicy, Refused, func(s *tale) {
		s.asked("b")
		s.decided("b", stateDeclined, "REJECTED")
		s.refused(call.CodeApprovalDeclined, `,"approval":"ap-b","asked_by":"b"`)
	}},
	{"blocked arguments", BlockedByPolicy, Refused, func(s *tale) {
		s.refused(call.CodeBlockedArguments, `,"evidence":"ev-c","verdict":"REJECTED"`)
		s.evidence(stateRejected)
	}},
	{"blocked arguments, purged", PartialMissingEvidence, Refused, func(s *tale) {
		s.refused(call.CodeBlockedArguments, `,"evidence":"ev-c","verdict":"REJECTED"`)
		s.evidence(statePurged)
	}},
}

func replayed(t testing.TB, records []Record) Rebuilt {
	t.Helper()
	r, err := Replay(Story{Call: "c", First: 1, Records: records})
	if err != nil {
		t.Fatal(err)
	}
	if (r.Class == Reconstructed) != (len(r.Gaps) == 0) {
		t.Fatalf("%s with the gaps %v", r.Class, r.Gaps)
	}
	return r
}

// R9.1: a call is rebuilt from its records, with all that joins them, and it is said how far that goes.
func TestR9_1_Replay(t *testing.T) {
	for _, c := range tales {
		var s tale
		c.tell(&s)
		r := replayed(t, s.records)
		if r.Class != c.class || r.Path.Disposition != c.disposition {
			t.Errorf("%s: got %s, %s, %v; want %s, %s", c.name, r.Class, r.Path.Disposition, r.Gaps, c.class, c.disposition)
		}
		p := r.Path
		if p.Principal != "alice" || p.Session != "s" || p.Trace == "" || p.Request.Tool != "aur.mcp.p.t" || p.Request.Arguments != (Content{2, "a1"}) ||
			p.Provider.Package != "p" || p.Provider.Descriptor != "sha256:d1" || p.Policy != (Policy{"r", "sha256:01"}) || p.Outcome == nil && c.disposition != Open {
			t.Errorf("%s: the path is %+v", c.name, p)
		}
	}
	var s tale
	s.admitted()
	s.asked("b")
	s.decided("b", stateGranted, approvedOnce)
	s.spent("b", "SPENT", approvedOnce, "c")
	s.intent("ap-b")
	s.outcome(held)
	s.evidence(stateReleased)
	p := replayed(t, s.records).Path
	if a := p.Approval; a == nil || *a != (Approval{"ap-b", "b", 2, 3, 4, "SPENT", approvedOnce, "op", ""}) {
		t.Errorf("approval: %+v", a)
	}
	if p.Admission == nil || p.Admission.Seq != 1 || p.Admission.Decider != "op" || p.Intent != 5 || p.Outcome.Seq != 6 || p.Verdict.Kind != "QUARANTINED" {
		t.Errorf("path: %+v", p)
	}
	if e := p.Evidence; e == nil || e.ID != "ev-c" || e.State != stateReleased || !slices.Equal(e.Steps, []int64{7}) {
		t.Errorf("evidence: %+v", e)
	}
	if _, err := Replay(Story{Call: "c", Records: s.records[:3]}); !errors.Is(err, ErrNoCall) {
		t.Errorf("a story without its call: %v", err)
	}
}

// Property (R9.1): of a story that can be reconstructed no record can be left out, told twice or told earlier than it
// happened, and no join key in it can be another, without the replay saying so.
func TestR9_1_NothingIsLeftOutUnnoticed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := tales[rapid.IntRange(0, len(tales)-1).Draw(rt, "tale")]
		var s tale
		c.tell(&s)
		switch c.name { // only what is needed is told
		case "admitted again":
			return
		case "approved for the session":
			s.records = s.records[:6]
		}
		i := rapid.IntRange(0, len(s.records)-1).Draw(rt, "record")
		what := rapid.SampledFrom([]string{"leave out", "tell twice", "swap", "another key"}).Draw(rt, "change")
		changed := slices.Clone(s.records)
		switch what {
		case "leave out":
			changed = slices.Delete(changed, i, i+1)
			if !slices.ContainsFunc(changed, func(r Record) bool { return r.CallID == "c" }) {
				return
			}
		case "tell twice":
			changed = slices.Insert(changed, i+1, changed[i])
		case "swap":
			k := rapid.IntRange(0, len(s.records)-1).Draw(rt, "other")
			if k == i || changed[i].Kind == changed[k].Kind {
				return
			}
			changed[i], changed[k] = changed[k], changed[i]
			changed[i].Seq, changed[k].Seq = int64(i+1), int64(k+1)
			intent := slices.IndexFunc(changed, func(r Record) bool { return r.Kind == KindCallIntent })
			if changed[max(i, k)].Kind == KindAdmission && max(i, k) == 1 && intent > 1 {
				return // a definition may have been admitted before or after the question was asked
			}
		case "another key":
			keys := map[Kind][]string{
				KindAdmission:       {`"p"`, `"sha256:d1"`, `"ADMITTED"`},
				KindApprovalAsked:   {`"ap-`, `"sha256:b1"`, `"sha256:d1"`, `"aur.mcp.p.t"`, `"p"`, `"asked_by":"`},
				KindApprovalDecided: {`"ap-`, `"sha256:b1"`, `"GRANTED"`, `"asked_by":"`, `"APPROVED`},
				KindApprovalSpent:   {`"ap-`, `"sha256:b1"`, `"sha256:d1"`, `"aur.mcp.p.t"`, `"p"`, `"READ_ONLY"`, `"sha256:01"`},
				KindCallIntent:      {`"provider":"`, `"sha256:d1"`},
				KindCallOutcome:     {`"succeeded"`, `"confirmed"`, `"ACCEPTED`},
				KindEvidenceDecided: {`"ev-`},
			}[changed[i].Kind]
			if len(keys) == 0 || c.class != Reconstructed {
				return
			}
			key := rapid.SampledFrom(keys).Draw(rt, "key")
			body := strings.Replace(string(changed[i].Body), key, key[:len(key)-1]+"!"+key[len(key)-1:], 1)
			if body == string(changed[i].Body) {
				return
			}
			changed[i].Body = []byte(body)
		}
		r, err := Replay(Story{Call: "c", First: 1, Records: changed})
		if err != nil {
			rt.Fatal(err)
		}
		if r.Class == Reconstructed {
			rt.Fatalf("%s: record %d (%s): %s: still %s:\n%s", c.name, i+1, s.records[i].Kind, what, r.Class, lines(changed))
		}
		if what == "tell twice" && r.Class != InvalidLineage {
			rt.Fatalf("%s: record %d (%s) twice is %s", c.name, i+1, s.records[i].Kind, r.Class)
		}
	})
}

func lines(rs []Record) string {
	var b strings.Builder
	for _, r := range rs {
		fmt.Fprintf(&b, "%d %s %s %s\n", r.Seq, r.Kind, r.CallID, r.Body)
	}
	return b.String()
}

// R9.1: what contradicts is named, with its record.
func TestR9_1_InvalidLineage(t *testing.T) {
	for name, c := range map[string]struct {
		tell func(*tale)
		seq  int64
		text string
	}{
		"outcome without intent": {func(s *tale) { s.admitted(); s.outcome(came) }, 2, "an outcome without an intent"},
		"two outcomes":           {func(s *tale) { s.admitted(); s.intent(""); s.outcome(came); s.outcome(came) }, 4, "a second end"},
		"outcome before intent":  {func(s *tale) { s.admitted(); s.outcome(came); s.intent("") }, 3, "an intent where the call had one, or had ended"},
		"refused after intent":   {func(s *tale) { s.admitted(); s.intent(""); s.refused(call.CodeDenied, "") }, 3, "a refusal of what was let through"},
		"handed over unreleased": {func(s *tale) { s.admitted(); s.intent(""); s.outcome(held); s.delivered("d") }, 4, "nobody had released it"},
		"handed over rejected": {func(s *tale) {
			s.admitted()
			s.intent("")
			s.outcome(held)
			s.evidence(stateRejected)
			s.delivered("d")
		}, 5, "handed over when it was REJECTED"},
		"handed over twice": {func(s *tale) {
			s.admitted()
			s.intent("")
			s.outcome(held)
			s.evidence(stateReleased)
			s.delivered("d")
			s.delivered("e")
		}, 6, "a second time"},
		"handed over of nothing": {func(s *tale) { s.admitted(); s.intent(""); s.outcome(came); s.delivered("d") }, 4, "does not name"},
		"never admitted":         {func(s *tale) { s.intent(""); s.outcome(came) }, 1, "never admitted"},
		"admitted afterwards":    {func(s *tale) { s.intent(""); s.admitted(); s.outcome(came) }, 1, "never admitted"},
		"definition refused": {func(s *tale) {
			s.tell(KindAdmission, "", "op", `"decider":"op","definitions":{"t":"sha256:d1"},"provider":"p","state":"REFUSED"`)
			s.intent("")
			s.outcome(came)
		}, 2, "never admitted"},
		"spent and never granted": {func(s *tale) {
			s.admitted()
			s.asked("c")
			s.spent("c", "SPENT", approvedOnce, "c")
			s.intent("ap-c")
			s.outcome(came)
		}, 4, "never granted"},
		"spent and never asked for": {func(s *tale) {
			s.admitted()
			s.decided("c", stateGranted, approvedOnce)
			s.spent("c", "SPENT", approvedOnce, "c")
			s.intent("ap-c")
			s.outcome(came)
		}, 4, "never asked for"},
		"declined and spent": {func(s *tale) {
			s.admitted()
			s.asked("c")
			s.decided("c", stateDeclined, "REJECTED")
			s.spent("c", "SPENT", approvedOnce, "c")
			s.intent("ap-c")
			s.outcome(came)
		}, 3, "was not granted: it was DECLINED"},
		"taken back and spent": {func(s *tale) {
			s.admitted()
			s.asked("b")
			s.decided("b", stateGranted, approvedSession)
			s.decided("b", stateRevoked, approvedSession)
			s.spent("b", stateGranted, approvedSession, "")
			s.intent("ap-b")
			s.outcome(came)
		}, 4, "was not granted: it was REVOKED"},
		"spent by another": {func(s *tale) {
			s.admitted()
			s.asked("b")
			s.decided("b", stateGranted, approvedOnce)
			s.spent("b", "SPENT", approvedOnce, "x")
			s.intent("ap-b")
			s.outcome(came)
		}, 4, "another has spent it"},
		"spent and not named": {func(s *tale) { s.admitted(); s.spent("b", "SPENT", approvedOnce, "c"); s.intent(""); s.outcome(came) }, 2, "does not name"},
		"let out, not let in": {func(s *tale) {
			s.admitted()
			s.intent("")
			s.outcome(strings.Replace(came, "ACCEPTED_OBSERVATION", "REJECTED", 1))
		}, 3, "let out"},
		"withheld, no trace": {func(s *tale) {
			s.admitted()
			s.intent("")
			s.outcome(strings.Replace(held, `"evidence":"ev-c",`, "", 1))
		}, 3, "has no evidence"},
		"evidence of nobody": {func(s *tale) { s.admitted(); s.intent(""); s.outcome(came); s.evidence(stateReleased) }, 4, "does not name"},
		"evidence comes back": {func(s *tale) {
			s.admitted()
			s.intent("")
			s.outcome(held)
			s.evidence(statePurged)
			s.evidence(stateReleased)
		}, 5, "became RELEASED when it was PURGED"},
		"declined by nobody": {func(s *tale) { s.asked("c"); s.refused(call.CodeApprovalDeclined, `,"approval":"ap-c","asked_by":"c"`) }, 2, "nobody has declined"},
		"another principal":  {func(s *tale) { s.admitted(); s.intent(""); s.outcome(came); s.records[2].Principal = "bob" }, 3, "another principal"},
		"no trace id": {func(s *tale) {
			s.admitted()
			s.intent("")
			s.outcome(came)
			s.cut(1, `"trace":"4bf92f3577b34da6a3ce929d0e0e4736",`)
		}, 2, "no trace id"},
		"no descriptor":        {func(s *tale) { s.admitted(); s.intent(""); s.outcome(came); s.cut(1, taleDescriptor+`,`) }, 2, "has no descriptor"},
		"no status":            {func(s *tale) { s.admitted(); s.intent(""); s.outcome(came); s.cut(2, `,"status":"succeeded"`) }, 3, "no status"},
		"a body that is none":  {func(s *tale) { s.admitted(); s.intent(""); s.outcome(came); s.records[2].Body = []byte(`{"status":7}`) }, 3, "cannot be read"},
		"a body that has none": {func(s *tale) { s.admitted(); s.intent(""); s.outcome(came); s.records[1].Body = nil }, 2, "cannot be read"},
	} {
		var s tale
		c.tell(&s)
		r := replayed(t, s.records)
		if r.Class != InvalidLineage || !slices.ContainsFunc(r.Gaps, func(g Gap) bool {
			return g.Class == InvalidLineage && g.Seq == c.seq && strings.Contains(g.Text, c.text)
		}) {
			t.Errorf("%s: %s, %+v; want %q at %d", name, r.Class, r.Gaps, c.text, c.seq)
		}
	}
}

// cut takes a part out of a body.
func (s *tale) cut(i int, part string) {
	s.records[i].Body = []byte(strings.Replace(string(s.records[i].Body), part, "", 1))
}

// bury makes a record a tombstone.
func (s *tale) bury(i int) { s.records[i] = s.records[i].Tombstone(99) }

// R9.1: what was pruned, what is before the beginning of an export, and what an earlier version wrote is missing, and no
// contradiction.
func TestR9_1_MissingIsNoContradiction(t *testing.T) {
	whole := func(s *tale) {
		s.admitted()
		s.asked("b")
		s.decided("b", stateGranted, approvedOnce)
		s.spent("b", "SPENT", approvedOnce, "c")
		s.intent("ap-b")
		s.outcome(held)
		s.evidence(stateReleased)
	}
	for i := range 7 {
		var s tale
		whole(&s)
		s.bury(i)
		if r := replayed(t, s.records); r.Class != PartialMissingEvidence {
			t.Errorf("record %d is pruned: %s, %+v", i+1, r.Class, r.Gaps)
		}
	}
	var s tale
	whole(&s)
	for i := range s.records {
		s.bury(i)
	}
	if r := replayed(t, s.records); r.Class != PartialMissingEvidence || r.Path.Disposition != NotKnown || len(r.Gaps) != 7 {
		t.Errorf("all is pruned: %s, %s, %+v", r.Class, r.Path.Disposition, r.Gaps)
	}
	s = tale{}
	whole(&s)
	r, err := Replay(Story{Call: "c", First: 4, Records: s.records[3:]})
	if err != nil || r.Class != PartialMissingEvidence {
		t.Errorf("an export that begins at 4: %s, %+v, %v", r.Class, r.Gaps, err)
	}
	s = tale{}
	s.admitted()
	s.intent("")
	s.outcome(came)
	s.cut(1, `"policy":"sha256:01","trace":"4bf92f3577b34da6a3ce929d0e0e4736",`)
	if r := replayed(t, s.records); r.Class != PartialMissingEvidence {
		t.Errorf("records of an earlier version: %s, %+v", r.Class, r.Gaps)
	}
}

// Collect finds what belongs to a call among the records of others, and nothing else.
func TestR9_1_Collect(t *testing.T) {
	var s tale
	s.tell(KindOpened, "", "", ``)
	s.admitted()
	s.tell(KindAdmission, "", "op", `"decider":"op","definitions":{"t":"sha256:d2"},"provider":"p","state":"ADMITTED"`)
	s.tell(KindAdmission, "", "op", `"decider":"op","definitions":{"t":"sha256:d1"},"provider":"q","state":"ADMITTED"`)
	s.asked("b")
	s.tell(KindCallRefused, "b", "alice", taleRequest+`"code":"approval_pending"`)
	s.decided("b", stateGranted, approvedOnce)
	s.intent("")
	s.records[len(s.records)-1].CallID = "x"
	s.spent("b", "SPENT", approvedOnce, "c")
	s.intent("ap-b")
	s.admitted()
	s.outcome(came)
	s.tell(KindApprovalAsked, "b", "alice", `"approval":"ap-other","asked_by":"b"`)
	story, err := Collect(&book{records: s.records}, "c")
	if err != nil {
		t.Fatal(err)
	}
	var seqs []int64
	for _, r := range story.Records {
		seqs = append(seqs, r.Seq)
	}
	if !slices.Equal(seqs, []int64{2, 5, 7, 9, 10, 12}) {
		t.Errorf("collected %v", seqs)
	}
	if r, err := Replay(story); err != nil || r.Class != Reconstructed {
		t.Errorf("%s, %+v, %v", r.Class, r.Gaps, err)
	}
	s.bury(1)
	story, err = Collect(&book{records: s.records}, "c")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := Replay(story); err != nil || r.Class != PartialMissingEvidence {
		t.Errorf("with its admission pruned: %s, %+v, %v", r.Class, r.Gaps, err)
	}
	if story, err := Collect(&book{records: s.records}, "none"); err != nil || len(story.Records) != 0 {
		t.Errorf("a call that is not there: %+v, %v", story, err)
	}
}

// An export tells the same story as the ledger that it is of, from wherever it begins.
func TestR9_1_ExportFile(t *testing.T) {
	b := newBook(t, 4)
	var s tale
	s.admitted()
	s.asked("b")
	s.decided("b", stateGranted, approvedOnce)
	s.spent("b", "SPENT", approvedOnce, "c")
	s.intent("ap-b")
	s.outcome(came)
	for _, r := range s.records {
		b.append(t, r.Entry)
		b.append(t, Entry{Time: r.Time, Kind: r.Kind, CallID: "other", Body: []byte(`{}`)})
	}
	b.sign(t)
	want, err := Collect(b, "c")
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenExport(bytes.NewReader(b.export(t, ExportOptions{})))
	if err != nil || f.Verifier != b.verifier || f.First != 1 || f.Last != 16 {
		t.Fatalf("%+v, %v", f, err)
	}
	got, err := Collect(f, "c")
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || len(got.Records) != 6 {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	part := b.export(t, ExportOptions{After: 8})
	if f, err = OpenExport(bytes.NewReader(part)); err != nil || f.First != 9 {
		t.Fatalf("%+v, %v", f, err)
	}
	if got, err = Collect(f, "c"); err != nil || len(got.Records) != 4 {
		t.Errorf("a part: %d records, %v", len(got.Records), err)
	}
	for name, bad := range map[string][]byte{"empty": nil, "no header": part[1:], "cut off": part[:len(part)-5], "not a record": append(bytes.Clone(part), "{}x\n"...)} {
		f, err := OpenExport(bytes.NewReader(bad))
		if err == nil {
			_, err = Collect(f, "c")
		}
		if !errors.Is(err, ErrExport) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// FuzzReplay: whatever the records hold, a replay ends; and what it calls Reconstructed is refused once, or let through
// and ended once, in that order.
func FuzzReplay(f *testing.F) {
	for _, c := range tales {
		var s tale
		c.tell(&s)
		f.Add(lines(s.records))
	}
	f.Fuzz(func(t *testing.T, text string) {
		story := Story{Call: "c", First: 1}
		for line := range strings.Lines(text) {
			var r Record
			var kind, id string
			if n, _ := fmt.Sscan(line, &r.Seq, &kind, &id); n < 3 {
				continue
			}
			if at := strings.IndexByte(line, '{'); at >= 0 {
				r.Body = []byte(strings.TrimSpace(line[at:]))
			}
			r.Kind, r.CallID, r.Principal = Kind(kind), call.ID(id), "alice"
			if strings.HasPrefix(id, "{") {
				r.CallID = ""
			}
			story.Records = append(story.Records, r)
		}
		r, err := Replay(story)
		if err != nil || r.Class != Reconstructed {
			return
		}
		var ends []Kind
		for _, rec := range story.Records {
			if rec.CallID == "c" && slices.Contains([]Kind{KindCallIntent, KindCallOutcome, KindCallRefused}, rec.Kind) {
				ends = append(ends, rec.Kind)
			}
		}
		if !slices.Equal(ends, []Kind{KindCallRefused}) && !slices.Equal(ends, []Kind{KindCallIntent, KindCallOutcome}) {
			t.Fatalf("%v is reconstructed:\n%s", ends, text)
		}
		if len(r.Gaps) != 0 || r.Path.Disposition == "" || r.Path.Trace == "" || r.Path.Policy.Snapshot == "" {
			t.Fatalf("reconstructed as %+v", r)
		}
	})
}
