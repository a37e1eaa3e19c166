package endpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// takeLegacy sees to a request that is not of the modern era. The first initialize opens a session of the SDK's server.
func (p *pipe) takeLegacy(f *content.Frame) {
	req := &request{export: p.export, principal: p.principal, id: f.ID, method: f.Method, params: f.Params}
	switch {
	case f.Method == methodInitialize:
		p.initialize(f)
	case p.legacy == nil && f.Method != methodPing:
		p.refuse(f.ID, failure(0, codeInvalidParams, `params._meta["`+keyVersion+`"] is required, or initialize first`))
	case f.Method == methodCallTool, f.Method == methodReadResource && req.offers():
		req.session = p.legacy.id
		p.callLegacy(req)
	case req.offers():
		p.listLegacy(req)
	case p.export.Resources != nil && (f.Method == methodSubscribe || f.Method == methodUnsubscribe):
		p.refuse(f.ID, p.e.subscribing(p.ctx, req, p.watching()))
	default:
		p.refuse(f.ID, req.within(func(level string) { p.level = level }))
	}
}

func (p *pipe) callLegacy(req *request) {
	ctx, cancel := context.WithCancel(p.ctx)
	r := p.begin(req.id, cancel)
	if r == nil {
		cancel()
		return
	}
	c, a, ok := p.e.prepareLegacy(req, p.level)
	if !ok {
		p.answer(r, &a, false)
		cancel()
		return
	}
	if p.elicits {
		c.elicit = func(ctx context.Context, params []byte) []byte {
			return p.asked.ask(ctx, p.message, methodElicit, params)
		}
	}
	go func() { // p.work waits for it
		defer cancel()
		a := p.call(ctx, cancel, r, c)
		p.answer(r, &a, false)
	}()
}

func (p *pipe) listLegacy(req *request) {
	ctx, cancel := context.WithCancel(p.ctx)
	r := p.begin(req.id, cancel)
	if r == nil {
		cancel()
		return
	}
	go func() { // p.work waits for it
		defer cancel()
		a := req.listResources(ctx, false)
		p.answer(r, &a, false)
	}()
}

// watching is what the pipe's session listens for.
func (p *pipe) watching() *watch {
	if p.watch == nil {
		w := p.e.watchers.watch(p.principal.ID)
		p.watch = w
		p.told.Go(func() { // ends with p.ctx
			for {
				select {
				case <-p.ctx.Done():
					return
				case <-w.news:
				}
				for _, uri := range w.take() {
					p.notify(noteResourceUpdated, updatedParams(uri))
				}
			}
		})
	}
	return p.watch
}

func (p *pipe) initialize(f *content.Frame) {
	params, problem := initializeParams(f.Params)
	if problem != "" {
		p.refuse(f.ID, failure(0, codeInvalidParams, problem))
		return
	}
	if p.legacy == nil {
		c := &pipeConn{p: p, id: "stdio-" + rand.Text(), in: make(chan jsonrpc.Message), done: make(chan struct{})}
		ss, err := p.export.legacy.server.Connect(p.ctx, pipeTransport{c}, nil)
		if err != nil {
			p.e.log.Error("open a legacy session on stdio", "err", err)
			p.refuse(f.ID, failure(0, codeInternal, "Internal error"))
			return
		}
		c.ss = ss
		p.legacy, p.elicits = c, elicits(content.Member(f.Params, "capabilities"))
	}
	r := p.begin(f.ID, func() {})
	if r == nil {
		return
	}
	r.handshake = true
	id, err := jsonrpc.MakeID(string(f.ID))
	if err != nil || !p.legacy.deliver(&jsonrpc.Request{ID: id, Method: f.Method, Params: params}) {
		a := failure(0, codeInternal, "Internal error")
		p.answer(r, &a, false)
	}
}

type pipeTransport struct{ c *pipeConn }

// Connect gives the one connection.
func (t pipeTransport) Connect(context.Context) (mcp.Connection, error) { return t.c, nil }

// pipeConn is the SDK's view of a pipe: the handshake goes in, its answer and notifications of changes come out. Ids cross
// it as strings that hold the client's own bytes, so none is rounded.
type pipeConn struct {
	p    *pipe
	id   string
	ss   *mcp.ServerSession
	in   chan jsonrpc.Message
	done chan struct{}
	once sync.Once
}

var _ mcp.Connection = (*pipeConn)(nil)

// deliver hands a message to the SDK, unless its session has ended.
func (c *pipeConn) deliver(m *jsonrpc.Request) bool {
	select {
	case c.in <- m:
		return true
	case <-c.done:
		return false
	}
}

// Read waits for the next message.
func (c *pipeConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write takes what the SDK sends.
func (c *pipeConn) Write(_ context.Context, m jsonrpc.Message) error {
	switch m := m.(type) {
	case *jsonrpc.Response:
		id, _ := m.ID.Raw().(string)
		a := answer{result: m.Result}
		if m.Error != nil {
			a.err = &call.ProviderError{Code: codeInternal, Message: m.Error.Error()}
			if wire, ok := errors.AsType[*jsonrpc.Error](m.Error); ok && wire.Code != 0 {
				a.err.Code = wire.Code
			}
		}
		c.p.mu.Lock()
		r := c.p.open[idKey([]byte(id))]
		c.p.mu.Unlock()
		if r != nil {
			c.p.answer(r, &a, false)
		}
	case *jsonrpc.Request:
		if !m.IsCall() { // nothing is asked of a client
			c.p.notify(m.Method, m.Params)
		}
	}
	return nil
}

// Close ends the connection.
func (c *pipeConn) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

// SessionID names the session.
func (c *pipeConn) SessionID() string { return c.id }

// end ends the session, waits for it, and closes a handshake that it has left unanswered.
func (c *pipeConn) end() {
	_ = c.ss.Close()
	_ = c.Close()
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	for key, r := range c.p.open {
		if r.handshake {
			delete(c.p.open, key)
			c.p.work.Done()
		}
	}
}
