package endpoint

import "sync"

// mailboxBound is how many notifications of one call wait for a slow client.
const mailboxBound = 128

// mailbox carries the notifications of one call from the provider's side, which must not wait for a client, to the
// client's side, which may be slow. What does not fit is dropped: notifications are hints. It runs a goroutine only while
// there is something to send; close waits for it. The zero value with send set is ready.
type mailbox struct {
	send func(method string, params []byte) // called by one goroutine at a time, in order

	mu      sync.Mutex // guards what follows
	queue   []note
	pumping bool
	closed  bool
	idle    sync.Cond // on mu; signalled when pumping ends
}

type note struct {
	method string
	params []byte
}

func newMailbox(send func(method string, params []byte)) *mailbox {
	m := &mailbox{send: send}
	m.idle.L = &m.mu
	return m
}

func (m *mailbox) post(method string, params []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.queue) >= mailboxBound {
		return
	}
	m.queue = append(m.queue, note{method, params})
	if !m.pumping {
		m.pumping = true
		go m.pump()
	}
}

func (m *mailbox) pump() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.queue) > 0 {
		batch := m.queue
		m.queue = nil
		m.mu.Unlock()
		for _, n := range batch {
			m.send(n.method, n.params)
		}
		m.mu.Lock()
	}
	m.pumping = false
	m.idle.Broadcast()
}

// close takes nothing more, and returns when all that was taken has been sent.
func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for m.pumping {
		m.idle.Wait()
	}
}
