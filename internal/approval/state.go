package approval

import (
	"fmt"
	"strings"
)

// State is where a request is in its life. The zero value waits.
type State uint8

// The states.
const (
	Waiting  State = iota
	Granted        // someone agreed; nothing has been spent, or it is for a session
	Spent          // the one call that it was for has been let through
	Declined       // someone, or the policy, said no
	Expired        // nobody decided in time
	Lapsed         // granted, but not used in time
	Revoked        // granted, and taken back
)

var stateNames = []string{"WAITING", "GRANTED", "SPENT", "DECLINED", "EXPIRED", "LAPSED", "REVOKED"}

func (s State) String() string { return nameOf(stateNames, s) }

// MarshalText writes the name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name.
func (s *State) UnmarshalText(b []byte) (err error) {
	*s, err = parseName[State](stateNames, string(b), "approval state")
	return err
}

// Ended says that nothing more can happen to a request in this state.
func (s State) Ended() bool { return s != Waiting && s != Granted }

// Decision is what was decided on a request (R7.4). The zero value is no decision.
type Decision uint8

// The decisions of R7.4.
const (
	Undecided Decision = iota
	ApprovedOnce
	ApprovedForSession
	Rejected
	PolicyBlocked
	TimedOut
)

var decisionNames = []string{"", "APPROVED_ONCE", "APPROVED_FOR_SESSION", "REJECTED", "POLICY_BLOCKED", "EXPIRED"}

func (d Decision) String() string { return nameOf(decisionNames, d) }

// MarshalText writes the name.
func (d Decision) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the name.
func (d *Decision) UnmarshalText(b []byte) (err error) {
	*d, err = parseName[Decision](decisionNames, string(b), "decision")
	return err
}

// Sensitivity is how delicate what a call touches is. The zero value is not known, which reviewers are told.
type Sensitivity uint8

// The sensitivities.
const (
	SensitivityUnknown Sensitivity = iota
	Ordinary
	Sensitive
)

var sensitivityNames = []string{"UNKNOWN", "ORDINARY", "SENSITIVE"}

func (s Sensitivity) String() string { return nameOf(sensitivityNames, s) }

// MarshalText writes the name.
func (s Sensitivity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name.
func (s *Sensitivity) UnmarshalText(b []byte) (err error) {
	*s, err = parseName[Sensitivity](sensitivityNames, string(b), "sensitivity")
	return err
}

func nameOf[E ~uint8](names []string, e E) string {
	if int(e) < len(names) {
		return names[e]
	}
	return fmt.Sprintf("invalid(%d)", e)
}

func parseName[E ~uint8](names []string, s, what string) (E, error) {
	for i, n := range names {
		if n == s {
			return E(i), nil
		}
	}
	return 0, fmt.Errorf("%s %q: expected one of %s", what, s, strings.Join(names, ", "))
}
