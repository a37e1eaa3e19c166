package endpoint

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// serveLegacy answers one POST of a handshake-era client.
func (e *Endpoint) serveLegacy(x *exchange, f *content.Frame) {
	x.legacy = true
	sid := x.r.Header["Mcp-Session-Id"]
	if f.Kind == content.Request && f.Method == methodInitialize {
		e.initialize(x, f, len(sid) > 0)
		return
	}
	if len(sid) != 1 {
		x.fail(http.StatusBadRequest, codeInvalidRequest, "Mcp-Session-Id must be set once; begin with initialize")
		return
	}
	sessions := x.export.legacy.sessions
	s, ok := sessions.hold(sid[0], x.principal.ID)
	if !ok {
		x.noSession()
		return
	}
	defer sessions.release(s)

	switch {
	case f.Kind == content.Notification && f.Method == noteInitialized:
		x.export.legacy.http.ServeHTTP(x.w, x.sdkRequest(x.r.Context(), content.AppendNotification(nil, noteInitialized, nil)))
	case f.Kind == content.Notification && f.Method == noteCancelled:
		if id := content.Member(f.Params, "requestId"); id != nil {
			sessions.cancel(s, idKey(id))
		}
		x.w.WriteHeader(http.StatusAccepted)
	case f.Kind == content.Response || f.Kind == content.ErrorResponse:
		s.asked.answer(f)
		x.w.WriteHeader(http.StatusAccepted)
	case f.Kind != content.Request:
		x.w.WriteHeader(http.StatusAccepted) // of no meaning to this server, or an answer to what it never asked
	case f.Method == methodCallTool, f.Method == methodReadResource && s.watch != nil:
		e.callLegacy(x, s, f)
	default:
		req := &request{export: x.export, principal: x.principal, session: s.id, id: f.ID, method: f.Method, params: f.Params}
		var a answer
		switch {
		case req.offers():
			a = req.listResources(x.r.Context(), false)
		case s.watch != nil && (f.Method == methodSubscribe || f.Method == methodUnsubscribe):
			a = e.subscribing(x.r.Context(), req, s.watch)
		default:
			a = req.within(func(level string) { sessions.setLevel(s, level) })
		}
		x.write(&a, f.ID)
	}
}

// callLegacy places a call within a session. It ends with notifications/cancelled or with the session; a client that has
// only lost its stream does not cancel in this era.
func (e *Endpoint) callLegacy(x *exchange, s *session, f *content.Frame) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	sessions := x.export.legacy.sessions
	key := idKey(f.ID)
	level, ok := sessions.begin(s, key, cancel)
	if !ok {
		a := failure(http.StatusBadRequest, codeInvalidRequest, "Invalid request: the id is in use by a request that is still open")
		a.force = true
		x.write(&a, f.ID)
		return
	}
	defer sessions.end(s, key)
	req := &request{export: x.export, principal: x.principal, session: s.id, id: f.ID, method: f.Method, params: f.Params}
	c, a, ok := e.prepareLegacy(req, level)
	if !ok {
		x.write(&a, f.ID)
		return
	}
	if s.elicits {
		c.asked = &s.asked
	}
	e.callStreaming(ctx, cancel, func() {}, x, c)
}

// initialize opens a session through the SDK.
func (e *Endpoint) initialize(x *exchange, f *content.Frame, inSession bool) {
	l := x.export.legacy
	if inSession { // R10.2
		x.fail(http.StatusBadRequest, codeInvalidRequest, "initialize must not carry Mcp-Session-Id")
		return
	}
	params, problem := initializeParams(f.Params)
	if problem != "" {
		a := failure(0, codeInvalidParams, problem)
		x.write(&a, f.ID)
		return
	}
	if !l.sessions.room(x.principal.ID) {
		x.unavailable("too many sessions")
		return
	}
	// The SDK would round a large integer id; it gets one of our own, and the answer the client's.
	w := &initializeWriter{x: x, id: f.ID, header: make(http.Header)}
	r := x.sdkRequest(x.r.Context(), content.AppendRawRequest(nil, []byte("1"), methodInitialize, params))
	if elicits(content.Member(f.Params, "capabilities")) {
		r.Header[edgeElicits] = []string{"form"}
	}
	l.http.ServeHTTP(w, r)
}

// initializeWriter passes the SDK's answer on under the client's own id.
type initializeWriter struct {
	x      *exchange
	id     []byte
	header http.Header
	code   int
}

// Header is the SDK's own.
func (w *initializeWriter) Header() http.Header { return w.header }

// WriteHeader keeps the status until the body comes.
func (w *initializeWriter) WriteHeader(code int) { w.code = code }

// Write takes the whole answer: with JSON responses the SDK writes once.
func (w *initializeWriter) Write(b []byte) (int, error) {
	if id := w.header["Mcp-Session-Id"]; len(id) == 1 {
		w.x.w.Header()["Mcp-Session-Id"] = id
	}
	a := failure(http.StatusInternalServerError, codeInternal, "Internal error")
	a.force = true
	if f, err := content.ParseFrame(b, content.FrameLimits{}); err == nil {
		switch f.Kind {
		case content.Response:
			a = answer{result: f.Result}
		case content.ErrorResponse:
			a = answer{err: f.Error}
		}
	}
	w.x.write(&a, w.id)
	return len(b), nil
}

// serveSession answers GET and DELETE of a session.
func (e *Endpoint) serveSession(x *exchange) {
	x.legacy = true
	sessions := x.export.legacy.sessions
	var s *session
	var ok bool
	if sid := x.r.Header["Mcp-Session-Id"]; len(sid) == 1 {
		s, ok = sessions.hold(sid[0], x.principal.ID)
	}
	if !ok {
		x.noSession()
		return
	}
	defer sessions.release(s)
	if x.r.Method == http.MethodDelete {
		sessions.drop(s)
		x.w.WriteHeader(http.StatusNoContent)
		return
	}
	if !acceptsStream(x.r.Header) {
		x.fail(http.StatusNotAcceptable, codeInvalidRequest, "Accept must include text/event-stream")
		return
	}
	if len(x.r.Header["Last-Event-Id"]) > 0 {
		// Nothing is kept for a second reading. The client opens a new stream.
		x.fail(http.StatusBadRequest, codeInvalidRequest, "Streams cannot be resumed here")
		return
	}
	if !e.listens.take() {
		x.unavailable("too many streams")
		return
	}
	defer e.listens.give()
	if !e.enter() {
		x.unavailable("the server is shutting down")
		return
	}
	defer e.running.Done()
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	defer context.AfterFunc(e.closingCtx, cancel)()
	w := newLivelyWriter(x.w, e.o.KeepAlive)
	defer w.close()
	if s.watch != nil {
		e.running.Go(func() { w.tell(ctx, s.watch) }) // ends with ctx
	}
	r := x.sdkRequest(ctx, nil)
	r.Method = http.MethodGet
	x.export.legacy.http.ServeHTTP(w, r)
}

// noSession is the answer to a session that is not there or is somebody else's, alike (S-118).
func (x *exchange) noSession() {
	x.fail(http.StatusNotFound, codeInvalidRequest, "Session not found; begin again with initialize")
}

// sdkRequest is the request that the SDK sees: nothing of the client's header but what it needs. In particular it never
// sees the caller's credential (R6.9).
func (x *exchange) sdkRequest(ctx context.Context, body []byte) *http.Request {
	r := &http.Request{
		Method: http.MethodPost, URL: x.r.URL, Proto: x.r.Proto, ProtoMajor: x.r.ProtoMajor, ProtoMinor: x.r.ProtoMinor,
		Host: x.r.Host, RemoteAddr: x.r.RemoteAddr, ContentLength: int64(len(body)),
		Body: io.NopCloser(bytes.NewReader(body)),
		Header: http.Header{
			"Content-Type": headerJSON,
			"Accept":       {"application/json, text/event-stream"},
			edgePrincipal:  {x.principal.ID},
		},
	}
	for _, name := range [...]string{"Mcp-Session-Id", "Mcp-Protocol-Version"} {
		if v := x.r.Header[name]; len(v) == 1 {
			r.Header[name] = v
		}
	}
	return r.WithContext(ctx)
}
