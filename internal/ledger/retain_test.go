package ledger

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
)

// Property (R9.1): whatever was admitted, refused and admitted again, each definition that was admitted at the cutoff or has
// been since keeps the record that admitted it, so that no call from then on loses its admission; and what was set aside
// before the cutoff keeps none.
func TestR9_1_AdmissionsInForceAreKept(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cutoff := time.Unix(rapid.Int64Range(0, 30).Draw(rt, "cutoff"), 0)
		type definition struct{ provider, name string }
		type admitted struct {
			digest string
			seq    int64
		}
		state := map[definition]admitted{}
		must := map[int64]bool{} // records that some call from the cutoff on was let through by
		refused := map[int64]bool{}
		var records []Record
		note := func() {
			for _, a := range state {
				must[a.seq] = true
			}
		}
		noted := false
		for seq := int64(1); seq <= rapid.Int64Range(0, 25).Draw(rt, "decisions"); seq++ {
			at := time.Unix(seq, 0)
			if !noted && !at.Before(cutoff) {
				note()
				noted = true
			}
			d := definition{fmt.Sprint("p", rapid.IntRange(0, 1).Draw(rt, "provider")), fmt.Sprint("t", rapid.IntRange(0, 1).Draw(rt, "tool"))}
			digest := fmt.Sprint("d", rapid.IntRange(0, 2).Draw(rt, "digest"))
			verdict := rapid.SampledFrom([]string{stateAdmitted, "REFUSED"}).Draw(rt, "verdict")
			records = append(records, Record{Seq: seq, Entry: Entry{Time: at, Kind: KindAdmission,
				Body: fmt.Appendf(nil, `{"definitions":{%q:%q},"provider":%q,"state":%q}`, d.name, digest, d.provider, verdict)}})
			switch {
			case verdict == stateAdmitted:
				state[d] = admitted{digest, seq}
			case state[d].digest == digest:
				delete(state, d)
				refused[seq] = true
			default:
				refused[seq] = true
			}
			if !at.Before(cutoff) {
				must[seq] = true
				note()
			}
		}
		note() // calls that are yet to come
		got := InForce(records, cutoff)
		for seq := range must {
			if !got[seq] {
				rt.Fatalf("record %d is needed since %d, and not kept: %v", seq, cutoff.Unix(), got)
			}
		}
		for seq := range got {
			if !must[seq] && !refused[seq] {
				rt.Fatalf("record %d is kept for nothing since %d", seq, cutoff.Unix())
			}
		}
	})
}

// What is needed keeps its content, however old it is; so does what cannot be read.
func TestR8_6_Needed(t *testing.T) {
	n := Needed{Calls: map[call.ID]bool{"c": true, "": true}, Approvals: map[string]bool{"ap-1": true}, Admissions: map[int64]bool{7: true},
		Quarantines: map[Quarantine]bool{{"p", "t"}: true, {"q", ""}: true}}
	for name, c := range map[string]struct {
		r    Record
		want bool
	}{
		"another call":               {Record{Entry: Entry{Kind: KindCallIntent, CallID: "d"}}, false},
		"an open call":               {Record{Entry: Entry{Kind: KindCallIntent, CallID: "c"}}, true},
		"of no call":                 {Record{Entry: Entry{Kind: KindOpened}}, false},
		"what vouches":               {Record{Entry: Entry{Kind: KindPruned}}, true},
		"a tombstone":                {Record{Entry: Entry{Kind: KindOpened}, Pruned: 9}, true},
		"a grant":                    {Record{Entry: Entry{Kind: KindApprovalDecided, CallID: "d", Body: []byte(`{"approval":"ap-1"}`)}}, true},
		"an approval that is over":   {Record{Entry: Entry{Kind: KindApprovalAsked, CallID: "d", Body: []byte(`{"approval":"ap-2"}`)}}, false},
		"an approval that is not":    {Record{Entry: Entry{Kind: KindApprovalAsked, CallID: "d", Body: []byte(`{"approval":2}`)}}, true},
		"an admission in force":      {Record{Seq: 7, Entry: Entry{Kind: KindAdmission}}, true},
		"an admission set aside":     {Record{Seq: 8, Entry: Entry{Kind: KindAdmission}}, false},
		"a tool in quarantine":       {Record{Entry: Entry{Kind: KindQuarantineSet, Body: []byte(`{"provider":"p","tool":"t"}`)}}, true},
		"another tool, let go":       {Record{Entry: Entry{Kind: KindQuarantineSet, Body: []byte(`{"provider":"p","tool":"u"}`)}}, false},
		"a provider in quarantine":   {Record{Entry: Entry{Kind: KindQuarantineSet, Body: []byte(`{"provider":"q","tool":""}`)}}, true},
		"a quarantine of nothing":    {Record{Entry: Entry{Kind: KindQuarantineSet, Body: []byte(`[]`)}}, true},
		"the end of that quarantine": {Record{Entry: Entry{Kind: KindQuarantineEnded, Body: []byte(`{"provider":"p","tool":"t"}`)}}, false},
	} {
		if got := n.Keeps(&c.r); got != c.want {
			t.Errorf("%s: kept %v, want %v", name, got, c.want)
		}
	}
}
