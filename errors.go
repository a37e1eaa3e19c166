package ostiary

import (
	"errors"

	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/sqlstore"
)

// StartError says which provider did not start, in which phase, why, and what to do (R2.8).
type StartError = provider.StartError

// What a caller of [Host.Start], [OpenLedger] and the operations may want to tell apart.
var (
	// ErrLocked says that another gateway holds the data directory.
	ErrLocked = store.ErrLocked
	// ErrNotLocked says that what providers offer is not what the lock file pins (R6.11).
	ErrNotLocked = errors.New("what is offered is not what is locked")
	// ErrUnavailable says that the store cannot be written, so that no call is let through.
	ErrUnavailable = store.ErrUnavailable
	// ErrDamaged says that the store cannot be read as what it is.
	ErrDamaged = sqlstore.ErrDamaged
)
