package endpoint

import (
	"context"
	"net/http"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// serveModern answers one POST of the 2026-07-28 revision. Nothing is remembered from one to the next (S-010).
func (e *Endpoint) serveModern(x *exchange, f *content.Frame) {
	switch f.Kind {
	case content.Request:
	case content.Notification:
		// The revision has no notification from client to server on HTTP; taking one does nothing (S-035).
		x.w.WriteHeader(http.StatusAccepted)
		return
	default:
		x.fail(http.StatusBadRequest, codeInvalidRequest, "Invalid request: clients send no responses")
		return
	}
	req := &request{export: x.export, principal: x.principal, id: f.ID, method: f.Method, params: f.Params, header: x.r.Header}
	meta, a, ok := e.checkModern(req)
	if ok {
		switch f.Method {
		case methodCallTool:
			var c *toolCall
			if c, a, ok = e.prepare(req); ok {
				c.modern, c.meta, c.logLevel, c.collect = true, meta.rest, meta.LogLevel, meta.Collect
				ctx, cancel := context.WithCancel(x.r.Context()) // a client that has gone cancels its call (S-046)
				defer cancel()
				e.callStreaming(ctx, cancel, cancel, x, c)
				return
			}
		case methodListTools:
			a = req.list(true)
		case methodDiscover:
			a = answer{result: x.export.discover}
		case methodListen:
			x.keepBody()
			*f = content.Frame{} // a subscription lives long, and must not keep its request's body alive
			e.listenHTTP(x, req)
			return
		default:
			a = methodNotFound(f.Method)
		}
	}
	x.write(&a, f.ID)
}
