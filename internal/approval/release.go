package approval

import (
	"errors"
	"time"

	"github.com/ostiary/ostiary/call"
)

// labelRelease keeps what asks to release a result apart from all that a call could spend.
const labelRelease = "ostiary approval release 1"

// ReleaseID names the request to release the result of a call: there is one at most.
func ReleaseID(id call.ID) ID { return ID("ar-" + id) }

// AskRelease asks somebody to release the result of a call, which is held as evidence (R8.4). No call can spend the request:
// agreeing to it is all that there is to do. A [Refusal] says that too much is being asked; the result then stays held.
func (r *Rules) AskRelease(tx Tx, q Question, evidence string, now time.Time) (Request, error) {
	if q.Call.ID == "" || q.Call.Principal == "" || evidence == "" {
		return Request{}, errors.New("ask to release a result: a question needs a call, a principal and the evidence")
	}
	b, err := Bind(q.Call)
	if err != nil {
		return Request{}, err
	}
	b.CallDigest = digest(labelRelease, b.CallDigest[:], []byte(evidence))
	b.GrantDigest = b.CallDigest
	if err := r.crowded(tx, q.Call.Principal, now); err != nil {
		return Request{}, err
	}
	q.ID = ReleaseID(q.Call.ID)
	return r.put(tx, q, b, evidence, now)
}

// release agrees to release a result.
func release(tx Tx, q Request, scope Decision, decider, reason string, now time.Time) (Request, error) {
	if scope != ApprovedOnce {
		return Request{}, ErrExact
	}
	q.SpentBy = q.CallID
	return decide(tx, q, Spent, ApprovedOnce, decider, reason, now)
}

// Settle ends the request to release a result when somebody has decided on the evidence itself. ok is false if no such
// request waits. Whether the decider may is a matter of the evidence.
func (r *Rules) Settle(tx Tx, id ID, released bool, decider, reason string, now time.Time) (_ Request, ok bool, err error) {
	q, ok, err := tx.Approval(id)
	if err != nil || !ok || q.Evidence == "" || q.State != Waiting || q.over(now) {
		return Request{}, false, err
	}
	if released {
		q, err = release(tx, q, ApprovedOnce, decider, reason, now)
	} else {
		q, err = decide(tx, q, Declined, Rejected, decider, reason, now)
	}
	return q, err == nil, err
}
