package endpoint

import (
	"context"
	"net/http"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// prepareModern is prepare for a request of the modern era.
func (e *Endpoint) prepareModern(req *request, meta *modernMeta) (c *toolCall, a answer, ok bool) {
	if req.method == methodReadResource {
		c, a, ok = e.prepareRead(req, true)
	} else if c, a, ok = e.prepare(req); ok {
		c.collect, c.askBack = meta.Collect, elicits(meta.ClientCapabilities)
	}
	if ok {
		c.modern, c.meta, c.logLevel, c.progressToken = true, meta.rest, meta.LogLevel, meta.ProgressToken
	}
	return c, a, ok
}

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
		switch {
		case f.Method == methodCallTool, f.Method == methodReadResource && req.offers():
			var c *toolCall
			if c, a, ok = e.prepareModern(req, &meta); ok {
				ctx, cancel := context.WithCancel(x.r.Context()) // a client that has gone cancels its call (S-046)
				defer cancel()
				e.callStreaming(ctx, cancel, cancel, x, c)
				return
			}
		case req.offers():
			a = req.listResources(x.r.Context(), true)
		case f.Method == methodListTools:
			a = req.list(true)
		case f.Method == methodDiscover:
			a = answer{result: x.export.discover}
		case f.Method == methodListen:
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
