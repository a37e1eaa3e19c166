package contract

import (
	"errors"
	"fmt"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/world"
)

// Check says which rule of world-events an event breaks.
func (ev Event) Check() error {
	if ev.ID == "" {
		return errors.New("event without an id")
	}
	if err := world.CheckScope(call.Scope(ev.Scope)); err != nil {
		return fmt.Errorf("event %s: %w", ev.ID, err)
	}
	return nil
}
