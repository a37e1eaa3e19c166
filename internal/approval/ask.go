package approval

import (
	"errors"
	"fmt"
	"time"

	"github.com/ostiary/ostiary/call"
)

// Question is a call that needs someone to agree, with what a reviewer is to be told.
type Question struct {
	ID          ID // of the request, if there will be a new one; never used before
	Call        Call
	Export      string
	Provider    string
	Sensitivity Sensitivity
	Description Description
}

// Ask finds the grant or the open request for a call, or makes a request. What it returns is either Granted, to be spent
// by [Rules.Spend] in the transaction that commits the intent, or Waiting; it is a new request exactly if it has the
// question's id. A [Refusal] says that the call may not even wait: it was declined or ran out of time a moment ago, or too
// much is being asked. Nothing is written unless there is a new request.
func (r *Rules) Ask(tx Tx, q Question, now time.Time) (Request, error) {
	if q.ID == "" || q.Call.Principal == "" {
		return Request{}, errors.New("ask for approval: a question needs an id and a principal")
	}
	b, err := Bind(q.Call)
	if err != nil {
		return Request{}, err
	}
	held, err := tx.ApprovalsUnder(b.GrantDigest)
	if err != nil {
		return Request{}, err
	}
	for i := range held { // first, so that a grant for one call is not used up for nothing
		if h := &held[i]; h.Decision == ApprovedForSession && r.usable(h, now) {
			return *h, nil
		}
	}
	same, err := tx.ApprovalsUnder(b.CallDigest)
	if err != nil {
		return Request{}, err
	}
	for i := range same {
		if s := &same[i]; r.usable(s, now) || s.State == Waiting && !s.over(now) {
			return *s, nil
		}
	}
	for i := range same {
		if refusal := r.rests(&same[i], now); refusal != nil {
			return Request{}, refusal
		}
	}
	if err := r.crowded(tx, q.Call.Principal, now); err != nil {
		return Request{}, err
	}
	for i := range same {
		if s := &same[i]; !s.State.Ended() && s.over(now) { // at most one open request a call
			s.expire(now)
			if err := tx.PutApproval(*s); err != nil {
				return Request{}, err
			}
		}
	}
	return r.put(tx, q, b, "", now)
}

// put makes a request of a question that has not been asked before.
func (r *Rules) put(tx Tx, q Question, b Binding, evidence string, now time.Time) (Request, error) {
	if _, ok, err := tx.Approval(q.ID); err != nil || ok {
		return Request{}, errors.Join(err, fmt.Errorf("ask for approval: the id %q has been used", q.ID))
	}
	n := Request{
		ID: q.ID, CallID: q.Call.ID, Binding: b, Evidence: evidence, Export: q.Export, Provider: q.Provider, Sensitivity: q.Sensitivity,
		Description: q.Description, Created: now, Expires: now.Add(r.RequestLife),
	}
	return n, tx.PutApproval(n)
}

// rests says why the same call is not asked for again so soon after s.
func (r *Rules) rests(s *Request, now time.Time) *Refusal {
	q := *s
	if q.State == Waiting && q.over(now) { // not swept yet
		q.expire(q.Expires)
	}
	switch {
	case (q.State == Declined || q.State == Revoked) && within(r.CoolDown, q.Decided, now),
		q.State == Expired && within(r.ExpiryRest, q.Decided, now):
		return refuse(&q)
	}
	return nil
}

// crowded refuses a new request when too many wait, or when a principal asks too often or for too much that is declined:
// a reviewer who is asked a hundred times agrees to everything.
func (r *Rules) crowded(tx Tx, principal string, now time.Time) error {
	var all, own, fresh, declined int
	if err := tx.EachApproval(func(q Request) bool {
		waits := q.State == Waiting && !q.over(now)
		if waits {
			all++
		}
		if q.Principal != principal {
			return true
		}
		if waits {
			own++
		}
		if q.Evidence != "" { // it is the provider's result that is asked about: no fault of the caller's
			return true
		}
		if within(time.Minute, q.Created, now) {
			fresh++
		}
		if q.Decision == Rejected && within(r.CoolDown, q.Decided, now) {
			declined++
		}
		return true
	}); err != nil {
		return err
	}
	switch {
	case own >= r.WaitingPrincipal:
		return overloaded("too many requests of this caller wait for approval")
	case all >= r.Waiting:
		return overloaded("too many requests wait for approval")
	case fresh >= r.PerMinute:
		return overloaded("this caller has asked for approval too often within a minute")
	case declined >= r.Declines:
		return overloaded("too many requests of this caller were declined a moment ago")
	}
	return nil
}

func overloaded(text string) *Refusal { return &Refusal{Code: call.CodeOverloaded, Text: text} }
