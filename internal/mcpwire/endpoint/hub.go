package endpoint

import "sync"

// hub tells listeners of an export that its tool set changed. A listener holds a channel of capacity one and nothing else:
// signals that it has not taken yet become one (F-27).
type hub struct {
	mu        sync.Mutex // guards listeners
	listeners map[chan struct{}]struct{}
}

func (h *hub) join() chan struct{} {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == nil {
		h.listeners = make(map[chan struct{}]struct{})
	}
	h.listeners[ch] = struct{}{}
	return ch
}

func (h *hub) leave(ch chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, ch)
}

func (h *hub) signal() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.listeners {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
