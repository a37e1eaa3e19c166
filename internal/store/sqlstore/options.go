package sqlstore

import (
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"time"
)

// Options says where and how to keep a store. Only Dir is required; zero means the default.
type Options struct {
	Dir    string           // the data directory; made with mode 0700 if it does not exist
	Logger *slog.Logger     // default: none
	Now    func() time.Time // default: time.Now
	Random io.Reader        // for the ledger's key; default: crypto/rand

	MaxQueue     int           // functions that may wait; more block their callers. 4096
	MaxGroup     int           // functions in one commit. 1024
	RelaxedDelay time.Duration // how long what is only enqueued may wait for company. 20 ms
	RelaxedBatch int           // how many of them are not kept waiting. 512
	StallAfter   time.Duration // how long a commit may take before waiting callers are told ErrUnavailable (F-50). 2 s

	CheckpointEvery int64         // records between two signed checkpoints. 1024
	CheckpointAfter time.Duration // age of a record that a checkpoint does not cover yet. 5 s

	CheckSize int64 // a database up to this size is verified as a whole at start, a larger one at its end. 16 MiB

	beforeGroup func() // for tests: the writer calls it before each group
}

// DefaultOptions is what zero values mean, but for Dir.
func DefaultOptions() Options {
	return Options{
		Logger:          slog.New(slog.DiscardHandler),
		Now:             time.Now,
		Random:          rand.Reader,
		MaxQueue:        4096,
		MaxGroup:        1024,
		RelaxedDelay:    20 * time.Millisecond,
		RelaxedBatch:    512,
		StallAfter:      2 * time.Second,
		CheckpointEvery: 1024,
		CheckpointAfter: 5 * time.Second,
		CheckSize:       16 << 20,
	}
}

func (o Options) withDefaults() Options {
	d := DefaultOptions()
	if o.Logger == nil {
		o.Logger = d.Logger
	}
	if o.Now == nil {
		o.Now = d.Now
	}
	if o.Random == nil {
		o.Random = d.Random
	}
	setDefault(&o.MaxQueue, d.MaxQueue)
	setDefault(&o.MaxGroup, d.MaxGroup)
	setDefault(&o.RelaxedDelay, d.RelaxedDelay)
	setDefault(&o.RelaxedBatch, d.RelaxedBatch)
	setDefault(&o.StallAfter, d.StallAfter)
	setDefault(&o.CheckpointEvery, d.CheckpointEvery)
	setDefault(&o.CheckpointAfter, d.CheckpointAfter)
	setDefault(&o.CheckSize, d.CheckSize)
	return o
}

func setDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

func (o Options) validate() error {
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("no data directory is given"))
	}
	for _, n := range []int64{
		int64(o.MaxQueue), int64(o.MaxGroup), int64(o.RelaxedDelay), int64(o.RelaxedBatch), int64(o.StallAfter),
		o.CheckpointEvery, int64(o.CheckpointAfter), o.CheckSize,
	} {
		if n < 0 {
			errs = append(errs, errors.New("a bound is negative"))
			break
		}
	}
	return errors.Join(errs...)
}
