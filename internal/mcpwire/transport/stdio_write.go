package transport

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// exchange is one message on its way through the single writer and, if it is a request, back.
type exchange struct {
	id       string // "" : no answer is awaited
	delivery *Delivery
	buf      *[]byte // the line; the writer's once it has left the queue
	state    atomic.Int32
	answer   chan answer // capacity 1; one send at most
	answered atomic.Bool
	onAnswer func(result []byte)
	reply    bool // to a request of the server; nobody waits for it
}

const (
	exchangeQueued int32 = iota
	exchangeWriting
	exchangeWithdrawn
)

type answer struct {
	resp Response
	err  error
}

// withdraw takes the message back. It reports whether that came in time: then not one byte of it is ever written.
func (x *exchange) withdraw() bool {
	return x.state.CompareAndSwap(exchangeQueued, exchangeWithdrawn) || x.state.Load() == exchangeWithdrawn
}

// claim is the writer's side of withdraw.
func (x *exchange) claim() bool { return x.state.CompareAndSwap(exchangeQueued, exchangeWriting) }

func (x *exchange) deliver(r Response) { x.settle(answer{resp: r}) }

func (x *exchange) fail(f *Fault) { x.settle(answer{err: f}) }

func (x *exchange) settle(a answer) {
	if x.answered.CompareAndSwap(false, true) {
		x.answer <- a
	}
}

// lineBuffers are the buffers of outgoing lines. Big ones are left to the collector.
var lineBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}

const maxPooledLine = 64 << 10

func putLine(b *[]byte) {
	if cap(*b) <= maxPooledLine {
		*b = (*b)[:0]
		lineBuffers.Put(b)
	}
}

// Do implements [Carrier]. A request that is still in the queue when ctx ends is provably not sent; one that is in the
// pipe is marked as possibly sent.
func (c *StdioCarrier) Do(ctx context.Context, r *Request) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	x := &exchange{id: r.ID, delivery: r.Delivery, onAnswer: r.OnAnswer, answer: make(chan answer, 1)}
	if err := c.open(x); err != nil {
		return Response{}, err
	}
	x.buf = lineBuffers.Get().(*[]byte)
	*x.buf = append(content.AppendRequest((*x.buf)[:0], r.ID, r.Method, r.Params), '\n')
	select {
	case c.queue <- x:
	case <-ctx.Done():
		c.forget(x)
		return Response{}, ctx.Err()
	case a := <-x.answer: // the connection ended
		return a.resp, a.err
	}
	select {
	case a := <-x.answer:
		return a.resp, a.err
	case <-ctx.Done():
		c.forget(x)
		select {
		case a := <-x.answer: // it came in the same moment: what is known is not thrown away
			if a.err == nil {
				return a.resp, nil
			}
		default:
		}
		return Response{}, ctx.Err()
	}
}

// open enters a request among those that an answer may come for.
func (c *StdioCarrier) open(x *exchange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return &Fault{Code: call.CodeProviderUnavailable, Detail: c.err.Error()}
	}
	if _, ok := c.pending[x.id]; ok || x.id == "" {
		return &Fault{Code: call.CodeInternal, Detail: fmt.Sprintf("request id %q is in use", x.id)}
	}
	c.pending[x.id] = x
	return nil
}

// maxAbandoned bounds the memory for requests that were given up. Beyond it an answer that comes late counts as stray.
const maxAbandoned = 4096

// forget gives a request up. If it may have been sent, its answer is expected to come late.
func (c *StdioCarrier) forget(x *exchange) {
	unsent := x.withdraw()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[x.id] != x {
		return
	}
	delete(c.pending, x.id)
	if unsent {
		return
	}
	if len(c.abandoned) >= maxAbandoned {
		for id := range c.abandoned {
			delete(c.abandoned, id)
			break
		}
	}
	c.abandoned[x.id] = struct{}{}
}

// Notify implements [Carrier]. The header has no place here.
func (c *StdioCarrier) Notify(ctx context.Context, method string, params []byte, _ http.Header) error {
	buf := lineBuffers.Get().(*[]byte)
	*buf = append(content.AppendNotification((*buf)[:0], method, params), '\n')
	return c.send(ctx, buf)
}

// send writes one line that no answer is awaited for, and waits until it is in the pipe.
func (c *StdioCarrier) send(ctx context.Context, line *[]byte) error {
	x := &exchange{buf: line, answer: make(chan answer, 1)}
	select {
	case c.queue <- x:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return &Fault{Code: call.CodeProviderUnavailable, Detail: c.Err().Error()}
	}
	select {
	case a := <-x.answer:
		return a.err
	case <-ctx.Done():
		x.withdraw()
		return ctx.Err()
	case <-c.done:
		return lost(x, c.Err())
	}
}

// maxReplies bounds the refusals that wait for the pipe (F-28).
const maxReplies = 16

// refuse answers a request of a legacy server that nothing here is declared for. It never waits; it reports whether the
// answer was taken on.
func (c *StdioCarrier) refuse(id []byte) bool {
	if c.replies.Add(1) > maxReplies {
		c.replies.Add(-1)
		return false
	}
	buf := lineBuffers.Get().(*[]byte)
	*buf = append(content.AppendError((*buf)[:0], id, &methodNotFound), '\n')
	select {
	case c.queue <- &exchange{buf: buf, answer: make(chan answer, 1), reply: true}:
		return true
	default:
		c.replies.Add(-1)
		return false
	}
}

var methodNotFound = call.ProviderError{Code: -32601, Message: "Method not found"}

// writeLoop is the only writer of the child's stdin. A write that the child does not take in time ends the connection: a
// line that was begun cannot be taken back.
func (c *StdioCarrier) writeLoop() {
	watchdog := time.AfterFunc(time.Hour, func() {
		c.finish(fmt.Errorf("the server did not read its input for %s", c.opts.WriteTimeout))
	})
	watchdog.Stop()
	defer watchdog.Stop()
	for {
		var x *exchange
		select {
		case x = <-c.queue:
		case <-c.done:
			return
		}
		if !x.claim() {
			putLine(x.buf)
			continue
		}
		x.delivery.MaybeSent()
		watchdog.Reset(c.opts.WriteTimeout)
		_, err := c.stdin.Write(*x.buf)
		watchdog.Stop()
		putLine(x.buf)
		if x.reply {
			c.replies.Add(-1)
		}
		if err != nil {
			c.writeFailed(x, err)
			return
		}
		if x.id == "" {
			x.deliver(Response{})
		}
	}
}

// writeFailed ends the connection. A child that has died says more by its exit status than the broken pipe does, so that
// is waited for a moment.
func (c *StdioCarrier) writeFailed(x *exchange, err error) {
	if c.proc.waitFor(drainGrace / 2) {
		waitEither(c.readerDone, c.done, drainGrace)
		c.finish(fmt.Errorf("the server process ended: %s", c.proc.exitText()))
	} else {
		c.finish(fmt.Errorf("write to the server: %w", err))
	}
	if x.id == "" {
		x.fail(lost(x, err))
	}
}
