package ostiary

import (
	"context"
	"errors"
	"time"

	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

const (
	sweepEvery = 5 * time.Second
	sweepBatch = 100 // items of evidence at a time
	writeTime  = 10 * time.Second
)

// sweep ends, every few seconds until Stop, what has run out of time: requests, grants, and evidence (R8.6). It also writes
// what could not be written before.
func (h *Host) sweep(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { // ended, and waited for, by Stop
		defer close(done)
		tick := time.NewTicker(sweepEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := errors.Join(h.catchUp(ctx), h.sweepOnce(ctx), h.pruneDue(ctx)); err != nil && ctx.Err() == nil {
					h.log.Warn("sweep", "err", err)
				}
			}
		}
	}()
	h.push(func(context.Context) error {
		cancel()
		<-done
		return nil
	})
}

func (h *Host) sweepOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	now := h.o.Now()
	var over []evidence.ID
	var open int
	err := h.store.View(ctx, func(v store.View) (err error) {
		if err := v.EachApproval(func(approval.Request) bool { open++; return false }); err != nil {
			return err
		}
		over, err = evidence.Expired(v, now, sweepBatch)
		return err
	})
	if err != nil || open == 0 && len(over) == 0 {
		return err
	}
	var ended []approval.Request
	err = h.store.Update(ctx, func(tx store.Tx) (err error) {
		if ended, err = h.rules.Expire(tx, now); err != nil {
			return err
		}
		for i := range ended {
			if err := h.appendApproval(tx, ledger.KindApprovalDecided, &ended[i]); err != nil {
				return err
			}
		}
		purged, err := evidence.Sweep(tx, over, now)
		if err != nil {
			return err
		}
		for i := range purged {
			if err := h.appendEvidence(tx, evidence.Gateway, &purged[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range ended {
		h.hub.Notify(ended[i].ID)
	}
	return nil
}
