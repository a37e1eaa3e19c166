package provider

import (
	"context"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/drift"
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
		case <-p.hurry:
		}
		m.relist(ctx, p, link)
		pause := time.NewTimer(m.o.RelistEvery) // a storm of announcements is one listing a period
		for resting := true; resting; {
			select {
			case <-ctx.Done():
				resting = false
			case <-link.Done():
				resting = false
			case <-pause.C:
				resting = false
			case <-p.hurry: // unless calls wait: then it is one listing a call at most
				m.relist(ctx, p, link)
			}
		}
		pause.Stop()
	}
}

// relist reads the list again and keeps what differs. A change that was seen and has gone again is no longer shown, but a
// restart stays required: the frozen catalog may be older than both. A list that is the same as the one before, byte for
// byte, needs no second look.
func (m *Manager) relist(ctx context.Context, p *Provider, link Link) {
	ctx, cancel := context.WithTimeout(ctx, p.Profile.Limits.Connect)
	defer cancel()
	before, began := link.Changes(), m.o.Now()
	listing, err := link.List(ctx)
	if err != nil {
		p.settle(before, began, err)
		if ctx.Err() == nil || context.Cause(ctx) == context.DeadlineExceeded {
			m.o.Logger.Warn("re-list provider", "provider", p.Profile.Package, "err", err)
		}
		return
	}
	digest := listing.Digest()
	p.mu.Lock()
	same := p.compared == digest
	p.mu.Unlock()
	if same {
		p.settle(before, began, nil)
		return
	}
	changes := p.Catalog().Diff(&p.Profile, listing)
	var gone map[string]bool
	for _, c := range changes {
		if c.Kind == drift.Removed {
			if gone == nil {
				gone = map[string]bool{}
			}
			gone[c.Tool] = true
		}
	}
	if gone == nil {
		p.gone.Store(nil)
	} else {
		p.gone.Store(&gone)
	}
	if m.o.OnListed != nil {
		if err := m.o.OnListed(p, offered(&p.Profile, listing)); err != nil {
			digest = [32]byte{} // the same list is to be told of again
		}
	}
	p.mu.Lock()
	p.compared, p.changes = digest, changes
	p.restart = p.restart || len(changes) > 0
	p.mu.Unlock()
	p.settle(before, began, nil)
	if len(changes) > 0 {
		m.o.Logger.Info("provider catalog changed", "provider", p.Profile.Package, "changes", len(changes))
		m.event(EventChanged, p, nil)
	}
}

// offered are the allowed tools of a listing, with their digests. What cannot be read is not offered.
func offered(p *Profile, l Listing) (out []*call.Descriptor) {
	seen := map[string]bool{}
	for _, raw := range l.Tools {
		d, err := Read(p, raw)
		if err != nil || seen[d.RawName] {
			continue
		}
		seen[d.RawName] = true
		if d.SchemaDigest, err = drift.Digest(orNull(d.InputSchema)); err != nil {
			continue
		}
		if d.DescriptorDigest, err = drift.Digest(d.Definition); err != nil {
			continue
		}
		out = append(out, d)
	}
	return out
}
