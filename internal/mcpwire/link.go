package mcpwire

import (
	"context"
	"fmt"
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

	later []provider.Generation // further generations over the same connection; guarded by u.mu
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

func (l *link) Renew(gen provider.Generation, tools []*call.Descriptor) error {
	l.u.mu.Lock()
	defer l.u.mu.Unlock()
	if _, taken := l.u.links[gen]; taken {
		return fmt.Errorf("generation %s exists already", gen)
	}
	if l.u.links[l.gen] != l {
		return fmt.Errorf("generation %s is closed", l.gen)
	}
	l.s.SetTools(tools)
	l.u.links[gen] = l
	l.later = append(l.later, gen)
	return nil
}

func (l *link) Changes() uint64 { return l.s.Changes() }

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
	for _, gen := range l.later {
		delete(l.u.links, gen)
	}
	l.later = nil
	l.u.mu.Unlock()
	return l.s.Close(ctx)
}
