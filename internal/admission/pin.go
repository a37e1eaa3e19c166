package admission

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ostiary/ostiary/call"
)

// State is what was decided of a definition. The zero value waits.
type State uint8

// The states of a pin.
const (
	Waiting State = iota
	Admitted
	Refused
)

var stateNames = []string{"WAITING", "ADMITTED", "REFUSED"}

func (s State) String() string { return nameOf(stateNames, s) }

// MarshalText writes the name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name.
func (s *State) UnmarshalText(b []byte) (err error) {
	*s, err = parseName[State](stateNames, string(b), "admission state")
	return err
}

// Pin is one definition that a provider has offered, and what was decided of it. Of one tool there is at most one that is
// admitted and one that waits; those that were refused are remembered, the newest few.
type Pin struct {
	Provider         string
	RawName          string // the provider's own name of the tool; "" for the provider itself
	DescriptorDigest call.Digest
	SchemaDigest     call.Digest // of the input schema; zero for the provider itself
	// Definition is the tool object as it was offered, byte for byte. Of the provider itself it is our own object of
	// "instructions", "origin" and "tool_contract". It is not to be written to.
	Definition []byte
	Findings   []string // what screening said of it (R6.7), our own words

	State     State
	FirstSeen time.Time
	Decider   string // principal, or [ByFirstUse]
	Decided   time.Time
	Reason    string
}

// ByFirstUse is the decider of what the first start of a provider admitted.
const ByFirstUse = "first_use"

// Key names a pin.
type Key struct {
	Provider string
	RawName  string
	Digest   call.Digest // of the definition
}

// Key is the pin's.
func (p *Pin) Key() Key { return Key{p.Provider, p.RawName, p.DescriptorDigest} }

// PinRows is what admission needs of the store for pins.
type PinRows interface {
	// PutPin keeps p in place of the row with its key, if there is one.
	PutPin(p Pin) error
	// DeletePin removes a row; one that does not exist is no fault.
	DeletePin(k Key) error
	// Pins reads the pins of a provider, ordered by raw name and then by FirstSeen.
	Pins(provider string) ([]Pin, error)
}

// QuarantineRows is what admission needs of the store for quarantine.
type QuarantineRows interface {
	// PutQuarantine keeps q in place of the row of its provider and tool, if there is one.
	PutQuarantine(q Quarantine) error
	// DeleteQuarantine removes a row; one that does not exist is no fault.
	DeleteQuarantine(provider, tool string) error
	// Quarantines reads all rows, ordered by provider and tool.
	Quarantines() ([]Quarantine, error)
}

// Tx is what admission needs of a read-write transaction of the store.
type Tx interface {
	PinRows
	QuarantineRows
}

// View is what admission needs of a read-only transaction.
type View interface {
	// Pins reads the pins of a provider, or of all if it is "", ordered by provider, raw name and FirstSeen.
	Pins(provider string) ([]Pin, error)
	// Quarantines reads all rows, ordered by provider and tool.
	Quarantines() ([]Quarantine, error)
}

// Why a decision was not taken.
var (
	ErrUnknown = errors.New("no such definition: it was not offered, or another has taken its place")
	ErrDecided = errors.New("the definition was decided on already")
	ErrDecider = errors.New("a decision needs a decider")
)

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
