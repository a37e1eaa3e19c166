package mcpwire

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/session"
	"github.com/ostiary/ostiary/internal/provider"
)

// link is one generation's connection.
type link struct {
	u      *Upstreams
	gen    provider.Generation
	pkg    string
	s      *session.Session
	frozen atomic.Bool // the start has succeeded
}

var _ provider.Link = (*link)(nil)

func (l *link) Negotiated() provider.Negotiated { return l.s.Negotiated() }

func (l *link) List(ctx context.Context) (provider.Listing, error) {
	listing, err := l.s.List(ctx)
	if err != nil {
		return listing, &provider.StartError{Provider: l.pkg, Phase: provider.PhaseList, Cause: err, Advice: adviceOf(err)}
	}
	return listing, nil
}

func (l *link) SetTools(tools []*call.Descriptor) {
	l.frozen.Store(true)
	l.s.SetTools(tools)
}

func (l *link) Changed() <-chan struct{} { return l.s.Changed() }

func (l *link) Done() <-chan struct{} { return l.s.Done() }

func (l *link) Err() error { return l.s.Err() }

func (l *link) Stats() provider.LinkStats { return l.s.Stats() }

// quickClose bounds the end of a connection whose start did not succeed: it has nothing to finish in peace.
const quickClose = 500 * time.Millisecond

func (l *link) Close(ctx context.Context) error {
	if !l.frozen.Load() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, quickClose)
		defer cancel()
	}
	l.u.mu.Lock()
	if l.u.links[l.gen] == l {
		delete(l.u.links, l.gen)
	}
	l.u.mu.Unlock()
	return l.s.Close(ctx)
}
