package ostiary

import (
	"sync"

	"github.com/ostiary/ostiary/internal/mcpwire"
	"github.com/ostiary/ostiary/internal/world"
)

// heardEvents holds what a server says has happened while it is looked at against the rules of events (R5.1, R5.2).
type heardEvents struct {
	mu        sync.Mutex // guards what follows
	agreed    bool
	good      int
	uninvited int    // those that nobody had agreed to
	bad       int    // those that break a rule
	fault     string // of the first of them
}

var _ mcpwire.Events = (*heardEvents)(nil)

func (h *heardEvents) Event(payload []byte) {
	_, err := world.ReadEvent(payload)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.agreed:
		h.uninvited++
	case err == nil:
		h.good++
	default:
		if h.bad++; h.bad == 1 {
			h.fault = err.Error()
		}
	}
}

func (h *heardEvents) Unasked() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.uninvited++
}

func (h *heardEvents) Agreed(holds bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.agreed = holds
}

// events says what of them came, and what was wrong with them.
func (p *probe) events(r *ProbedRevision, h *heardEvents) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.Events = h.good
	if h.uninvited > 0 {
		p.fault("revision "+r.Revision, "send events to clients that agreed to them, after they had your answer", "events that nobody had agreed to: %d", h.uninvited)
	}
	if h.bad > 0 {
		p.fault("revision "+r.Revision, "", "events that break the rules: %d; the first: %s", h.bad, h.fault)
	}
}
