package sqlstore

import (
	"context"
	"sync"
)

// watchers are the channels that are signalled after each commit.
type watchers struct {
	mu  sync.Mutex // guards all
	all map[chan struct{}]struct{}
}

// Watch implements store.Store. The channel is closed when ctx ends.
func (s *Store) Watch(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{}, 1)
	w := &s.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[chan struct{}]struct{}{}
	}
	w.all[ch] = struct{}{}
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, ch)
		close(ch)
	})
	return ch
}

func (w *watchers) signal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range w.all {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
