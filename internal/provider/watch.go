package provider

import (
	"context"
	"time"
)

// watch follows one live connection until it ends or ctx does. An announced change is looked at, recorded and shown; the
// frozen catalog goes on as it is (R2.6). A connection that ends is reported and never re-opened here (R2.7).
func (m *Manager) watch(ctx context.Context, p *Provider) {
	p.mu.Lock()
	link := p.link
	p.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-link.Done():
			if ctx.Err() != nil { // it is us who are closing it
				return
			}
			text := "the connection ended"
			if err := link.Err(); err != nil {
				text = clip(err.Error(), 300)
			}
			p.mu.Lock()
			if p.state != Quarantined { // what an operator must look at stays visible
				p.setLocked(Degraded, Reason{ReasonConnectionLost, text}, m.o.Now())
			}
			p.mu.Unlock()
			m.o.Logger.Warn("provider connection lost", "provider", p.Profile.Package, "reason", text)
			m.event(EventState, p, nil)
			return
		case <-link.Changed():
			m.relist(ctx, p, link)
			select { // a storm of announcements is one listing a period
			case <-ctx.Done():
				return
			case <-link.Done():
			case <-time.After(m.o.RelistEvery):
			}
		}
	}
}

// relist reads the list again and keeps what differs. A change that was seen and has gone again is no longer shown, but a
// restart stays required: the frozen catalog may be older than both.
func (m *Manager) relist(ctx context.Context, p *Provider, link Link) {
	ctx, cancel := context.WithTimeout(ctx, p.Profile.Limits.Connect)
	defer cancel()
	listing, err := link.List(ctx)
	if err != nil {
		if ctx.Err() == nil || context.Cause(ctx) == context.DeadlineExceeded {
			m.o.Logger.Warn("re-list provider", "provider", p.Profile.Package, "err", err)
		}
		return
	}
	changes := p.catalog.Diff(&p.Profile, listing)
	p.mu.Lock()
	p.changes = changes
	p.restart = p.restart || len(changes) > 0
	p.mu.Unlock()
	if len(changes) > 0 {
		m.o.Logger.Info("provider catalog changed", "provider", p.Profile.Package, "changes", len(changes))
		m.event(EventChanged, p, nil)
	}
}
