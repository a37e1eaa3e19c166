package ledger

import "github.com/ostiary/ostiary/call"

// Completeness says how much of a call its records tell (R9.1). The list only grows.
type Completeness string

// What a trail can be. PARTIAL_REDACTED and BLOCKED_BY_POLICY depend on what a reader may see; they are for the edges.
const (
	Reconstructed          Completeness = "RECONSTRUCTED"
	PartialMissingEvidence Completeness = "PARTIAL_MISSING_EVIDENCE" // no end yet: the call runs, or its end was lost
	InvalidLineage         Completeness = "INVALID_LINEAGE"          // records that cannot be of one call
)

// Trail is all that the ledger has of one call, in order.
type Trail struct {
	Records      []Record
	Intent       *Record // nil: it was refused before it was sent, or its intent is missing
	End          *Record // the outcome or the refusal; nil: there is none
	Completeness Completeness
}

// OfCall rebuilds a call from its records. A call that the ledger does not know has an empty trail.
func OfCall(view View, id call.ID) (Trail, error) {
	var t Trail
	if err := view.RecordsOfCall(id, func(r Record) error {
		t.Records = append(t.Records, r)
		return nil
	}); err != nil {
		return Trail{}, err
	}
	t.Completeness = t.judge()
	return t, nil
}

// judge finds the ends of the trail. A call is refused before its intent, or has one intent and then one outcome (I2).
func (t *Trail) judge() Completeness {
	valid := true
	for i := range t.Records {
		r := &t.Records[i]
		switch r.Kind {
		case KindCallIntent:
			valid = valid && t.Intent == nil && t.End == nil
			t.Intent = r
		case KindCallOutcome:
			valid = valid && t.Intent != nil && t.End == nil
			t.End = r
		case KindCallRefused:
			valid = valid && t.Intent == nil && t.End == nil
			t.End = r
		}
	}
	switch {
	case !valid:
		return InvalidLineage
	case t.End == nil:
		return PartialMissingEvidence
	}
	return Reconstructed
}
