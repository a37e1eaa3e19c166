package store

import (
	"context"
	"errors"

	"github.com/ostiary/ostiary/internal/admission"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/world"
)

var (
	// ErrNotFound says that a row that was named does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict says that a row exists already, or has changed since it was read.
	ErrConflict = errors.New("conflict")
	// ErrUnavailable says that the store cannot be written: full, broken, closed, or not answering. Calls are refused
	// while it lasts (R9.2).
	ErrUnavailable = errors.New("store unavailable")
	// ErrUncertain comes with ErrUnavailable when it is not known whether the transaction was written: it was being committed
	// when the disk stopped answering. What is written later sees whether it was.
	ErrUncertain = errors.New("not known whether it was written")
	// ErrLocked says that another process holds the data directory (F-07).
	ErrLocked = errors.New("data directory is in use")
)

// Tx is one read-write transaction.
type Tx interface {
	ledger.Tx
	evidence.Tx
	approval.Tx
	admission.Tx
	policy.Tx
	world.Tx
}

// View is one read-only transaction over a consistent state.
type View interface {
	ledger.View
	evidence.View
	approval.View
	admission.View
	policy.View
	world.View
}

// Store keeps all rows of one gateway. All methods may be called concurrently.
type Store interface {
	// Update runs fn in a transaction and returns when it is on disk. Waiting updates are grouped into one commit. fn may
	// run twice and must have no effect but through its Tx; it must not keep it, and must not block. An error of fn is
	// returned as it is and nothing of this fn is written; a failure of the store is ErrUnavailable, wrapped. When ctx
	// ends before fn's turn has come, its error is returned and nothing of fn is written; after that it is too late to give up.
	// A disk that does not answer is ErrUnavailable after a bound (F-50), with ErrUncertain for the fn that was being committed.
	Update(ctx context.Context, fn func(Tx) error) error

	// Enqueue hands fn over to be committed soon, in order with all other updates, and returns without waiting for the
	// disk. It blocks while the queue is full. ErrUnavailable, wrapped: the store is known to fail, nothing was queued.
	// An error of fn itself is a bug; it goes to the log and fails the store.
	Enqueue(ctx context.Context, fn func(Tx) error) error

	// View runs fn over a consistent state. What Enqueue has handed over may be missing in it.
	View(ctx context.Context, fn func(View) error) error

	// Healthy is nil, or wraps ErrUnavailable with the cause.
	Healthy() error

	// Watch returns a channel that is signalled (capacity 1, coalesced) after each commit, until ctx ends; then it is
	// closed. The signal is a hint; the rows are the truth.
	Watch(ctx context.Context) <-chan struct{}

	// Close commits what is queued, writes a last checkpoint and lets go of the data directory. It is safe to call twice.
	Close() error
}
