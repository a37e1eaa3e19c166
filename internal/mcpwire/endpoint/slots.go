package endpoint

import (
	"sync"
	"sync/atomic"
)

// gauge is a bound on how many of something there are.
type gauge struct {
	max int64
	n   atomic.Int64
}

func newGauge(bound int) *gauge { return &gauge{max: int64(bound)} }

func (g *gauge) take() bool {
	if g.n.Add(1) > g.max {
		g.n.Add(-1)
		return false
	}
	return true
}

func (g *gauge) give() { g.n.Add(-1) }

// lend gives a place back until the returned function takes it again, whatever the bound: for a request that has become
// something with a bound of its own.
func (g *gauge) lend() (back func()) {
	g.n.Add(-1)
	return func() { g.n.Add(1) }
}

// slots bounds running calls, in all and for each principal, so that one caller cannot starve the others (F-46). A call
// beyond the bound is refused as overloaded, not queued: the caller knows best whether to wait.
type slots struct {
	all          *gauge
	perPrincipal int

	mu   sync.Mutex // guards held
	held map[string]int
}

func newSlots(all, perPrincipal int) *slots {
	return &slots{all: newGauge(all), perPrincipal: perPrincipal, held: make(map[string]int)}
}

func (s *slots) take(principal string) bool {
	if !s.all.take() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[principal] >= s.perPrincipal {
		s.all.give()
		return false
	}
	s.held[principal]++
	return true
}

func (s *slots) give(principal string) {
	s.mu.Lock()
	if s.held[principal]--; s.held[principal] <= 0 {
		delete(s.held, principal) // principals come and go; the map must not only grow
	}
	s.mu.Unlock()
	s.all.give()
}
