package sqlstore

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/internal/store"
)

// op is one function that waits for the writer.
type op struct {
	fn      func(store.Tx) error
	relaxed bool
	done    chan error   // capacity 1, never closed; for an Update
	state   atomic.Int32 // an Update may be abandoned by its caller until the writer takes it
}

const (
	opWaiting int32 = iota
	opTaken
	opAbandoned
)

func (o *op) take() bool    { return o.state.CompareAndSwap(opWaiting, opTaken) }
func (o *op) abandon() bool { return o.state.CompareAndSwap(opWaiting, opAbandoned) }

// updates keeps ops of Update whose answer was received: nobody else knows them any more.
var updates = sync.Pool{New: func() any { return &op{done: make(chan error, 1)} }}

// Update implements store.Store.
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o := updates.Get().(*op)
	o.fn = fn
	o.state.Store(opWaiting)
	healthy := s.health.now.Load()
	if err := s.send(ctx, o, healthy); err != nil {
		updates.Put(o)
		return err
	}
	select {
	case err := <-o.done:
		updates.Put(o)
		return err
	case <-ctx.Done():
		if o.abandon() {
			return ctx.Err()
		}
		// The writer has it: whether it is committed is about to be known, and must be, because an intent that is committed
		// has an outcome to come.
		select {
		case err := <-o.done:
			updates.Put(o)
			return err
		case <-healthy.ended:
		}
	case <-healthy.ended:
	}
	switch {
	case o.abandon():
		return healthy.next.err
	case healthy.next.stalled:
		return fmt.Errorf("%w: %w", store.ErrUncertain, healthy.next.err)
	}
	err := <-o.done // the writer has it, and is about to answer
	updates.Put(o)
	return err
}

// Enqueue implements store.Store.
func (s *Store) Enqueue(ctx context.Context, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.send(ctx, &op{fn: fn, relaxed: true}, s.health.now.Load())
}

func (s *Store) send(ctx context.Context, o *op, healthy *condition) error {
	if healthy.err != nil {
		return healthy.err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	select {
	case s.queue <- o:
		s.nudge(o)
		return nil
	default:
	}
	select {
	case s.queue <- o:
		s.nudge(o)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-healthy.ended:
		return healthy.next.err
	}
}

// nudge ends the writer's waiting for company: somebody waits for o, or enough has come together. Nothing else wakes it, so
// that a function that nobody waits for costs its caller no switch to another goroutine.
func (s *Store) nudge(o *op) {
	if o.relaxed && len(s.queue) < s.o.RelaxedBatch {
		return
	}
	select {
	case s.urgent <- struct{}{}:
	default:
	}
}

// write is the writer goroutine: it ends when the queue is closed and empty.
func (s *Store) write() {
	defer close(s.finished)
	var group []*op
	for open := true; open; {
		group, open = s.collect(group[:0])
		// Nothing to do is the timer's or the end's way to ask for a checkpoint.
		if s.process(group, len(group) == 0 || !open, false) {
			continue
		}
		clear(group)
		if !s.recover(!open) {
			s.refuse()
			return
		}
	}
}

// collect waits for the next group. Functions that nobody waits for may wait for company; one that somebody waits for ends
// the waiting. open is false when there will be no more.
func (s *Store) collect(group []*op) (_ []*op, open bool) {
	var first *op
	select {
	case first, open = <-s.queue:
		if !open {
			return group, false
		}
	case <-s.checkpointTimer.C:
		s.checkpointArmed = false
		return group, true
	}
	group = append(group, first)
	if first.relaxed {
		s.companyTimer.Reset(s.o.RelaxedDelay)
		select {
		case <-s.companyTimer.C:
		case <-s.urgent:
			s.companyTimer.Stop()
		case <-s.closing:
			s.companyTimer.Stop()
		}
	}
	// Callers that the last commit has answered are about to come back: to let them run first makes one large group where
	// there would be a small one and a large one, each with its fsync.
	for idle := 0; len(group) < s.o.MaxGroup && idle < 2; {
		select {
		case o, open := <-s.queue:
			if !open {
				return group, false
			}
			group = append(group, o)
			idle = 0
		default:
			runtime.Gosched()
			idle++
		}
	}
	return group, true
}

const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 2 * time.Second
)

// recover waits for a passing fault to pass (F-04): it tries to commit what was enqueued, again and again. It is false if
// the store is to be given up. When the store is being closed there is one try more.
func (s *Store) recover(closed bool) bool {
	for wait := retryFirst; !s.fatal; wait = min(2*wait, retryMost) {
		s.companyTimer.Reset(wait)
		select {
		case <-s.companyTimer.C:
		case <-s.closing:
			s.companyTimer.Stop()
			closed = true
		}
		kept := s.kept
		s.kept = nil
		if s.process(kept, closed, true) {
			return true
		}
		if closed {
			return false
		}
	}
	return false
}

// refuse answers all that still comes in, until the store is closed.
func (s *Store) refuse() {
	lost := len(s.kept)
	failure := s.health.now.Load().err
	for o := range s.queue {
		switch {
		case o.relaxed:
			lost++
		case o.take():
			o.fn = nil
			o.done <- failure
		}
	}
	s.lost = lost
	if lost > 0 {
		s.o.Logger.Error("enqueued transactions were not written", "count", lost, "error", failure)
	}
}
