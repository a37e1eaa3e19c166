package ostiary

import (
	"context"
	"errors"
	"time"

	"github.com/ostiary/ostiary/internal/ledger"

	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/world"
)

// SetFailpoint has fn called between the steps from 9 to 12 of each call's path, with the step just done.
func (o *Options) SetFailpoint(fn func(step string)) { o.failpoint = fn }

// SetUptime has fn say how long the gateway has run.
func (o *Options) SetUptime(fn func() time.Duration) { o.uptime = fn }

// SweepNow ends what has run out of time and writes what could not be written, as happens every few seconds.
func (h *Host) SweepNow(ctx context.Context) error {
	return errors.Join(h.catchUp(ctx), h.sweepOnce(ctx), h.pruneDue(ctx))
}

// PutFact puts a fact into the world, as an event of a provider is put.
func (h *Host) PutFact(ctx context.Context, f world.Fact) (at world.Place, err error) {
	err = h.store.Update(ctx, func(tx store.Tx) error { at, _, err = tx.PutFact(f); return err })
	return at, err
}

// Write writes one record, and waits until it is on disk.
func (h *Host) Write(ctx context.Context) error {
	return h.record(ctx, ledger.KindProviderState, map[string]any{"provider": "none"})
}
