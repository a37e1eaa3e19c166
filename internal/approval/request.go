package approval

import (
	"time"

	"github.com/ostiary/ostiary/call"
)

// ID names a request. It is shown to callers and reviewers, and is no secret: it grants nothing.
type ID string

// Request is one question to a reviewer, and what became of it. A value of it is a snapshot.
type Request struct {
	ID     ID
	CallID call.ID // of the call that asked first; repeats of the call join the request
	Binding

	// Evidence is the held result of the call that the request asks to release; "": it asks to let the call out.
	Evidence string

	Export      string
	Provider    string
	Sensitivity Sensitivity
	Description

	Created time.Time
	Expires time.Time // a request that still waits then is over

	State    State
	Decision Decision
	Decider  string // principal, or "" when time or the policy decided
	Decided  time.Time
	Until    time.Time // a grant that is not spent by then is over; zero: there is none
	Reason   string    // the decider's words, made visible and bounded
	SpentBy  call.ID
}

// over says that the state's time has run out at now.
func (r *Request) over(now time.Time) bool {
	switch r.State {
	case Waiting:
		return elapsed(r.Created, r.Expires, now)
	case Granted:
		return elapsed(r.Decided, r.Until, now)
	}
	return true
}

// elapsed says that the time from from to until is over at now. Clocks jump (F-09): it is over as soon as either the wall
// clock or the monotonic clock says so. The latter is known where from was taken in this process and has kept its monotonic
// reading; of a time that was read from disk it is not, and then a now before from cannot be trusted either.
func elapsed(from, until, now time.Time) bool {
	wall := now.Round(0).Sub(from.Round(0))
	steady := now.Sub(from) // by the monotonic clock if both have it, else the same as wall
	return outlived(wall, steady, until.Round(0).Sub(from.Round(0)))
}

func outlived(wall, steady, life time.Duration) bool {
	return wall >= life || steady >= life || steady < 0
}

// within says that less than d has passed since then. A small step back of the clock counts as no time; a since that lies
// farther ahead was taken from a clock that was wrong, and is no ground to hold anything for years.
func within(d time.Duration, since, now time.Time) bool {
	passed := now.Round(0).Sub(since.Round(0))
	return -d < passed && passed < d
}

// Tx is what approvals need of a read-write transaction of the store. Rows keep the monotonic readings of their times
// while the process lives, where the store can.
type Tx interface {
	// PutApproval keeps r in place of the row with its id, if there is one.
	PutApproval(r Request) error
	// Approval reads one row; ok is false if there is none.
	Approval(id ID) (r Request, ok bool, err error)
	// ApprovalsUnder reads the rows whose CallDigest or GrantDigest is d, oldest first.
	ApprovalsUnder(d call.Digest) ([]Request, error)
	// EachApproval yields all rows, in no order, until yield is false. yield must not write.
	EachApproval(yield func(Request) bool) error
	// DeleteApproval removes a row; one that does not exist is no fault.
	DeleteApproval(id ID) error
}

// View is what approvals need of a read-only transaction.
type View interface {
	// Approval reads one row; ok is false if there is none.
	Approval(id ID) (r Request, ok bool, err error)
	// EachApproval yields all rows, oldest first, until yield is false.
	EachApproval(yield func(Request) bool) error
}

// Pending lists what waits for a decision at now, oldest first.
func Pending(v View, now time.Time) (out []Request, err error) {
	err = v.EachApproval(func(r Request) bool {
		if r.State == Waiting && !r.over(now) {
			out = append(out, r)
		}
		return true
	})
	return out, err
}

// Show reads one request as it stands at now: one whose time has run out is shown as over, even if nobody has swept yet.
func Show(v View, id ID, now time.Time) (Request, error) {
	r, ok, err := v.Approval(id)
	if err != nil {
		return Request{}, err
	}
	if !ok {
		return Request{}, ErrUnknown
	}
	if !r.State.Ended() && r.over(now) {
		r.expire(now)
	}
	return r, nil
}

// expire ends a request whose time has run out.
func (r *Request) expire(now time.Time) {
	if r.State == Granted {
		r.State = Lapsed // who agreed stays on record
		return
	}
	r.State, r.Decision, r.Decided = Expired, TimedOut, now
}
