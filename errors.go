package ostiary

import (
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/store"
)

// StartError says which provider did not start, in which phase, why, and what to do (R2.8).
type StartError = provider.StartError

// What a caller of [Host.Start], [OpenLedger] and the operations may want to tell apart.
var (
	// ErrLocked says that another gateway holds the data directory.
	ErrLocked = store.ErrLocked
	// ErrUnavailable says that the store cannot be written, so that no call is let through.
	ErrUnavailable = store.ErrUnavailable
)
