package world

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// work commits what is queued, and records what was turned away.
func (s *Stream) work() {
	defer close(s.ended)
	due := time.NewTimer(time.Hour) // the next record
	defer due.Stop()
	var recorded time.Time // when the last one was made
	for over := false; ; {
		for s.commitSome() {
			if !over {
				s.pause()
			}
		}
		switch wait := s.in.o.RecordEvery - time.Since(recorded); {
		case !s.anyTurned():
		case over || recorded.IsZero() || wait <= 0:
			s.record()
			recorded = time.Now()
		default:
			due.Reset(wait)
		}
		if over {
			return
		}
		select {
		case <-s.wake:
		case <-due.C:
		case <-s.quit:
			over = true
		}
	}
}

// pause lets events gather, so that many of them cost a few commits, and the calls of others little. It does not listen for
// each of them: that would cost more than to commit it.
func (s *Stream) pause() {
	s.mu.Lock()
	enough := len(s.queue) >= s.in.o.Batch || s.closed != ""
	s.mu.Unlock()
	if !enough {
		time.Sleep(s.in.o.Pace) // an end of the stream waits for it
	}
}

func (s *Stream) anyTurned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.turned) > 0
}

// record says what was turned away since the record before.
func (s *Stream) record() {
	s.mu.Lock()
	t := Turned{Provider: s.src.pkg, Generation: s.generation, Counts: s.turned}
	s.turned = nil
	s.mu.Unlock()
	s.count(func(st *IntakeStats) {
		for _, n := range st.Refused {
			t.Total += n
		}
	})
	s.guarded("record", func() { s.in.o.Record(t) })
}

// guarded runs what is not ours; ok is false if it has panicked. Events are a stranger's, and none may end the process (F-64).
func (s *Stream) guarded(doing string, fn func()) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			s.in.o.Logger.Error("panic in the work on events", "provider", s.src.pkg, "doing", doing, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			ok = false
		}
	}()
	fn()
	return true
}

// take takes what the next commit is made of.
func (s *Stream) take() (batch [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reachedLocked() != "open" {
		return nil
	}
	n := min(len(s.queue), s.in.o.Batch)
	batch = s.queue[:n:n]
	if s.queue = s.queue[n:]; len(s.queue) == 0 {
		s.queue = nil // so that the array goes
	}
	for _, b := range batch {
		s.bytes -= len(b)
	}
	s.working = n
	return batch
}

// commitSome commits one batch; it says whether there was one.
func (s *Stream) commitSome() bool {
	payloads := s.take()
	if len(payloads) == 0 {
		return false
	}
	arrivals := s.prepare(payloads)
	var known []bool
	for len(arrivals) > 0 {
		var err error
		if !s.guarded("commit", func() {
			known, err = s.in.o.Commit(context.Background(), s.src.pkg, s.generation, arrivals) // it has a bound of its own
		}) {
			s.turn(Internal, len(arrivals)) // it would come again
			arrivals = nil
			break
		}
		if err == nil {
			break
		}
		s.in.o.Logger.Warn("commit events", "provider", s.src.pkg, "events", len(arrivals), "err", err)
		if s.givesUp() {
			s.turn(Stopping, len(arrivals))
			arrivals = nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(func(st *IntakeStats) {
		for i := range arrivals {
			switch {
			case known[i]:
				st.Repeated++
				continue
			case arrivals[i].Withheld:
				st.Withheld++
			}
			st.Committed++
		}
	})
	s.working = 0
	s.idle.Broadcast()
	return true
}

// givesUp waits before another attempt; it says that there is none, because nobody waits for it any more.
func (s *Stream) givesUp() bool {
	pause := time.NewTimer(s.in.o.RetryAfter)
	defer pause.Stop()
	for {
		s.mu.Lock()
		abandoned := s.abandoned
		s.mu.Unlock()
		if abandoned {
			return true
		}
		select {
		case <-pause.C:
			return false
		case <-s.wake: // perhaps it is given up
		}
	}
}

// turn refuses events that the worker has taken.
func (s *Stream) turn(why Refusal, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working -= n
	s.turnLocked(why, int64(n))
}

// prepare makes facts of those payloads that are events.
func (s *Stream) prepare(payloads [][]byte) []Arrival {
	arrivals := make([]Arrival, 0, len(payloads))
	admitted := false
	if s.guarded("ask for admission", func() { admitted = s.in.o.Admitted(s.src.pkg) == nil }); !admitted {
		s.turn(NotAdmitted, len(payloads))
		return arrivals
	}
	for _, p := range payloads {
		why, a := Refusal(""), Arrival{}
		if !s.guarded("prepare", func() { why, a = s.arrival(p) }) {
			why = Internal
		}
		if why != "" {
			s.turn(why, 1)
			continue
		}
		arrivals = append(arrivals, a)
	}
	return arrivals
}

// arrival makes a fact of one payload, or says why not.
func (s *Stream) arrival(payload []byte) (Refusal, Arrival) {
	e, err := ReadEvent(payload)
	if err == nil {
		err = maySpeak(s.src.pkg, s.src.scopes, e.Scope)
	}
	if no, ok := errors.AsType[*EventError](err); ok {
		return no.Refusal, Arrival{}
	}
	a := s.in.o.Prepare(context.Background(), s.src.pkg, e)
	return a.Refused, a
}
