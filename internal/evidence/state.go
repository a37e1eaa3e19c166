package evidence

import (
	"fmt"
	"strings"
)

// State is what became of an item. The zero value is the one that lets nothing through.
type State uint8

// The states. They only ever change in this order.
const (
	Held State = iota
	Released
	Rejected
	Purged
)

var stateNames = []string{"HELD", "RELEASED", "REJECTED", "PURGED"}

func (s State) String() string { return nameOf(stateNames, uint8(s)) }

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the state's name.
func (s *State) UnmarshalText(b []byte) error {
	n, err := parseName(stateNames, string(b), "state of evidence")
	*s = State(n)
	return err
}

// mayBecome says whether a step leads from one state to the other.
func (s State) mayBecome(to State) bool {
	switch s {
	case Held:
		return to == Released || to == Rejected || to == Purged
	case Released, Rejected:
		return to == Purged
	case Purged:
		return false
	}
	return false
}

// Direction says where on its way something was held.
type Direction uint8

// The directions.
const (
	Result     Direction = iota // a tool's result, on its way in
	Arguments                   // a call's arguments, on their way out
	Definition                  // what a provider says of a tool
	ToolError                   // a provider's error message
	Progress                    // progress, logs and partial output
	Event                       // what a provider says has happened
)

var directionNames = []string{"RESULT", "ARGUMENTS", "DEFINITION", "ERROR", "PROGRESS", "EVENT"}

func (d Direction) String() string { return nameOf(directionNames, uint8(d)) }

// MarshalText writes the direction's name.
func (d Direction) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the direction's name.
func (d *Direction) UnmarshalText(b []byte) error {
	n, err := parseName(directionNames, string(b), "direction of evidence")
	*d = Direction(n)
	return err
}

func nameOf(names []string, n uint8) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("invalid(%d)", n)
}

func parseName(names []string, s, what string) (uint8, error) {
	for i, n := range names {
		if n == s {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("%s %q: expected one of %s", what, s, strings.Join(names, ", "))
}
