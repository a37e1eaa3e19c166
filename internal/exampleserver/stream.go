package exampleserver

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"
)

// stream is a response that becomes an event stream when the first event is written. Its methods may be called
// concurrently. Writes to a client that has left are lost, and its request's context ends the work.
type stream struct {
	mu     sync.Mutex // guards what follows
	w      http.ResponseWriter
	opened bool
}

func (s *stream) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openLocked()
}

func (s *stream) openLocked() {
	if s.opened {
		return
	}
	s.opened = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(s.w).Flush()
}

func (s *stream) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// event writes one message. Line ends between its tokens become further data lines, which the reader joins again.
func (s *stream) event(msg []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openLocked()
	b := []byte("event: message\n")
	for line := range bytes.FieldsFuncSeq(msg, func(r rune) bool { return r == '\n' || r == '\r' }) {
		b = append(append(append(b, "data: "...), line...), '\n')
	}
	_, _ = s.w.Write(append(b, '\n'))
	_ = http.NewResponseController(s.w).Flush()
}

func (s *stream) comment() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.w.Write([]byte(": \n\n"))
	_ = http.NewResponseController(s.w).Flush()
}

// keepAlive writes a comment now and then while the stream is open. The function that it returns ends that and waits.
func (s *stream) keepAlive(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(keepAlive)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if s.isOpen() {
					s.comment()
				}
			}
		}
	})
	return func() { cancel(); running.Wait() }
}
