package sqlstore

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/internal/store"
)

// health is what the store knows of its ability to write. It changes in four ways: a commit takes too long (stalled) and
// ends after all; a commit fails for a passing reason and a later one succeeds; it fails for good; the store is closed.
type health struct {
	now atomic.Pointer[condition]

	mu    sync.Mutex // guards changes of now, and busy
	busy  bool       // the writer works on a group
	timer *time.Timer
	after time.Duration
	log   *slog.Logger
}

// condition is one state of health.
type condition struct {
	err     error         // nil: healthy
	stalled bool          // the disk does not answer: what is being committed may or may not be
	ended   chan struct{} // closed when a healthy condition ends
	next    *condition    // what it ended in; set before ended is closed
}

func newHealth(stallAfter time.Duration, log *slog.Logger) *health {
	h := &health{after: stallAfter, log: log}
	h.now.Store(&condition{ended: make(chan struct{})})
	h.timer = time.AfterFunc(time.Hour, h.stall)
	h.timer.Stop()
	return h
}

func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{store.ErrUnavailable}, args...)...)
}

// started says that the writer begins to work on a group.
func (h *health) started() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy = true
	h.timer.Reset(h.after)
}

func (h *health) stall() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy && h.now.Load().err == nil {
		h.log.Error("disk does not answer", "after", h.after)
		h.set(&condition{err: unavailable("the disk has not answered for %s", h.after), stalled: true})
	}
}

// ended says how the work on a group ended. It tells whether that is a change.
func (h *health) ended(err error) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy = false
	h.timer.Stop()
	was := h.now.Load()
	switch {
	case err != nil:
		h.set(&condition{err: err})
		return was.err == nil || was.stalled
	case was.err != nil:
		h.set(&condition{ended: make(chan struct{})})
		return true
	}
	return false
}

// set replaces the condition and wakes those who wait on a healthy one.
func (h *health) set(c *condition) {
	was := h.now.Swap(c)
	if was.err == nil && c.err != nil {
		was.next = c
		close(was.ended)
	}
}
