package ledger

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ostiary/ostiary/call"
)

// Completeness says how far a call can be rebuilt from its records (R9.1). The list only grows.
type Completeness string

// What a replay can end with, from the best to the worst. If a call has several of them, the worst counts.
const (
	// Reconstructed: every step is on record and every join key fits. Arguments and results are in the ledger by their
	// digests alone; that is no gap.
	Reconstructed Completeness = "RECONSTRUCTED"
	// PartialRedacted: what came was let out redacted, or was held, so that only its digest is here.
	PartialRedacted Completeness = "PARTIAL_REDACTED"
	// BlockedByPolicy: a decision ended the call before anything was sent.
	BlockedByPolicy Completeness = "BLOCKED_BY_POLICY"
	// PartialMissingEvidence: something that was there is not any more, or not yet: evidence or records that were purged or
	// pruned, an end that has not come, records of a version that wrote less.
	PartialMissingEvidence Completeness = "PARTIAL_MISSING_EVIDENCE"
	// InvalidLineage: a join key is missing or contradicts, or the order is not that of the path.
	InvalidLineage Completeness = "INVALID_LINEAGE"
)

var gravity = map[Completeness]int{Reconstructed: 0, PartialRedacted: 1, BlockedByPolicy: 2, PartialMissingEvidence: 3, InvalidLineage: 4}

// ErrNoCall says that a story has no record of its call.
var ErrNoCall = errors.New("there is no such call")

// Rebuilt is a call as its records tell it.
type Rebuilt struct {
	Class Completeness
	Gaps  []Gap // why it is not Reconstructed, in the order in which they were found
	Path  Path
}

// Gap is one thing that keeps a call from being Reconstructed.
type Gap struct {
	Seq   int64        `json:"seq,omitempty"` // of the record that it is about; 0: of none
	Class Completeness `json:"class"`
	Text  string       `json:"text"`
}

// Path is what is known of a call, in the order of the path. What is not known is nil or empty.
type Path struct {
	Principal   string     `json:"principal,omitempty"`
	Session     string     `json:"session,omitempty"`
	Trace       string     `json:"trace,omitempty"`
	Request     Request    `json:"request"`
	Provider    Attachment `json:"provider"`
	Admission   *Admission `json:"admission,omitempty"`
	Policy      Policy     `json:"policy"`
	Approval    *Approval  `json:"approval,omitempty"`
	Intent      int64      `json:"intent,omitempty"` // sequence of its record
	Outcome     *Outcome   `json:"outcome,omitempty"`
	Verdict     *Verdict   `json:"verdict,omitempty"`
	Evidence    *Evidence  `json:"evidence,omitempty"`
	Disposition string     `json:"disposition"` // see the constants
}

// Dispositions: what the caller was left with.
const (
	Refused          = "refused"           // nothing was sent
	Open             = "open"              // no end is on record
	Released         = "released"          // the provider's answer, as it came
	ReleasedRedacted = "released_redacted" // the provider's answer, with parts taken out
	Withheld         = "withheld"          // what came was held
	Delivered        = "delivered"         // what came was held, and handed over when somebody had released it
	NotReleased      = "not_released"      // what came was not let in, and nothing but its digest was kept
	NotTold          = "not_told"          // the outcome could be recorded only after the caller had been told that it could not
	NothingCame      = "nothing_came"      // there was nothing to release
	NotKnown         = "not_known"         // the record that would say it is not there any more
)

type (
	// Request is what was asked for.
	Request struct {
		Seq       int64     `json:"seq"` // of the intent, or of the refusal
		Time      time.Time `json:"time"`
		Export    string    `json:"export,omitempty"`
		Tool      string    `json:"tool"`
		Effect    string    `json:"effect,omitempty"`
		Arguments Content   `json:"arguments"`
	}
	// Attachment is whom it was for, under which definition.
	Attachment struct {
		Package    string `json:"package,omitempty"`
		Generation string `json:"generation,omitempty"`
		Descriptor string `json:"descriptor,omitempty"`
		Schema     string `json:"schema,omitempty"`
	}
	// Admission is who admitted that definition.
	Admission struct {
		Seq     int64     `json:"seq"`
		Time    time.Time `json:"time"`
		Decider string    `json:"decider"`
		Reason  string    `json:"reason,omitempty"`
	}
	// Policy is which rule decided, in which snapshot of the policy.
	Policy struct {
		Rule     string `json:"rule,omitempty"`
		Snapshot string `json:"snapshot,omitempty"`
	}
	// Approval is who agreed. The sequences are those of its records; 0: there is none.
	Approval struct {
		ID       string  `json:"id"`
		AskedBy  call.ID `json:"asked_by,omitempty"`
		Asked    int64   `json:"asked,omitempty"`
		Decided  int64   `json:"decided,omitempty"`
		Spent    int64   `json:"spent,omitempty"`
		State    string  `json:"state,omitempty"`
		Decision string  `json:"decision,omitempty"`
		Decider  string  `json:"decider,omitempty"`
		Reason   string  `json:"reason,omitempty"`
	}
	// Outcome is what is known of the effect.
	Outcome struct {
		Seq           int64     `json:"seq"`
		Time          time.Time `json:"time"`
		Status        string    `json:"status"`
		Delivery      string    `json:"delivery"`
		Effect        string    `json:"effect,omitempty"`
		Code          call.Code `json:"code,omitempty"`
		Stage         string    `json:"stage,omitempty"`
		Told          string    `json:"told,omitempty"` // what the caller was told in its place
		HTTPStatus    int64     `json:"http_status,omitempty"`
		ProviderError *int64    `json:"provider_error,omitempty"`
		Result        *Content  `json:"result,omitempty"`   // what came
		Error         *Content  `json:"error,omitempty"`    // the words of an error that came
		Released      *Content  `json:"released,omitempty"` // what was let out, if it is not what came
	}
	// Verdict is what the firewall said.
	Verdict struct {
		Kind        string   `json:"kind"`
		Reasons     []string `json:"reasons,omitempty"`
		Sensitivity string   `json:"sensitivity,omitempty"`
		Artefacts   int      `json:"artefacts,omitempty"`
	}
	// Evidence is what was held, and what became of it.
	Evidence struct {
		ID        string  `json:"id"`
		State     string  `json:"state"`
		Decider   string  `json:"decider,omitempty"`
		Reason    string  `json:"reason,omitempty"`
		Steps     []int64 `json:"steps,omitempty"`     // records of the steps that were taken with it
		Delivered int64   `json:"delivered,omitempty"` // record of that its caller was given it
		To        call.ID `json:"to,omitempty"`        // the call that was answered with it
	}
)

// The words of other records that a replay looks at.
const (
	stateAdmitted = "ADMITTED"
	stateGranted  = "GRANTED"
	stateDeclined = "DECLINED"
	stateRevoked  = "REVOKED"
	stateHeld     = "HELD"
	stateReleased = "RELEASED"
	stateRejected = "REJECTED"
	statePurged   = "PURGED"

	approvedOnce    = "APPROVED_ONCE"
	approvedSession = "APPROVED_FOR_SESSION"
	acceptedPrefix  = "ACCEPTED_"
)

// Replay rebuilds a call from its story and says how far that goes. It decides on the records alone. The only error is
// ErrNoCall; what is wrong with the records is in the gaps.
func Replay(s Story) (Rebuilt, error) {
	r := replay{story: &s}
	r.out.Class = Reconstructed
	if !r.sort() {
		return Rebuilt{}, ErrNoCall
	}
	r.call()
	r.admission()
	r.approval()
	r.evidence()
	r.disposition()
	return r.out, nil
}

// replay is the work of one Replay.
type replay struct {
	story *Story
	out   Rebuilt

	intent, end *Record // the end is an outcome or a refusal
	sent, ended callBody
	pruned      map[Kind]bool // kinds of which there is a tombstone
	old         bool          // the call's records are of a version that wrote less
}

func (r *replay) gap(seq int64, c Completeness, format string, args ...any) {
	r.out.Gaps = append(r.out.Gaps, Gap{seq, c, fmt.Sprintf(format, args...)})
	if gravity[c] > gravity[r.out.Class] {
		r.out.Class = c
	}
}

func (r *replay) invalid(seq int64, format string, args ...any) {
	r.gap(seq, InvalidLineage, format, args...)
}

// absent says that a record which must be there is not. It may be elsewhere, or be a tombstone now; if neither can be, the
// lineage is broken.
func (r *replay) absent(seq int64, text string, kinds ...Kind) {
	for _, k := range kinds {
		if r.pruned[k] {
			r.gap(seq, PartialMissingEvidence, "%s: it may be one that was pruned", text)
			return
		}
	}
	if r.old {
		r.gap(seq, PartialMissingEvidence, "%s: an earlier version did not write how to find it", text)
		return
	}
	if r.story.First > 1 {
		r.gap(seq, PartialMissingEvidence, "%s: it may be before record %d, with which this begins", text, r.story.First)
		return
	}
	r.invalid(seq, "%s", text)
}

// sort checks the order and finds the ends of the call: it is refused before its intent, or has one intent and then one
// outcome (I2). false: there is no record of the call at all.
func (r *replay) sort() (known bool) {
	r.pruned = map[Kind]bool{}
	last := int64(0)
	for i := range r.story.Records {
		rec := &r.story.Records[i]
		if rec.Seq <= last {
			r.invalid(rec.Seq, "the record stands behind record %d", last)
		}
		last = max(last, rec.Seq)
		own := rec.CallID == r.story.Call
		known = known || own
		if rec.Pruned > 0 {
			r.pruned[rec.Kind] = true
			r.gap(rec.Seq, PartialMissingEvidence, "%s was pruned, on record %d", rec.Kind, rec.Pruned)
		}
		if !own {
			continue
		}
		switch rec.Kind {
		case KindCallIntent:
			if r.intent != nil || r.end != nil {
				r.invalid(rec.Seq, "an intent where the call had one, or had ended")
				continue
			}
			r.intent = rec
		case KindCallOutcome, KindCallRefused:
			switch {
			case r.end != nil:
				r.invalid(rec.Seq, "a second end of the call")
				continue
			case rec.Kind == KindCallOutcome && r.intent == nil:
				r.invalid(rec.Seq, "an outcome without an intent")
			case rec.Kind == KindCallRefused && r.intent != nil:
				r.invalid(rec.Seq, "a refusal of what was let through")
			}
			r.end = rec
		}
	}
	return known
}

// call reads the call's own records, and what they say of each other.
func (r *replay) call() {
	p := &r.out.Path
	switch {
	case r.intent == nil && r.end == nil:
		r.gap(0, PartialMissingEvidence, "neither an intent nor a refusal is on record")
	case r.end == nil:
		r.gap(r.intent.Seq, PartialMissingEvidence, "there is no end: the call is in work, or what became of it was not recorded yet")
	}
	if r.intent != nil && r.intent.Pruned == 0 {
		p.Intent = r.intent.Seq
		if r.body(r.intent, &r.sent) {
			r.request(r.intent, &r.sent, [2]string{"descriptor", r.sent.Descriptor}, [2]string{"effect", r.sent.Effect}, [2]string{"generation", r.sent.Generation},
				[2]string{"provider", r.sent.Provider}, [2]string{"rule", r.sent.Rule}, [2]string{"schema", r.sent.Schema})
		}
	}
	if r.end == nil || r.end.Pruned > 0 || !r.body(r.end, &r.ended) {
		return
	}
	e := &r.ended
	p.Outcome = &Outcome{Seq: r.end.Seq, Time: r.end.Time, Status: e.Status, Delivery: e.Delivery, Effect: e.Effect, Code: e.Code, Stage: e.Stage,
		Told: e.Told, HTTPStatus: e.HTTPStatus, ProviderError: e.ProviderError, Result: e.Result, Error: e.Error, Released: e.Released}
	if e.Verdict != "" {
		p.Verdict = &Verdict{e.Verdict, e.Reasons, e.Sensitivity, len(e.Artefacts)}
	}
	if r.end.Kind == KindCallRefused {
		p.Outcome.Status, p.Outcome.Delivery = call.Failed.String(), call.NotSent.String()
		r.request(r.end, e, [2]string{"code", string(e.Code)}, [2]string{"stage", e.Stage})
		if decided(e.Code) {
			r.gap(r.end.Seq, BlockedByPolicy, "the call was refused: %s", e.Code)
			if e.Code == call.CodeDenied && e.Rule == "" {
				r.invalid(r.end.Seq, "the rule that denied the call is not on record")
			}
		}
		return
	}
	if r.intent != nil && (r.intent.Pruned == 0 && (r.intent.Principal != r.end.Principal || r.intent.Session != r.end.Session)) {
		r.invalid(r.end.Seq, "the outcome is of another principal or session than the intent")
	}
	var status call.Status
	var delivery call.Delivery
	if status.UnmarshalText([]byte(e.Status)) != nil || delivery.UnmarshalText([]byte(e.Delivery)) != nil {
		r.invalid(r.end.Seq, "the outcome has no status, or no delivery")
	}
}

func (r *replay) body(rec *Record, into *callBody) bool {
	b, err := read[callBody](rec)
	if err != nil {
		r.invalid(rec.Seq, "%s cannot be read", rec.Kind)
		return false
	}
	*into = b
	return true
}

// request takes over who asked for what. must are further members that no such record is without, by name.
func (r *replay) request(rec *Record, b *callBody, must ...[2]string) {
	p := &r.out.Path
	p.Principal, p.Session, p.Trace = rec.Principal, rec.Session, b.Trace
	p.Request = Request{Seq: rec.Seq, Time: rec.Time, Export: b.Export, Tool: b.Tool, Effect: b.Effect, Arguments: b.Arguments}
	p.Provider = Attachment{b.Provider, b.Generation, b.Descriptor, b.Schema}
	p.Policy = Policy{b.Rule, b.Policy}
	if rec.Kind == KindCallIntent && b.Tool == "" {
		r.invalid(rec.Seq, "%s has no tool", rec.Kind)
	}
	for _, m := range append([][2]string{{"digest of the arguments", b.Arguments.SHA256}}, must...) {
		if m[1] == "" {
			r.invalid(rec.Seq, "%s has no %s", rec.Kind, m[0])
		}
	}
	switch {
	case b.Trace == "" && b.Policy == "":
		r.old = true
		r.gap(rec.Seq, PartialMissingEvidence, "an earlier version wrote %s: it has no trace id and no policy snapshot", rec.Kind)
	case b.Trace == "" || b.Policy == "":
		r.invalid(rec.Seq, "%s has no trace id, or no policy snapshot", rec.Kind)
	}
}

// decided says that a refusal is somebody's or some rule's decision, and no fault on the way.
func decided(c call.Code) bool {
	switch c {
	case call.CodeLedgerUnavailable:
		return false
	case call.CodeSchemaDrift:
		return true
	}
	switch c.Info().Stage {
	case call.StageDecision, call.StageApproval, call.StageFirewall:
		return true
	}
	return false
}

// admission looks for who admitted the definition that the call was sent under (R6.6).
func (r *replay) admission() {
	if r.out.Path.Intent == 0 || r.sent.Descriptor == "" {
		return
	}
	for i := range r.story.Records {
		rec := &r.story.Records[i]
		if rec.Kind != KindAdmission || rec.Pruned > 0 || rec.Seq >= r.intent.Seq {
			continue
		}
		if b, err := read[admissionBody](rec); err == nil && b.admits(r.sent.Provider, r.sent.Descriptor) {
			r.out.Path.Admission = &Admission{rec.Seq, rec.Time, b.Decider, b.Reason}
		}
	}
	if r.out.Path.Admission == nil {
		r.absent(r.intent.Seq, "the definition that the call was sent under was never admitted", KindAdmission)
	}
}

// disposition says what the caller was left with.
func (r *replay) disposition() {
	p, e := &r.out.Path, &r.ended
	accepted := strings.HasPrefix(e.Verdict, acceptedPrefix)
	came := e.Result != nil || e.Error != nil
	held := e.Code == call.CodeWithheld || e.Code == call.CodeUnsupportedContent || e.Code == call.CodeInputRequired
	switch {
	case r.end == nil:
		p.Disposition = Open
	case r.end.Kind == KindCallRefused:
		p.Disposition = Refused
	case p.Outcome == nil:
		p.Disposition = NotKnown
	case e.Told != "":
		p.Disposition = NotTold
		r.gap(r.end.Seq, PartialRedacted, "the caller was told %s in place of the outcome", e.Told)
	case !came && !held:
		p.Disposition = NothingCame
	case held || e.Error != nil && e.Evidence != "":
		p.Disposition = Withheld
		if accepted {
			r.invalid(r.end.Seq, "what was accepted was withheld all the same")
		}
		if e.Evidence == "" {
			r.invalid(r.end.Seq, "what was withheld has no evidence")
		}
		if p.Evidence != nil && p.Evidence.Delivered > 0 {
			p.Disposition = Delivered
		}
		r.gap(r.end.Seq, PartialRedacted, "what came was held: the ledger has its digest")
	case e.Verdict == "":
		p.Disposition = NotReleased
		r.gap(r.end.Seq, PartialRedacted, "what came was not let in: the ledger has its digest")
	case !accepted:
		p.Disposition = Released
		r.invalid(r.end.Seq, "what was not accepted was let out")
	case e.Released != nil:
		p.Disposition = ReleasedRedacted
		r.gap(r.end.Seq, PartialRedacted, "what came was let out with parts taken out")
	default:
		p.Disposition = Released
	}
}
