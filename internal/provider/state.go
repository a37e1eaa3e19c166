package provider

import "fmt"

// State is where a provider is in its life (R6.5).
type State uint8

// The states of R6.5.
const (
	Registered State = iota
	Discovering
	Ready
	Degraded
	Disabled
	Quarantined
	Removed
)

var stateNames = [...]string{"REGISTERED", "DISCOVERING", "READY", "DEGRADED", "DISABLED", "QUARANTINED", "REMOVED"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("invalid(%d)", s)
}

// MarshalText writes the name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name: a status is read again by other processes.
func (s *State) UnmarshalText(b []byte) error {
	for i, n := range stateNames {
		if n == string(b) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("provider state %q is not known", b)
}

// Active says whether calls may be let through in this state. A DEGRADED provider still serves what it can.
func (s State) Active() bool { return s == Ready || s == Degraded }
