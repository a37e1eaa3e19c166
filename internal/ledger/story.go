package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/ostiary/ostiary/call"
)

// Story is all that tells of one call: its own records, those of the approval that it spent, whoever asked for it, and the
// admission of the definition that it was sent under.
type Story struct {
	Call    call.ID
	First   int64    // the first record that there is to look at; what would be before it may exist elsewhere
	Records []Record // in order
}

// The bodies of records, as far as a call is rebuilt from them. Members that are not named here are of no matter.
type (
	callBody struct {
		Approval      string     `json:"approval"`
		Arguments     Content    `json:"arguments"`
		Artefacts     []struct{} `json:"artefacts"`
		AskedBy       call.ID    `json:"asked_by"`
		Code          call.Code  `json:"code"`
		Delivery      string     `json:"delivery"`
		Descriptor    string     `json:"descriptor"`
		Effect        string     `json:"effect"`
		Error         *Content   `json:"error"`
		Evidence      string     `json:"evidence"`
		Export        string     `json:"export"`
		Generation    string     `json:"generation"`
		HTTPStatus    int64      `json:"http_status"`
		Policy        string     `json:"policy"`
		Provider      string     `json:"provider"`
		ProviderError *int64     `json:"provider_error"`
		Reasons       []string   `json:"reasons"`
		Released      *Content   `json:"released"`
		Result        *Content   `json:"result"`
		Rule          string     `json:"rule"`
		Schema        string     `json:"schema"`
		Sensitivity   string     `json:"sensitivity"`
		Stage         string     `json:"stage"`
		Status        string     `json:"status"`
		Told          string     `json:"told"`
		Tool          string     `json:"tool"`
		Trace         string     `json:"trace"`
		Verdict       string     `json:"verdict"`
	}
	approvalBody struct {
		Approval   string  `json:"approval"`
		AskedBy    call.ID `json:"asked_by"`
		Binding    string  `json:"binding"`
		Decider    string  `json:"decider"`
		Decision   string  `json:"decision"`
		Descriptor string  `json:"descriptor"`
		Effect     string  `json:"effect"`
		Policy     string  `json:"policy"`
		Provider   string  `json:"provider"`
		Reason     string  `json:"reason"`
		SpentBy    call.ID `json:"spent_by"`
		State      string  `json:"state"`
		Tool       string  `json:"tool"`
	}
	admissionBody struct {
		Decider     string            `json:"decider"`
		Definitions map[string]string `json:"definitions"`
		Provider    string            `json:"provider"`
		Reason      string            `json:"reason"`
		State       string            `json:"state"`
	}
	evidenceBody struct {
		Decider  string `json:"decider"`
		Evidence string `json:"evidence"`
		Reason   string `json:"reason"`
		State    string `json:"state"`
	}
	deliveryBody struct {
		Evidence   string  `json:"evidence"`
		ReleasedBy string  `json:"released_by"`
		To         call.ID `json:"to"`
	}
)

// Content stands for bytes that the ledger does not hold: their number and their digest.
type Content struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// read reads a body. It is exact about names and types, and knows nothing of a tombstone.
func read[B any](r *Record) (b B, err error) {
	if err := json.Unmarshal(r.Body, &b); err != nil {
		return b, fmt.Errorf("record %d, %s: %w", r.Seq, r.Kind, err)
	}
	return b, nil
}

// admits says whether the record is the admission of a definition.
func (b *admissionBody) admits(provider, descriptor string) bool {
	if b.Provider != provider || b.State != stateAdmitted {
		return false
	}
	for _, d := range b.Definitions {
		if d == descriptor {
			return true
		}
	}
	return false
}

// Collect finds the story of a call. One that is not known has no records.
func Collect(f Finder, id call.ID) (Story, error) {
	s := Story{Call: id, First: 1}
	if err := f.RecordsOfCall(id, func(r Record) error {
		s.Records = append(s.Records, r)
		return nil
	}); err != nil {
		return Story{}, err
	}
	var approval string
	var asker call.ID
	var intent *Record
	var sent callBody
	for i := range s.Records {
		r := &s.Records[i]
		if r.Pruned > 0 {
			continue
		}
		switch r.Kind { // what cannot be read is for Replay to say
		case KindCallIntent:
			if b, err := read[callBody](r); err == nil {
				intent, sent = r, b
			}
		case KindCallRefused:
			if b, err := read[callBody](r); err == nil && b.Approval != "" {
				approval, asker = b.Approval, b.AskedBy
			}
		case KindApprovalSpent:
			if b, err := read[approvalBody](r); err == nil {
				approval, asker = b.Approval, b.AskedBy
			}
		}
	}
	var more []Record
	if asker != "" && asker != id {
		if err := f.RecordsOfCall(asker, func(r Record) error {
			if r.Kind != KindApprovalAsked && r.Kind != KindApprovalDecided {
				return nil
			}
			if b, err := read[approvalBody](&r); r.Pruned > 0 || err == nil && b.Approval == approval {
				more = append(more, r)
			}
			return nil
		}); err != nil {
			return Story{}, err
		}
	}
	if intent != nil {
		found, err := admissionOf(f, intent.Seq, &sent)
		if err != nil {
			return Story{}, err
		}
		more = append(more, found...)
	}
	s.Records = append(s.Records, more...)
	slices.SortFunc(s.Records, func(a, b Record) int { return cmp.Compare(a.Seq, b.Seq) })
	return s, nil
}

// admissionOf finds the last admission of a definition before a call was sent under it; if there is none, the last that has
// been pruned, for it may have been that one.
func admissionOf(f Finder, before int64, sent *callBody) ([]Record, error) {
	var found, pruned []Record
	err := f.RecordsOfKind(KindAdmission, func(r Record) error {
		switch {
		case r.Seq >= before:
		case r.Pruned > 0:
			pruned = append(pruned[:0], r)
		default:
			if b, err := read[admissionBody](&r); err == nil && b.admits(sent.Provider, sent.Descriptor) {
				found = append(found[:0], r)
			}
		}
		return nil
	})
	if len(found) == 0 {
		found = pruned
	}
	return found, err
}

// Admitted is what an admission's record admits: of which provider, and the digests of its definitions by name; nothing if it
// is none, or was pruned.
func Admitted(r *Record) (provider string, definitions map[string]string) {
	if r.Kind != KindAdmission || r.Pruned > 0 {
		return "", nil
	}
	b, err := read[admissionBody](r)
	if err != nil || b.State != stateAdmitted {
		return "", nil
	}
	return b.Provider, b.Definitions
}
