package identity

import (
	"net/netip"
	"sync"
	"time"
)

// ThrottleOptions configures a [Throttle]. Zero fields take their default.
type ThrottleOptions struct {
	Limit   int           // failures of one source in one window that are still answered normally; 20
	Window  time.Duration // 1 minute
	Sources int           // sources remembered; 4096. Beyond it strangers share one count.
	Now     func() time.Time
}

// Throttle counts failed authentications by source address (F-47). It only ever judges failures: whoever shows a good
// token is not asked, so that nobody can lock out a caller by guessing from the same address.
type Throttle struct {
	limit   int
	window  time.Duration
	sources int
	now     func() time.Time

	mu     sync.Mutex // guards counts
	counts map[netip.Prefix]failures
}

type failures struct {
	began time.Time
	n     int
}

// NewThrottle makes a throttle.
func NewThrottle(o ThrottleOptions) *Throttle {
	t := &Throttle{limit: o.Limit, window: o.Window, sources: o.Sources, now: o.Now, counts: make(map[netip.Prefix]failures)}
	if t.limit <= 0 {
		t.limit = 20
	}
	if t.window <= 0 {
		t.window = time.Minute
	}
	if t.sources <= 0 {
		t.sources = 4096
	}
	if t.now == nil {
		t.now = time.Now
	}
	return t
}

// Failed counts one failure of the peer at remoteAddr ("ip:port"). Once there were too many in the window it says after
// how long the next one will be answered normally; else 0.
func (t *Throttle) Failed(remoteAddr string) (retryAfter time.Duration) {
	source := sourceOf(remoteAddr)
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	f, known := t.counts[source]
	if !known && len(t.counts) >= t.sources {
		t.sweepLocked(now)
		if len(t.counts) >= t.sources {
			source = netip.Prefix{} // the shared count
			f = t.counts[source]
		}
	}
	// A clock that goes backwards begins a new window rather than prolonging the old one.
	if age := now.Sub(f.began); age >= t.window || age < 0 {
		f = failures{began: now}
	}
	f.n = min(f.n+1, t.limit+1)
	t.counts[source] = f
	if f.n > t.limit {
		return t.window - now.Sub(f.began)
	}
	return 0
}

func (t *Throttle) sweepLocked(now time.Time) {
	for k, f := range t.counts {
		if age := now.Sub(f.began); age >= t.window || age < 0 {
			delete(t.counts, k)
		}
	}
}

// sourceOf is the address, or for IPv6 its /64: one host can use all of that. What is no address has the shared count.
func sourceOf(remoteAddr string) netip.Prefix {
	ap, err := netip.ParseAddrPort(remoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	a := ap.Addr().Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
