package endpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/world"
)

// Bounds of subscriptions to resources.
const (
	maxWatched          = 64   // resources of one subscription, session or pipe
	maxWatchedPrincipal = 1024 // over all of them
	watchPause          = 250 * time.Millisecond
)

var errTooManyWatched = errors.New("too many subscriptions")

// watchers tell clients that scopes which they subscribed to have moved: those that asked, and nobody else (R15.2). One
// goroutine looks at the heads of all scopes that are watched, at most every watchPause, and only while there are any; what
// moves in between is told once.
type watchers struct {
	e *Endpoint

	mu    sync.Mutex // guards what follows, and the fields of each watch
	all   map[*watch]struct{}
	held  map[string]int     // resources that a principal's watches have
	stop  context.CancelFunc // ends the goroutine; nil: there is none
	again chan struct{}      // capacity 1: a watch has begun
}

// watch is what one client listens for: a subscription, a session or a pipe.
type watch struct {
	of        *watchers
	principal string
	news      chan struct{} // capacity 1

	resources map[string]*watched // by address, as its client wrote it
	closed    bool
}

type watched struct {
	scope call.Scope
	known int64 // the head that the client knows of; below 0: it is being read
	moved bool  // and the client has not been told
}

func newWatchers(e *Endpoint) *watchers {
	return &watchers{e: e, all: map[*watch]struct{}{}, held: map[string]int{}, again: make(chan struct{}, 1)}
}

func (ws *watchers) watch(principal string) *watch {
	return &watch{of: ws, principal: principal, news: make(chan struct{}, 1), resources: map[string]*watched{}}
}

// subscribe adds resources, all or none. What is committed to them from then on is told.
func (w *watch) subscribe(ctx context.Context, resources map[string]call.Scope) error {
	ws := w.of
	fresh, err := w.add(resources)
	if err != nil || len(fresh) == 0 {
		return err
	}
	// The heads are read when the resources are there already: what moves now is seen by the round that follows.
	scopes := map[call.Scope]int64{}
	for _, uri := range fresh {
		scopes[resources[uri]] = 0
	}
	if err := ws.read(ctx, scopes); err != nil {
		for _, uri := range fresh {
			w.unsubscribe(uri)
		}
		return fmt.Errorf("read heads: %w", err)
	}
	ws.mu.Lock()
	for _, uri := range fresh {
		if r := w.resources[uri]; r != nil && r.known < 0 {
			r.known = scopes[r.scope]
		}
	}
	ws.mu.Unlock()
	signal(ws.again)
	return nil
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// add says which of the resources are new.
func (w *watch) add(resources map[string]call.Scope) (fresh []string, err error) {
	ws := w.of
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for uri := range resources {
		if w.resources[uri] == nil {
			fresh = append(fresh, uri)
		}
	}
	switch {
	case w.closed || len(fresh) == 0:
		return nil, nil
	case len(w.resources)+len(fresh) > maxWatched:
		return nil, fmt.Errorf("%w: at most %d resources are possible here", errTooManyWatched, maxWatched)
	case ws.held[w.principal]+len(fresh) > maxWatchedPrincipal:
		return nil, fmt.Errorf("%w: at most %d resources are possible over all sessions of a principal", errTooManyWatched, maxWatchedPrincipal)
	}
	for _, uri := range fresh {
		w.resources[uri] = &watched{scope: resources[uri], known: -1}
	}
	ws.held[w.principal] += len(fresh)
	ws.all[w] = struct{}{}
	if ws.stop == nil && ws.e.enter() {
		var ctx context.Context
		ctx, ws.stop = context.WithCancel(ws.e.closingCtx)
		go ws.run(ctx) // Close waits for it
	}
	return fresh, nil
}

// unsubscribe ends one subscription; one that is not there is ended already.
func (w *watch) unsubscribe(uri string) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.dropLocked(uri)
}

func (w *watch) dropLocked(uri string) {
	ws := w.of
	if w.resources[uri] == nil {
		return
	}
	delete(w.resources, uri)
	if ws.held[w.principal]--; ws.held[w.principal] == 0 {
		delete(ws.held, w.principal)
	}
	if len(w.resources) > 0 {
		return
	}
	delete(ws.all, w)
	if len(ws.all) == 0 && ws.stop != nil {
		ws.stop()
		ws.stop = nil
	}
}

// close ends all subscriptions. None begins after it.
func (w *watch) close() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.closed = true
	for uri := range w.resources {
		w.dropLocked(uri)
	}
}

// take lists the addresses of what has moved since it was taken last, in order.
func (w *watch) take() (uris []string) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	for uri, r := range w.resources {
		if r.moved {
			r.moved = false
			uris = append(uris, uri)
		}
	}
	slices.Sort(uris)
	return uris
}

// run looks after each signal until ctx ends.
func (ws *watchers) run(ctx context.Context) {
	defer ws.e.running.Done()
	changed := ws.e.o.World.Watch(ctx)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select { // not more often than that, whatever is committed
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-ws.again:
		}
		if err := ws.look(ctx); err != nil {
			if ctx.Err() == nil {
				ws.e.log.Warn("read heads for subscriptions", "err", err)
			}
			signal(ws.again) // the next round, or the next goroutine, looks again
		}
		pause.Reset(watchPause)
	}
}

// look finds out what has moved, and who wants to know.
func (ws *watchers) look(ctx context.Context) error {
	scopes := map[call.Scope]int64{}
	ws.mu.Lock()
	for w := range ws.all {
		for _, r := range w.resources {
			scopes[r.scope] = 0
		}
	}
	ws.mu.Unlock()
	if err := ws.read(ctx, scopes); err != nil {
		return err
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.all {
		news := false
		for _, r := range w.resources {
			if head := scopes[r.scope]; r.known >= 0 && head > r.known {
				r.known, r.moved, news = head, true, true
			}
		}
		if news {
			signal(w.news)
		}
	}
	return nil
}

// read fills in the heads of scopes.
func (ws *watchers) read(ctx context.Context, scopes map[call.Scope]int64) error {
	names := make([]call.Scope, 0, len(scopes))
	for s := range scopes {
		names = append(names, s)
	}
	for part := range slices.Chunk(names, world.MaxFrontier) {
		heads, err := ws.e.o.World.Heads(ctx, part)
		if err != nil {
			return err
		}
		for s, head := range heads {
			scopes[s] = head
		}
	}
	return nil
}
