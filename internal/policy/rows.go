package policy

// Tx is what policy needs of a read-write transaction of the store. The session is "" for a caller without one: then all
// that a principal reads without a session is one.
type Tx interface {
	// Taint is the taint of a principal's session; none if nothing is known of it.
	Taint(principal, session string) (Taint, error)
	// PutTaint adds to the taint of a principal's session. It never takes anything away.
	PutTaint(principal, session string, t Taint) error
	// DropTaint forgets a session. It is for one that has ended and whose id is never given again, and for an operator who
	// says so in so many words. One that is not known is no error.
	DropTaint(principal, session string) error
}

// View is what policy needs of a read-only transaction.
type View interface {
	Taint(principal, session string) (Taint, error)
	// EachTaint yields the sessions that have read something, by principal and session, until yield is false.
	EachTaint(yield func(principal, session string, t Taint) bool) error
}
