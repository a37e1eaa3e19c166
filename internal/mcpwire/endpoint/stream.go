package endpoint

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// streamSoon is how long a call that may have something to tell can still be answered as plain JSON, with an HTTP status
// of its own. After it the headers of a stream go out, so that the client sees that its call lives.
const streamSoon = 50 * time.Millisecond

var (
	headerSSE      = []string{"text/event-stream"}
	headerNoCache  = []string{"no-cache, no-transform"}
	headerNoBuffer = []string{"no"}
	commentKeep    = []byte(": keep-alive\n\n")
	eventBegin     = "event: message\ndata: "
	eventEnd       = "\n\n"
)

// callStreaming places a call and answers it over HTTP: as one JSON body if it is over soon and has nothing to tell before,
// else as a stream, whose headers go out early. cancel ends ctx; broken is called when the client can be reached no more.
func (e *Endpoint) callStreaming(ctx context.Context, cancel, broken context.CancelFunc, x *exchange, c *toolCall) {
	defer e.requests.lend()()
	s := &stream{x: x, keepAlive: e.o.KeepAlive, broken: broken}
	if !x.streams {
		a := e.place(ctx, cancel, c)
		s.finish(&a, c.id)
		return
	}
	if c.asked != nil {
		c.elicit = func(ctx context.Context, params []byte) []byte {
			return c.asked.ask(ctx, s.message, methodElicit, params)
		}
	}
	if c.progressToken == nil && c.logLevel == "" {
		s.openAfter(e.o.KeepAlive)
		a := e.place(ctx, cancel, c)
		s.finish(&a, c.id)
		return
	}
	box := newMailbox(s.notify)
	defer box.close()
	c.post = box.post
	s.openAfter(streamSoon)
	a := e.place(ctx, cancel, c)
	box.close()
	s.finish(&a, c.id)
}

// stream is the answer to one call: plain JSON until something makes it an event stream.
type stream struct {
	x         *exchange
	keepAlive time.Duration
	broken    func() // called when the client can no longer be reached

	mu    sync.Mutex // guards what follows, and writing to x.w
	open  bool       // the headers of an event stream have gone out
	done  bool
	timer *time.Timer
	rc    *http.ResponseController
}

// openAfter makes it a stream if it is not answered by then, and keeps it alive from there on.
func (s *stream) openAfter(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(d, s.tick)
}

func (s *stream) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return
	}
	s.openLocked()
	s.sendLocked(commentKeep)
	s.timer.Reset(s.keepAlive)
}

// notify sends a notification. It may block as long as the client is slow.
func (s *stream) notify(method string, params []byte) {
	s.message(func(dst []byte) []byte { return content.AppendNotification(dst, method, params) })
}

// message sends one message before the answer, as write appends it.
func (s *stream) message(write func(dst []byte) []byte) {
	buf := getBuffer()
	defer putBuffer(buf)
	buf.b = append(buf.b, eventBegin...)
	buf.b = write(buf.b)
	buf.b = append(buf.b, eventEnd...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return
	}
	s.openLocked()
	s.sendLocked(buf.b)
}

// finish sends the answer. Nothing is sent after it, and the answer's bytes are given back.
func (s *stream) finish(a *answer, id []byte) {
	if a.reply != nil && a.reply.Release != nil {
		defer a.reply.Release()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	if s.timer != nil {
		s.timer.Stop()
	}
	if !s.open {
		s.x.write(a, id)
		return
	}
	buf := getBuffer()
	defer putBuffer(buf)
	buf.b = append(buf.b, eventBegin...)
	buf.b = a.append(buf.b, id, !s.x.legacy)
	buf.b = append(buf.b, eventEnd...)
	s.sendLocked(buf.b)
}

func (s *stream) openLocked() {
	if s.open {
		return
	}
	s.open = true
	s.rc = http.NewResponseController(s.x.w)
	s.x.beginEvents()
}

func (s *stream) sendLocked(b []byte) {
	if _, err := s.x.w.Write(b); err != nil {
		s.broken()
		return
	}
	_ = s.rc.Flush() // a failure shows at the next write
}

// beginEvents sends the headers of an event stream; the first flush carries them out.
func (x *exchange) beginEvents() {
	h := x.w.Header()
	h["Content-Type"] = headerSSE
	h["Cache-Control"] = headerNoCache
	h["X-Accel-Buffering"] = headerNoBuffer
	x.w.WriteHeader(http.StatusOK)
}
