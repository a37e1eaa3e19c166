package vault

import (
	"errors"
	"fmt"
)

var (
	// ErrLocked says that there is no key, or not the right one: see [LockedError].
	ErrLocked = errors.New("vault is locked")
	// ErrNotFound says that the vault has no secret of that name.
	ErrNotFound = errors.New("no such secret")
	// ErrNoVault says that there is no vault yet, so that there is nothing to seal to.
	ErrNoVault = errors.New("there is no vault yet")
	// ErrDamaged says that the file, or something sealed, is not what was written. Nothing of it is used.
	ErrDamaged = errors.New("damaged")
	// ErrNewer says that the file was written by a newer program.
	ErrNewer = errors.New("written by a newer program")
	// ErrBusy says that another writer did not finish in time.
	ErrBusy = errors.New("vault is being changed by another process")
	// ErrFixedKey says that the key is kept where this program does not write.
	ErrFixedKey = errors.New("the key is not this program's to change")
)

// LockedError is the refusal of a vault that cannot be opened. It is ErrLocked and its cause, and says what to do.
type LockedError struct {
	Cause  error  // has no secret in it
	Advice string // what an operator can do
}

func (e *LockedError) Error() string { return fmt.Sprintf("%v: %v: %s", ErrLocked, e.Cause, e.Advice) }

// Unwrap makes errors.Is find ErrLocked and the cause.
func (e *LockedError) Unwrap() []error { return []error{ErrLocked, e.Cause} }

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}
