package world

import (
	"bytes"
	"context"
	"sync"
)

// Stream is the events of one generation of a provider. It is in one of these states:
//
//	unverified   nothing is known of the server yet: what comes is refused
//	holding      the extension holds, but the start has not succeeded as a whole: what comes is held, within the bounds
//	open         what comes is committed
//	closed       the extension does not hold, the start has failed, or the end has begun: what comes is refused
//
// It never goes back.
type Stream struct {
	in         *Intake
	src        *source
	generation string

	wake  chan struct{} // capacity 1
	quit  chan struct{} // closed by finish
	ended chan struct{} // closed when the worker has ended

	mu         sync.Mutex // guards what follows; taken before that of the source
	agreed     bool
	started    bool // the provider's own start
	wholeStart bool
	closed     Refusal // why; "": it is not
	queue      [][]byte
	bytes      int               // of the queue
	working    int               // events that the worker has taken and not finished
	turned     map[Refusal]int64 // since the last record
	begun      bool              // there is a worker
	finished   bool              // there will be none
	abandoned  bool              // nobody waits for what is left
	idle       sync.Cond         // on mu: the worker has finished something
}

// stateLocked names the state.
func (s *Stream) stateLocked() string {
	if s.closed != "" {
		return "closed"
	}
	return s.reachedLocked()
}

// reachedLocked is how far the stream has come, closed or not.
func (s *Stream) reachedLocked() string {
	switch {
	case !s.agreed:
		return "unverified"
	case !s.started || !s.wholeStart:
		return "holding"
	}
	return "open"
}

// Event takes one payload, which is valid until it returns. It never blocks.
func (s *Stream) Event(payload []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(func(st *IntakeStats) { st.Received++ })
	switch {
	case s.closed != "":
		s.turnLocked(s.closed, 1)
	case !s.agreed:
		s.turnLocked(NotVerified, 1)
	case len(payload) > MaxEvent:
		s.turnLocked(Malformed, 1)
	case len(s.queue) >= s.in.o.Events || s.bytes+len(payload) > s.in.o.Bytes:
		s.turnLocked(Overflow, 1)
	default:
		s.queue = append(s.queue, bytes.Clone(payload))
		s.bytes += len(payload)
		s.signalLocked()
	}
}

// Unasked counts an event that came in a way that nobody agreed on.
func (s *Stream) Unasked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(func(st *IntakeStats) { st.Received++ })
	s.turnLocked(NotNegotiated, 1)
}

// Agreed says whether the extension holds.
func (s *Stream) Agreed(holds bool) {
	if !holds {
		s.Close(NotNegotiated)
		return
	}
	s.change(func() { s.agreed = true })
}

// change moves the state on.
func (s *Stream) change(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == "" {
		fn()
		s.signalLocked()
	}
}

// Close refuses what comes from now on. What was taken is committed still if the stream was open, and refused if it was not.
func (s *Stream) Close(why Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != "" {
		return
	}
	if s.stateLocked() != "open" {
		if why == Stopping && s.agreed {
			why = StartFailed // it never came so far as to be open
		}
		s.dropLocked(why)
	}
	s.closed = why
}

// dropLocked refuses what is queued.
func (s *Stream) dropLocked(why Refusal) {
	s.turnLocked(why, int64(len(s.queue)))
	s.queue, s.bytes = nil, 0
}

// drained waits until what was taken has been committed. When ctx ends, what is left is refused.
func (s *Stream) drained(ctx context.Context) {
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.abandoned = true
		s.dropLocked(Stopping)
		s.signalLocked()
		s.idle.Broadcast()
	})()
	s.mu.Lock()
	defer s.mu.Unlock()
	for (len(s.queue) > 0 || s.working > 0) && s.reachedLocked() == "open" {
		s.idle.Wait()
	}
}

// finish ends the worker, which makes a last record if there is anything to say, and waits for it.
func (s *Stream) finish() {
	s.mu.Lock()
	begun := s.begun
	if !s.finished {
		s.finished = true
		close(s.quit)
	}
	s.mu.Unlock()
	if begun {
		<-s.ended
	}
}

func (s *Stream) count(fn func(*IntakeStats)) {
	s.src.mu.Lock()
	defer s.src.mu.Unlock()
	fn(&s.src.stats)
}

// turnLocked counts events that do not become facts, and sees to it that there will be a record of them.
func (s *Stream) turnLocked(why Refusal, n int64) {
	if n == 0 {
		return
	}
	s.count(func(st *IntakeStats) { st.Refused[why] += n })
	if s.turned == nil {
		s.turned = map[Refusal]int64{}
	}
	s.turned[why] += n
	s.signalLocked()
}

// signalLocked wakes the worker, which there is from the first event on.
func (s *Stream) signalLocked() {
	if !s.begun {
		if s.finished || len(s.queue) == 0 && s.turned == nil {
			return
		}
		s.begun = true
		go s.work() // ended, and waited for, by finish
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
