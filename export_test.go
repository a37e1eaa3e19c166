package ostiary

import "context"

// SetFailpoint has fn called between the steps from 9 to 12 of each call's path, with the step just done.
func (o *Options) SetFailpoint(fn func(step string)) { o.failpoint = fn }

// SweepNow ends what has run out of time, as happens every few seconds.
func (h *Host) SweepNow(ctx context.Context) error { return h.sweepOnce(ctx) }
