package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// patience is how long a line waits for somebody to read stderr.
const patience = time.Second

// patient writes lines to a stream that perhaps nobody reads, as clients that start a gateway over stdio may not. What was
// not taken in time is left out from then on, until it is, so that a full pipe holds up no call and no end (F-50).
type patient struct {
	to io.Writer

	mu      sync.Mutex // guards what follows, and writing
	last    chan error // capacity 1: how the write that is under way ends; nil: none is
	dropped int        // lines, since then
}

func newPatient(to io.Writer) *patient { return &patient{to: to} }

func (p *patient) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil {
		select {
		case <-p.last:
			p.last = nil
		default:
			p.dropped++
			return len(line), nil
		}
	}
	n := len(line)
	if p.dropped > 0 {
		line = fmt.Appendf(nil, "(%d lines that nobody was there to read were left out)\n%s", p.dropped, line)
	}
	done := make(chan error, 1)
	text := append([]byte(nil), line...) // the caller may use its own again before this one is written
	go func() {
		_, err := p.to.Write(text)
		done <- err
	}()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case err := <-done:
		p.dropped = 0
		return n, err
	case <-t.C:
		p.last, p.dropped = done, 0
		return n, nil
	}
}
