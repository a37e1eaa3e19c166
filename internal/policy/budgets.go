package policy

import (
	"sync"
	"time"

	"github.com/ostiary/ostiary/call"
)

// maxCallers bounds how many budgets are kept. Beyond, a caller without one is refused until another's is idle.
const maxCallers = 10_000

// Budgets keeps the budgets of all callers: one of each principal, over all its sessions, and one of each of its sessions.
// It is safe for concurrent use. It lives in memory: a gateway that starts again counts from nothing.
type Budgets struct {
	principal, session Limits

	mu   sync.Mutex // guards kept
	kept map[caller]Budget
}

type caller struct{ principal, session string }

// NewBudgets makes budgets with limits for a principal as a whole and for each of its sessions.
func NewBudgets(principal, session Limits) (*Budgets, error) {
	if err := principal.validate(); err != nil {
		return nil, err
	}
	if err := session.validate(); err != nil {
		return nil, err
	}
	return &Budgets{principal: principal, session: session, kept: map[caller]Budget{}}, nil
}

// Take counts one call of a principal's session, or refuses it. The session may be "".
func (b *Budgets) Take(principal, session string, digest call.Digest, now time.Time) Refusal {
	if b.principal == (Limits{}) && b.session == (Limits{}) {
		return Refusal{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	whole, one := caller{principal: principal}, caller{principal, session}
	if !b.roomLocked(whole, one, now) {
		return Refusal{Rule: "budget.callers", Reason: "too many callers at a time"}
	}
	w, refusal := b.kept[whole].Take(b.principal, now, digest)
	if refusal.Refused() {
		return refusal
	}
	if session != "" {
		o, refusal := b.kept[one].Take(b.session, now, digest)
		if refusal.Refused() {
			return refusal
		}
		b.kept[one] = o
	}
	b.kept[whole] = w
	return Refusal{}
}

// roomLocked says whether both callers have a place, or can be given one. Idle budgets make room.
func (b *Budgets) roomLocked(whole, one caller, now time.Time) bool {
	missing := 0
	if _, ok := b.kept[whole]; !ok {
		missing++
	}
	if _, ok := b.kept[one]; !ok && one != whole {
		missing++
	}
	if missing == 0 || len(b.kept)+missing <= maxCallers {
		return true
	}
	for c, kept := range b.kept {
		l := b.session
		if c.session == "" {
			l = b.principal
		}
		if kept.idle(l, now) {
			delete(b.kept, c)
		}
	}
	return len(b.kept)+missing <= maxCallers
}
