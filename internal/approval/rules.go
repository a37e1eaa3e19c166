package approval

import (
	"errors"
	"fmt"
	"time"

	"github.com/ostiary/ostiary/call"
)

// Rules are who may decide, how long things hold and how much is asked of reviewers. The zero value lets nobody decide;
// [DefaultRules] has the bounds. Rules are not changed while they are used.
type Rules struct {
	// Entitled says whether decider may decide on r. nil: nobody may. It is asked when a decision is made, and of the
	// decider again when a grant is spent (R7.5); it must be quick and have no effect. Whatever it says, nobody decides on
	// a request of their own (F-53).
	Entitled func(decider string, r *Request) bool

	RequestLife time.Duration // how long a request waits
	OnceLife    time.Duration // how long a grant for one call can be spent
	SessionLife time.Duration // how long a grant for a session holds: there is none without an end

	Waiting          int // requests that may wait at a time
	WaitingPrincipal int // of one principal
	PerMinute        int // new requests of one principal in a minute
	Declines         int // so many declined requests within CoolDown let a principal ask no more for as long

	CoolDown   time.Duration // how long a call that was declined is refused without asking again
	ExpiryRest time.Duration // how long a call that nobody decided on is refused without asking again

	Keep     time.Duration // how long ended requests stay visible; the ledger keeps them for good
	KeepMost int           // how many of them at most
}

// DefaultRules are the documented bounds, and let nobody decide.
func DefaultRules() Rules {
	return Rules{
		RequestLife: 10 * time.Minute, OnceLife: 10 * time.Minute, SessionLife: 8 * time.Hour,
		Waiting: 256, WaitingPrincipal: 16, PerMinute: 20, Declines: 5,
		CoolDown: 10 * time.Minute, ExpiryRest: time.Minute,
		Keep: 24 * time.Hour, KeepMost: 1000,
	}
}

// Validate reports all that is wrong with the bounds.
func (r *Rules) Validate() error {
	var faults []error
	for _, f := range []struct {
		name string
		v    int64
	}{
		{"RequestLife", int64(r.RequestLife)}, {"OnceLife", int64(r.OnceLife)}, {"SessionLife", int64(r.SessionLife)},
		{"Waiting", int64(r.Waiting)}, {"WaitingPrincipal", int64(r.WaitingPrincipal)}, {"PerMinute", int64(r.PerMinute)},
		{"Declines", int64(r.Declines)}, {"Keep", int64(r.Keep)}, {"KeepMost", int64(r.KeepMost)},
	} {
		if f.v <= 0 {
			faults = append(faults, fmt.Errorf("approval rules: %s must be more than 0", f.name))
		}
	}
	if r.CoolDown < 0 || r.ExpiryRest < 0 {
		faults = append(faults, errors.New("approval rules: CoolDown and ExpiryRest must not be negative"))
	}
	return errors.Join(faults...)
}

// entitled asks whether decider may decide on q.
func (r *Rules) entitled(decider string, q *Request) bool {
	return decider != "" && decider != q.Principal && r.Entitled != nil && r.Entitled(decider, q)
}

// usable says that a grant can be spent at now.
func (r *Rules) usable(q *Request, now time.Time) bool {
	return q.State == Granted && !q.over(now) && r.entitled(q.Decider, q)
}

// Why a decision was not taken.
var (
	ErrUnknown     = errors.New("no such approval request")
	ErrNotEntitled = errors.New("not entitled to decide on this request")
	ErrDecided     = errors.New("the request was decided already")
	ErrNotGranted  = errors.New("the request waits, and nothing was granted that could be taken back: end it with ostiary approvals decline")
	ErrOver        = errors.New("the request has expired")
	ErrNoSession   = errors.New("the request belongs to no session: it can be approved once only")
	ErrExact       = errors.New("the request is for exactly what would be sent: it can be approved once only")
	ErrScope       = errors.New("a request is approved once or for a session")
)

// Refusal says that a call may not go on, in words that are our own.
type Refusal struct {
	Code    call.Code
	Text    string
	Request Request // zero if there is none
	Cause   error   // nil, or a *Mismatch
}

func (r *Refusal) Error() string {
	if r.Cause != nil {
		return r.Text + ": " + r.Cause.Error()
	}
	return r.Text
}

func (r *Refusal) Unwrap() error { return r.Cause }

// Mismatch says that a grant is for another call than the one that wants to spend it (R7.5, A-32). The call must be asked
// for anew.
type Mismatch struct {
	ID     ID
	Fields []string // what differs
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("approval %s is for another call: %v changed", m.ID, m.Fields)
}
