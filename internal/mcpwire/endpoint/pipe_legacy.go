package endpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// takeLegacy sees to a request that is not of the modern era. The first initialize opens a session of the SDK's server.
func (p *pipe) takeLegacy(f *content.Frame) {
	if p.legacy == nil && f.Method != methodInitialize {
		a := failure(0, codeInvalidParams, `params._meta["`+keyVersion+`"] is required, or initialize first`)
		if f.Method == methodPing {
			a = answer{result: []byte("{}")}
		}
		p.refuse(f.ID, a)
		return
	}
	if !legacyMethod(f.Method) {
		p.refuse(f.ID, methodNotFound(f.Method))
		return
	}
	if _, problem := sdkParams(f); problem != "" {
		p.refuse(f.ID, failure(0, codeInvalidParams, problem))
		return
	}
	if p.legacy == nil {
		c, err := p.connectLegacy()
		if err != nil {
			p.e.log.Error("open a legacy session on stdio", "err", err)
			p.refuse(f.ID, failure(0, codeInternal, "Internal error"))
			return
		}
		p.legacy = c
	}
	if p.begin(f.ID, nil) != nil {
		p.legacy.deliver(f)
	}
}

func (p *pipe) connectLegacy() (*pipeConn, error) {
	c := &pipeConn{p: p, id: "stdio-" + rand.Text(), in: make(chan jsonrpc.Message), done: make(chan struct{})}
	ss, err := p.export.legacy.server.Connect(p.ctx, pipeTransport{c}, nil)
	if err != nil {
		return nil, err
	}
	c.ss = ss
	return c, nil
}

type pipeTransport struct{ c *pipeConn }

// Connect gives the one connection.
func (t pipeTransport) Connect(context.Context) (mcp.Connection, error) { return t.c, nil }

// pipeConn is the SDK's view of a pipe: messages that were parsed at the edge go in, and what comes out goes to the pipe's
// writer. Ids cross it as strings that hold the client's own bytes, so none is rounded.
type pipeConn struct {
	p    *pipe
	id   string
	ss   *mcp.ServerSession
	in   chan jsonrpc.Message
	done chan struct{}
	once sync.Once
}

var _ mcp.Connection = (*pipeConn)(nil)

// deliver hands a message to the SDK.
func (c *pipeConn) deliver(f *content.Frame) {
	params, _ := sdkParams(f)
	if f.Method == noteCancelled {
		params = content.NewObject(nil).String("requestId", string(c.openID(content.Member(f.Params, "requestId")))).End()
	}
	m := &jsonrpc.Request{Method: f.Method, Params: params, Extra: &mcp.RequestExtra{Header: http.Header{
		edgePrincipal: {c.p.principal.ID},
		edgeParams:    {string(f.Params)},
	}}}
	if f.Kind == content.Request {
		id, err := jsonrpc.MakeID(string(f.ID))
		if err != nil { // a string is always an id
			return
		}
		m.ID = id
	}
	select {
	case c.in <- m:
	case <-c.done:
		if f.Kind == content.Request {
			c.p.answerLegacy(f.ID, &answer{err: &call.ProviderError{Code: codeInternal, Message: "The session has ended"}})
		}
	}
}

// openID is the id of an open request in the very bytes in which it was opened.
func (c *pipeConn) openID(id []byte) []byte {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if r := c.p.open[idKey(id)]; r != nil {
		return r.id
	}
	return id
}

// answerLegacy ends an open request.
func (p *pipe) answerLegacy(id []byte, a *answer) {
	p.mu.Lock()
	r := p.open[idKey(id)]
	p.mu.Unlock()
	if r != nil {
		p.answer(r, a, false)
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
			if wire, ok := errors.AsType[*jsonrpc.Error](m.Error); ok {
				a.err = &call.ProviderError{Code: wire.Code, Message: wire.Message, Data: wire.Data}
			}
		}
		c.p.answerLegacy([]byte(id), &a)
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

// end ends the session, cancels its calls and waits for them.
func (c *pipeConn) end() {
	c.p.export.legacy.sessions.drop(c.id)
	_ = c.ss.Close()
	_ = c.Close()
}
