package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ostiary/ostiary/internal/review"
)

// maxReason bounds the words of a decider.
const maxReason = 500

// Grant agrees to a request: ApprovedOnce for exactly the call that was shown, ApprovedForSession for the tool as it is,
// for the caller's session, for a time. The first decision wins; another one is ErrDecided. What asks to release a result is
// granted once, and spent by that: whoever grants it releases the evidence in the same transaction.
func (r *Rules) Grant(tx Tx, id ID, scope Decision, decider, reason string, now time.Time) (Request, error) {
	q, err := r.undecided(tx, id, decider, now)
	if err != nil {
		return Request{}, err
	}
	if scope != ApprovedOnce && strings.HasPrefix(decider, elicitation) {
		return Request{}, ErrScope
	}
	if q.Evidence != "" {
		return release(tx, q, scope, decider, reason, now)
	}
	var life time.Duration
	switch scope {
	case ApprovedOnce:
		life = r.OnceLife
	case ApprovedForSession:
		if q.Session == "" { // it would hold for all that the caller does anywhere
			return Request{}, ErrNoSession
		}
		if q.Exact() {
			return Request{}, ErrExact
		}
		life = r.SessionLife
	default:
		return Request{}, ErrScope
	}
	q.Until = now.Add(life)
	return decide(tx, q, Granted, scope, decider, reason, now)
}

// Decline says no. Declined means declined: nothing of the call goes on (R7.5).
func (r *Rules) Decline(tx Tx, id ID, decider, reason string, now time.Time) (Request, error) {
	q, err := r.undecided(tx, id, decider, now)
	if err != nil {
		return Request{}, err
	}
	return decide(tx, q, Declined, Rejected, decider, reason, now)
}

// Block ends a request that the policy, as it is now, would not let wait. The runtime says it; there is no decider.
func (r *Rules) Block(tx Tx, id ID, reason string, now time.Time) (Request, error) {
	q, err := load(tx, id)
	if err != nil {
		return Request{}, err
	}
	if q.State != Waiting {
		return Request{}, decidedAs(&q)
	}
	return decide(tx, q, Declined, PolicyBlocked, "", reason, now)
}

// Revoke takes a grant back that is not spent, or that is for a session. Who may decide may revoke.
func (r *Rules) Revoke(tx Tx, id ID, decider, reason string, now time.Time) (Request, error) {
	q, err := load(tx, id)
	if err != nil {
		return Request{}, err
	}
	if !r.entitled(decider, &q) {
		return Request{}, ErrNotEntitled
	}
	if q.State == Waiting {
		return Request{}, ErrNotGranted
	}
	if q.State != Granted {
		return Request{}, decidedAs(&q)
	}
	return decide(tx, q, Revoked, q.Decision, decider, reason, now)
}

// RevokeAll takes every grant back that can still be spent and that decider may decide on, oldest first.
func (r *Rules) RevokeAll(tx Tx, decider, reason string, now time.Time) ([]Request, error) {
	var grants []Request
	if err := tx.EachApproval(func(q Request) bool {
		if q.State == Granted && !q.over(now) && r.entitled(decider, &q) {
			grants = append(grants, q)
		}
		return true
	}); err != nil {
		return nil, err
	}
	slices.SortFunc(grants, byAge)
	for i := range grants {
		var err error
		if grants[i], err = decide(tx, grants[i], Revoked, grants[i].Decision, decider, reason, now); err != nil {
			return nil, err
		}
	}
	return grants, nil
}

// undecided reads a request that decider may decide on now.
func (r *Rules) undecided(tx Tx, id ID, decider string, now time.Time) (Request, error) {
	q, err := load(tx, id)
	switch {
	case err != nil:
		return Request{}, err
	case !r.entitled(decider, &q):
		return Request{}, ErrNotEntitled
	case q.State == Expired || q.State == Waiting && q.over(now):
		return Request{}, ErrOver
	case q.State != Waiting:
		return Request{}, decidedAs(&q)
	}
	return q, nil
}

func load(tx Tx, id ID) (Request, error) {
	q, ok, err := tx.Approval(id)
	if err == nil && !ok {
		err = ErrUnknown
	}
	return q, err
}

func decidedAs(q *Request) error { return fmt.Errorf("%w: it is %s", ErrDecided, q.State) }

func decide(tx Tx, q Request, s State, d Decision, decider, reason string, now time.Time) (Request, error) {
	q.State, q.Decision, q.Decider, q.Decided, q.Reason = s, d, decider, now, review.Clip(reason, maxReason)
	return q, tx.PutApproval(q)
}
