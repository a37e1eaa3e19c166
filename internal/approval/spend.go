package approval

import (
	"time"

	"github.com/ostiary/ostiary/call"
)

// Spend uses a grant for the call c. It belongs into the transaction that commits the call's intent: if that fails nothing
// is spent, and of two calls that want the same grant one gets it (S-054). All conditions of R7.5 are checked here, on what
// is true now: the id, the policy, the descriptor, the effect class, what is sent, the time, and that the decider is still
// entitled. What may not go on is a [Refusal].
func (r *Rules) Spend(tx Tx, id ID, c Call, now time.Time) (Request, error) {
	b, err := Bind(c)
	if err != nil {
		return Request{}, err
	}
	q, ok, err := tx.Approval(id)
	if err != nil {
		return Request{}, err
	}
	if !ok || q.Evidence != "" {
		return Request{}, &Refusal{Code: call.CodeApprovalPending, Text: "nobody was asked for approval of this call"}
	}
	session := q.Decision == ApprovedForSession
	if session && q.GrantDigest != b.GrantDigest || !session && q.CallDigest != b.CallDigest {
		return Request{}, &Refusal{Code: call.CodeApprovalPending, Text: "the call is not the one that was approved", Request: q,
			Cause: &Mismatch{ID: id, Fields: q.Binding.differs(&b, session)}}
	}
	if !r.usable(&q, now) {
		if !q.State.Ended() && q.over(now) {
			q.expire(now)
		}
		return Request{}, refuse(&q)
	}
	if session {
		return q, nil
	}
	q.State, q.SpentBy = Spent, c.ID
	return q, tx.PutApproval(q)
}

// Refusal says why a call that waited for r does not go on; nil if r is Granted and is to be spent.
func (r *Request) Refusal() *Refusal {
	if r.State == Granted {
		return nil
	}
	return refuse(r)
}

// refuse says why a call does not go on with q as it is.
func refuse(q *Request) *Refusal {
	f := &Refusal{Code: call.CodeApprovalPending, Request: *q}
	switch q.State {
	case Waiting:
		f.Text = "the call waits for approval"
	case Granted:
		f.Text = "who approved the call may no longer do so"
	case Spent:
		f.Text = "the approval was for one call and has been used"
	case Declined:
		f.Code, f.Text = call.CodeApprovalDeclined, "the call was declined"
		if q.Decision == PolicyBlocked {
			f.Text = "policy no longer lets the call be approved"
		}
	case Revoked:
		f.Code, f.Text = call.CodeApprovalDeclined, "the approval was taken back"
	case Expired:
		f.Code, f.Text = call.CodeApprovalExpired, "nobody agreed in time"
	case Lapsed:
		f.Code, f.Text = call.CodeApprovalExpired, "the approval was not used in time"
	default:
		f.Text = "the request is in no known state"
	}
	return f
}
