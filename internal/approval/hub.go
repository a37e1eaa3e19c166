package approval

import (
	"context"
	"errors"
	"sync"
)

// ErrCrowded says that the hub has no room for another call that waits.
var ErrCrowded = errors.New("too many calls wait for a decision")

// Hub is where calls wait in this process until their request is decided. It holds no truth: a signal means that the row
// is worth reading. It is safe for concurrent use.
type Hub struct {
	most int

	mu      sync.Mutex // guards what follows
	waiting map[ID][]chan struct{}
	count   int
}

// NewHub makes a hub in which at most most calls wait at a time.
func NewHub(most int) *Hub { return &Hub{most: most, waiting: map[ID][]chan struct{}{}} }

// Wait returns the request as soon as it is no longer Waiting, as look reads it. When ctx ends first it returns the
// request as it was last read, and the error of ctx. look runs at the start and after each signal; it must read what is
// committed.
func (h *Hub) Wait(ctx context.Context, id ID, look func(context.Context) (Request, error)) (Request, error) {
	signal, err := h.join(id)
	if err != nil {
		return Request{}, err
	}
	defer h.leave(id, signal)
	for { // joined before the first look: a decision in between is not missed
		r, err := look(ctx)
		if err != nil || r.State != Waiting {
			return r, err
		}
		select {
		case <-signal:
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

// Notify wakes all calls that wait for one of the requests. It is called after the commit that changed them, never blocks,
// and may be called for requests that nobody waits for.
func (h *Hub) Notify(ids ...ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		for _, c := range h.waiting[id] {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}

// Waiting is how many calls wait.
func (h *Hub) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

func (h *Hub) join(id ID) (chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count >= h.most {
		return nil, ErrCrowded
	}
	c := make(chan struct{}, 1)
	h.waiting[id] = append(h.waiting[id], c)
	h.count++
	return c, nil
}

func (h *Hub) leave(id ID, c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.waiting[id]
	for i := range list {
		if list[i] == c {
			list[i] = list[len(list)-1]
			list = list[:len(list)-1]
			h.count--
			break
		}
	}
	if len(list) == 0 {
		delete(h.waiting, id)
	} else {
		h.waiting[id] = list
	}
}
