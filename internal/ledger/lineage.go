package ledger

import (
	"github.com/ostiary/ostiary/call"
)

// approval follows a grant from the question to the call that spent it (R7.5), or the request that a refused call waited
// for.
func (r *replay) approval() {
	id, at := r.sent.Approval, r.intent
	if r.end != nil && r.end.Kind == KindCallRefused {
		id, at = r.ended.Approval, r.end
	}
	if id == "" {
		r.noApproval()
		return
	}
	a := &Approval{ID: id, AskedBy: r.ended.AskedBy}
	r.out.Path.Approval = a
	var asked, decided, spent approvalBody
	for i := range r.story.Records {
		rec := &r.story.Records[i]
		if rec.Pruned > 0 || rec.Kind != KindApprovalAsked && rec.Kind != KindApprovalDecided && rec.Kind != KindApprovalSpent {
			continue
		}
		b, err := read[approvalBody](rec)
		if err != nil {
			r.invalid(rec.Seq, "%s cannot be read", rec.Kind)
			continue
		}
		if b.Approval != id { // the call's own request, when a grant for the session came first
			continue
		}
		if rec.Principal != at.Principal || rec.Session != at.Session {
			r.invalid(rec.Seq, "%s is of another principal or session than the call", rec.Kind)
		}
		if b.AskedBy == "" || rec.Kind != KindApprovalSpent && b.AskedBy != rec.CallID {
			r.invalid(rec.Seq, "%s does not belong to the call that asked", rec.Kind)
		}
		switch rec.Kind {
		case KindApprovalAsked:
			if a.Asked != 0 || a.Decided != 0 || a.Spent != 0 {
				r.invalid(rec.Seq, "the approval was asked for when it was there already")
				continue
			}
			a.Asked, a.AskedBy, asked = rec.Seq, b.AskedBy, b
		case KindApprovalDecided:
			if a.Spent != 0 { // of a grant for a session: it goes on after this call
				continue
			}
			a.Decided, decided = rec.Seq, b
			a.State, a.Decision, a.Decider, a.Reason = b.State, b.Decision, b.Decider, b.Reason
		case KindApprovalSpent:
			if a.Spent != 0 || rec.CallID != r.story.Call {
				r.invalid(rec.Seq, "the approval was spent a second time")
				continue
			}
			a.Spent, spent = rec.Seq, b
			a.State = b.State
		}
	}
	r.question(at, a, &asked)
	if at == r.intent {
		r.grant(a, &asked, &decided, &spent)
	}
}

// noApproval: a call that needed none has spent none.
func (r *replay) noApproval() {
	for i := range r.story.Records {
		rec := &r.story.Records[i]
		if rec.Kind == KindApprovalSpent && rec.CallID == r.story.Call && !(r.intent != nil && r.intent.Pruned > 0) {
			r.invalid(rec.Seq, "the call spent an approval that it does not name")
		}
	}
}

// question: what a call waited for was asked for before, for the same tool.
func (r *replay) question(at *Record, a *Approval, asked *approvalBody) {
	switch {
	case a.Asked == 0:
		r.absent(at.Seq, "the approval that the call names was never asked for", KindApprovalAsked)
	case a.Asked > at.Seq:
		r.invalid(a.Asked, "the approval was asked for after the call had ended")
	case asked.Tool != r.out.Path.Request.Tool || !r.old && (asked.Descriptor != r.out.Path.Provider.Descriptor || asked.Provider != r.out.Path.Provider.Package):
		r.invalid(a.Asked, "the approval was asked for another tool")
	}
	if r.ended.Code != call.CodeApprovalDeclined || at != r.end {
		return
	}
	switch {
	case a.Decided == 0 || a.Decided > at.Seq:
		r.absent(at.Seq, "nobody has declined the approval", KindApprovalDecided)
	case a.State != stateDeclined && a.State != stateRevoked:
		r.invalid(a.Decided, "the call was refused as declined, and the approval was %s", a.State)
	}
}

// grant: what the call spent was granted, for exactly this, and not taken back.
func (r *replay) grant(a *Approval, asked, decided, spent *approvalBody) {
	at := r.intent.Seq
	if a.Spent == 0 {
		r.absent(at, "the approval that the call names was not spent by it", KindApprovalSpent)
	} else if a.Spent > at {
		r.invalid(a.Spent, "the approval was spent after the call had been let through")
	}
	if a.Decided == 0 {
		r.absent(at, "the approval that the call spent was never granted", KindApprovalDecided)
		return
	}
	once := decided.Decision == approvedOnce
	switch {
	case a.Decided < a.Asked:
		r.invalid(a.Decided, "the approval was granted before it was asked for")
	case a.Decided > at:
		r.invalid(a.Decided, "the approval was granted after the call had been let through")
	case decided.State != stateGranted || !once && decided.Decision != approvedSession || decided.Decider == "":
		r.invalid(a.Decided, "the approval that the call spent was not granted: it was %s", decided.State)
	}
	if a.Spent == 0 {
		return
	}
	if once && spent.SpentBy != r.story.Call {
		r.invalid(a.Spent, "the approval was for one call, and another has spent it")
	}
	if spent.Tool != r.sent.Tool || spent.Descriptor != r.sent.Descriptor || spent.Effect != r.sent.Effect || spent.Provider != r.sent.Provider ||
		r.sent.Policy != "" && spent.Policy != r.sent.Policy {
		r.invalid(a.Spent, "the approval is not for what was sent")
	}
	if spent.Binding == "" || spent.Binding != decided.Binding || a.Asked != 0 && spent.Binding != asked.Binding {
		r.invalid(a.Spent, "what was spent is not what was asked for and granted")
	}
}

// evidence follows what was held: HELD, then RELEASED or REJECTED, then PURGED (R8.6).
func (r *replay) evidence() {
	id := r.ended.Evidence
	state := stateHeld
	for i := range r.story.Records {
		rec := &r.story.Records[i]
		if rec.Kind == KindResultDelivered && rec.CallID == r.story.Call && rec.Pruned == 0 {
			r.delivery(rec, id, state)
			continue
		}
		if rec.Kind != KindEvidenceDecided || rec.CallID != r.story.Call || rec.Pruned > 0 {
			continue
		}
		b, err := read[evidenceBody](rec)
		switch {
		case err != nil:
			r.invalid(rec.Seq, "%s cannot be read", rec.Kind)
			continue
		case r.out.Path.Outcome == nil && r.end != nil && r.end.Pruned > 0: // what would name it is gone
			id = b.Evidence
		case id == "" || b.Evidence != id:
			r.invalid(rec.Seq, "evidence that the call does not name")
			continue
		case rec.Seq < r.end.Seq:
			r.invalid(rec.Seq, "evidence was decided on before it was held")
		}
		if !follows(state, b.State) {
			r.invalid(rec.Seq, "evidence became %s when it was %s", b.State, state)
		}
		state = b.State
		if r.out.Path.Evidence == nil {
			r.out.Path.Evidence = &Evidence{ID: id}
		}
		e := r.out.Path.Evidence
		e.State, e.Decider, e.Reason, e.Steps = b.State, b.Decider, b.Reason, append(e.Steps, rec.Seq)
	}
	switch {
	case id == "":
		return
	case r.out.Path.Evidence == nil:
		r.out.Path.Evidence = &Evidence{ID: id, State: state}
	}
	if state == statePurged {
		r.gap(r.out.Path.Evidence.Steps[len(r.out.Path.Evidence.Steps)-1], PartialMissingEvidence, "what was held of the call is not kept any more")
	}
	if r.end != nil && r.end.Kind == KindCallRefused && r.ended.Code != call.CodeBlockedArguments && r.ended.Evidence != "" {
		r.invalid(r.end.Seq, "something was held of a call that was refused for another reason")
	}
}

// delivery: what was held is handed over at most once, and only while it is released.
func (r *replay) delivery(rec *Record, id, state string) {
	b, err := read[deliveryBody](rec)
	if err != nil {
		r.invalid(rec.Seq, "%s cannot be read", rec.Kind)
		return
	}
	e := r.out.Path.Evidence
	if e == nil {
		e = &Evidence{ID: b.Evidence, State: state}
		r.out.Path.Evidence = e
	}
	gone := r.out.Path.Outcome == nil && r.end != nil && r.end.Pruned > 0 // what would name it
	switch {
	case !gone && b.Evidence != id || e.ID != b.Evidence || b.To == "":
		r.invalid(rec.Seq, "evidence was handed over that the call does not name, or to no call")
	case e.Delivered > 0:
		r.invalid(rec.Seq, "evidence was handed over a second time")
	case state == stateHeld:
		r.absent(rec.Seq, "evidence was handed over, and nobody had released it", KindEvidenceDecided)
	case state != stateReleased || e.Decider != b.ReleasedBy:
		r.invalid(rec.Seq, "evidence was handed over when it was %s, by %s", state, e.Decider)
	}
	e.Delivered, e.To = rec.Seq, b.To
}

// follows says whether a step leads from one state of evidence to another.
func follows(from, to string) bool {
	switch to {
	case stateReleased, stateRejected:
		return from == stateHeld
	case statePurged:
		return from != statePurged
	}
	return false
}
