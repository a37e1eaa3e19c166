package endpoint

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// pipe is one client on a pipe: the requests that are open, and the one writer. Requests of both eras have one id space.
type pipe struct {
	e         *Endpoint
	export    *export
	principal call.Principal
	bound     int           // open requests
	broken    chan struct{} // closed when writing failed
	ctx       context.Context
	cancel    context.CancelFunc
	work      sync.WaitGroup // open requests

	legacy  *pipeConn // set by the first initialize; used by the reading goroutine alone, like those below
	level   string
	elicits bool           // the client can be shown a form
	watch   *watch         // the subscriptions of the handshake era; nil: there have been none
	told    sync.WaitGroup // the goroutine that tells of them

	asked asked // guards itself

	mu   sync.Mutex // guards open
	open map[string]*pipeRequest

	outMu sync.Mutex // guards out and err
	out   io.Writer
	err   error
}

// pipeRequest is one open request. Its fields are guarded by pipe.mu.
type pipeRequest struct {
	id        []byte
	cancel    context.CancelFunc
	listening bool
	handshake bool // the SDK answers it; set by the reading goroutine, read once that has ended
	cancelled bool // nothing more may be said about it
}

func newPipe(e *Endpoint, x *export, principal call.Principal, out io.Writer) *pipe {
	p := &pipe{
		e: e, export: x, principal: principal, out: out,
		bound: 2*e.o.MaxConcurrentPerPrincipal + 16, broken: make(chan struct{}), open: make(map[string]*pipeRequest),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// write puts one message on the pipe.
func (p *pipe) write(message []byte) {
	p.outMu.Lock()
	defer p.outMu.Unlock()
	if p.err != nil {
		return
	}
	if _, err := p.out.Write(append(message, '\n')); err != nil {
		p.err = err
		close(p.broken)
	}
}

func (p *pipe) writeError() error {
	p.outMu.Lock()
	defer p.outMu.Unlock()
	return p.err
}

func (p *pipe) notify(method string, params []byte) {
	p.message(func(dst []byte) []byte { return content.AppendNotification(dst, method, params) })
}

// message puts one message on the pipe, as write appends it.
func (p *pipe) message(write func(dst []byte) []byte) {
	buf := getBuffer()
	defer putBuffer(buf)
	buf.b = write(buf.b)
	p.write(buf.b)
}

// refuse answers what never became an open request.
func (p *pipe) refuse(id []byte, a answer) {
	buf := getBuffer()
	defer putBuffer(buf)
	buf.b = a.append(buf.b, id, true)
	p.write(buf.b)
}

// idKey tells ids apart as JSON values: "1" is not 1, and two spellings of one string are one id.
func idKey(id []byte) string {
	if s, ok := content.IDString(id); ok {
		return `"` + s
	}
	return string(id)
}

// begin opens a request; every one that is opened is ended once. It answers by itself what cannot be opened (S-001).
func (p *pipe) begin(id []byte, cancel context.CancelFunc) *pipeRequest {
	p.mu.Lock()
	key := idKey(id)
	problem := ""
	switch {
	case p.open[key] != nil:
		problem = "Invalid request: the id is in use by a request that is still open"
	case len(p.open) >= p.bound:
		problem = "Invalid request: too many requests are open"
	}
	if problem != "" {
		p.mu.Unlock()
		p.refuse(id, failure(0, codeInvalidRequest, problem))
		return nil
	}
	r := &pipeRequest{id: id, cancel: cancel}
	p.open[key] = r
	p.work.Add(1)
	p.mu.Unlock()
	return r
}

// endRequest closes a request. It says whether its answer may still be sent, and whether it was open at all.
func (p *pipe) endRequest(r *pipeRequest) (wanted, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := idKey(r.id)
	if p.open[key] != r {
		return false, false
	}
	delete(p.open, key)
	return !r.cancelled, true
}

// answer ends a request with an answer, unless it was cancelled.
func (p *pipe) answer(r *pipeRequest, a *answer, modern bool) {
	wanted, open := p.endRequest(r)
	if !open {
		return
	}
	defer p.work.Done()
	if wanted {
		buf := getBuffer()
		defer putBuffer(buf)
		buf.b = a.append(buf.b, r.id, modern)
		p.write(buf.b)
	}
}

// cancelled sees to a notifications/cancelled; one that names nothing open is ignored.
func (p *pipe) cancelled(f *content.Frame) {
	id := content.Member(f.Params, "requestId")
	if id == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.open[idKey(id)]; r != nil {
		r.cancelled = true
		r.cancel()
	}
}

// takeModern sees to a request of the modern era. Only what takes time gets a goroutine.
func (p *pipe) takeModern(f *content.Frame) {
	ctx, cancel := context.WithCancel(p.ctx)
	r := p.begin(f.ID, cancel)
	if r == nil {
		cancel()
		return
	}
	req := &request{export: p.export, principal: p.principal, id: f.ID, method: f.Method, params: f.Params}
	meta, a, ok := p.e.checkModern(req)
	if ok {
		switch {
		case f.Method == methodCallTool, f.Method == methodReadResource && req.offers():
			var c *toolCall
			if c, a, ok = p.e.prepareModern(req, &meta); ok {
				go func() { // p.work waits for it
					defer cancel()
					a := p.call(ctx, cancel, r, c)
					p.answer(r, &a, true)
				}()
				return
			}
		case req.offers():
			go func() { // p.work waits for it
				defer cancel()
				a := req.listResources(ctx, true)
				p.answer(r, &a, true)
			}()
			return
		case f.Method == methodListTools:
			a = req.list(true)
		case f.Method == methodDiscover:
			a = answer{result: p.export.discover}
		case f.Method == methodListen:
			var asked filter
			if asked, a, ok = p.export.listenFilter(req.params); ok && !p.e.listens.take() {
				a, ok = failure(0, codeInternal, "Unavailable: too many subscriptions"), false
			}
			if ok {
				p.mu.Lock()
				r.listening = true
				p.mu.Unlock()
				go func() { // p.work waits for it
					defer cancel()
					defer p.e.listens.give()
					p.listen(ctx, r, asked)
				}()
				return
			}
		default:
			a = methodNotFound(f.Method)
		}
	}
	p.answer(r, &a, true)
	cancel()
}

// call places a call; what it has to tell on the way goes through a mailbox, because the pipe may be slow.
func (p *pipe) call(ctx context.Context, cancel context.CancelFunc, r *pipeRequest, c *toolCall) answer {
	box := newMailbox(func(method string, params []byte) {
		p.mu.Lock()
		wanted := !r.cancelled
		p.mu.Unlock()
		if wanted {
			p.notify(method, params)
		}
	})
	c.post = box.post
	a := p.e.place(ctx, cancel, c)
	box.close()
	return a
}

// listen holds a subscription until its client cancels it or the pipe or the endpoint ends.
func (p *pipe) listen(ctx context.Context, r *pipeRequest, f filter) {
	w, a, ok := p.e.watchFor(ctx, p.principal.ID, f)
	if !ok {
		p.answer(r, &a, true)
		return
	}
	defer w.close()
	ch := p.export.hub.join()
	defer p.export.hub.leave(ch)
	p.notify(noteAck, ackParams(r.id, f))
	changes := ch
	if !f.tools {
		changes = nil
	}
	for {
		select {
		case <-changes:
			p.notify(noteToolsChange, changedParams(r.id))
		case <-w.news:
			for _, uri := range w.take() {
				p.notify(noteResourceUpdated, updatedOn(r.id, uri))
			}
		case <-p.e.closing:
			// On a shared channel the end of a stream is told by a cancellation as well (cancellation, schema).
			p.notify(noteCancelled, content.NewObject(nil).Raw("requestId", r.id).End())
			a := listenEnd(r.id)
			p.answer(r, &a, true)
			return
		case <-ctx.Done():
			p.mu.Lock()
			r.cancelled = true
			p.mu.Unlock()
			p.answer(r, &answer{}, true)
			return
		}
	}
}

// endListens cancels subscriptions: they have nobody left to tell.
func (p *pipe) endListens() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.open {
		if r.listening {
			r.cancelled = true
			r.cancel()
		}
	}
}

// end ends what is open. After the end of input (why is nil) subscriptions have nobody left to tell, and calls may finish
// for a while; when the endpoint closes, its bound holds for them; else they are cancelled at once.
func (p *pipe) end(why error) {
	var patience <-chan time.Time
	var stop <-chan struct{} // nil: nobody else says when
	switch {
	case why == nil:
		p.endListens()
		timer := time.NewTimer(stdioGrace)
		defer timer.Stop()
		patience = timer.C
	case errors.Is(why, errClosed):
		stop = p.e.ctx.Done()
	default:
		p.cancel()
	}
	idle := make(chan struct{})
	go func() { // ends when the work does, which the cancellation below brings about
		p.work.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-patience:
	case <-stop:
	case <-p.broken:
	case <-p.ctx.Done():
	}
	p.cancel()
	if p.legacy != nil {
		p.legacy.end()
	}
	<-idle
	if p.watch != nil {
		p.watch.close()
	}
	p.told.Wait()
}
