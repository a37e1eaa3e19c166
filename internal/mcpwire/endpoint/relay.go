package endpoint

import (
	"strconv"
	"sync"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// Bounds on what one call may tell its caller on the way: a burst, then a rate (S-060).
const (
	relayBurst = 64
	relayEvery = 10 * time.Millisecond
)

// relay passes the provider's progress and log messages on to the caller of one call: with the caller's own token, only
// progress that increases, only levels that were asked for, and nothing once the call has ended. Progress beyond the rate
// is coalesced, so that the newest is told in the end; log messages beyond it are dropped.
type relay struct {
	token []byte
	least int
	post  func(method string, params []byte)
	now   func() time.Time

	mu      sync.Mutex // guards what follows
	ended   bool
	told    bool
	last    float64
	pending []byte // params of the newest progress that the rate held back
	budget  int
	filled  time.Time
}

func newRelay(c *toolCall, now func() time.Time) *relay {
	return &relay{token: c.progressToken, least: severity(c.logLevel), post: c.post, now: now, budget: relayBurst, filled: now()}
}

func (r *relay) progress(p call.Progress) {
	value, err := strconv.ParseFloat(string(p.Progress), 64)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.told && value <= r.last {
		return
	}
	r.told, r.last = true, value
	o := content.NewObject(make([]byte, 0, 64+len(r.token)+len(p.Message))).Raw("progressToken", r.token).Raw("progress", p.Progress)
	if p.Total != nil {
		o.Raw("total", p.Total)
	}
	if p.Message != "" {
		o.String("message", p.Message)
	}
	params := o.End()
	if !r.spendLocked() {
		r.pending = params
		return
	}
	r.pending = nil
	r.post(noteProgress, params)
}

func (r *relay) message(m call.LogMessage) {
	level := severity(m.Level)
	if level < 0 || level < r.least || len(m.Data) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || !r.spendLocked() {
		return
	}
	o := content.NewObject(make([]byte, 0, 48+len(m.Data))).String("level", m.Level)
	if m.Logger != "" {
		o.String("logger", m.Logger)
	}
	r.post(noteMessage, oneLine(o.Raw("data", m.Data).End()))
}

// end tells the progress that was held back, and then nothing more.
func (r *relay) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended && r.pending != nil {
		r.post(noteProgress, r.pending)
	}
	r.ended = true
}

func (r *relay) spendLocked() bool {
	now := r.now()
	if n := int(now.Sub(r.filled) / relayEvery); n > 0 {
		r.budget = min(r.budget+n, relayBurst)
		r.filled = now
	}
	if r.budget == 0 {
		return false
	}
	r.budget--
	return true
}
