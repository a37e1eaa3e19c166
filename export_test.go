package ostiary

import (
	"context"
	"errors"
)

// SetFailpoint has fn called between the steps from 9 to 12 of each call's path, with the step just done.
func (o *Options) SetFailpoint(fn func(step string)) { o.failpoint = fn }

// SweepNow ends what has run out of time and writes what could not be written, as happens every few seconds.
func (h *Host) SweepNow(ctx context.Context) error {
	return errors.Join(h.catchUp(ctx), h.sweepOnce(ctx))
}
