package endpoint

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// maxSafeID is the largest integer id that the SDK gives back as it came.
const maxSafeID = 1 << 53

// serveLegacy answers one POST of a handshake-era client: checks at the edge, then the SDK's handler with a request of our
// own making, which holds only what was decided on.
func (e *Endpoint) serveLegacy(x *exchange, f *content.Frame) {
	l := x.export.legacy
	sid := x.r.Header["Mcp-Session-Id"]
	switch {
	case len(sid) > 1:
		x.legacyError(f, http.StatusBadRequest, codeInvalidRequest, "Mcp-Session-Id is set more than once")
		return
	case f.Kind == content.Request && f.Method == methodInitialize:
		if len(sid) > 0 { // R10.2
			x.legacyError(f, http.StatusBadRequest, codeInvalidRequest, "initialize must not carry Mcp-Session-Id")
			return
		}
		if !l.sessions.room(x.principal.ID) {
			x.unavailable("too many sessions")
			return
		}
	case len(sid) == 0:
		x.legacyError(f, http.StatusBadRequest, codeInvalidRequest, "Mcp-Session-Id is missing; begin with initialize")
		return
	default:
		end, ok := l.sessions.hold(sid[0], x.principal.ID)
		if !ok {
			x.legacyError(f, http.StatusNotFound, codeInvalidRequest, "Session not found; begin again with initialize")
			return
		}
		defer end()
	}
	switch f.Kind {
	case content.Request:
		if !safeID(f.ID) {
			x.legacyError(f, http.StatusBadRequest, codeInvalidRequest, "Invalid request: integer ids must be between -2^53 and 2^53")
			return
		}
		if !legacyMethod(f.Method) {
			a := methodNotFound(f.Method)
			x.write(&a, f.ID, false)
			return
		}
	case content.Notification:
		if f.Method != "notifications/initialized" && f.Method != noteCancelled {
			x.w.WriteHeader(http.StatusAccepted) // of no meaning to this server
			return
		}
	default:
		x.w.WriteHeader(http.StatusAccepted) // an answer to a question that we never asked
		return
	}
	params, problem := sdkParams(f)
	if problem != "" {
		a := failure(0, codeInvalidParams, problem)
		x.write(&a, f.ID, false)
		return
	}

	ctx := x.r.Context()
	if f.Method == methodCallTool {
		// The call may be long, and the bound on requests is not the bound on calls.
		e.requests.give()
		defer e.requests.n.Add(1)
	}
	body := content.AppendFrame(nil, content.Frame{Kind: f.Kind, ID: f.ID, Method: f.Method, Params: params})
	r := x.sdkRequest(ctx, http.MethodPost, body)
	r.Header[edgeParams] = []string{string(f.Params)}
	w := newLegacyWriter(x, f.Method == methodCallTool, e.o.KeepAlive)
	defer w.close()
	l.http.ServeHTTP(w, r)
}

// serveSession answers GET and DELETE of a session.
func (e *Endpoint) serveSession(x *exchange) {
	l := x.export.legacy
	sid := x.r.Header["Mcp-Session-Id"]
	end, ok := func() (func(), bool) {
		if len(sid) != 1 {
			return nil, false
		}
		return l.sessions.hold(sid[0], x.principal.ID)
	}()
	if !ok {
		x.fail(http.StatusNotFound, codeInvalidRequest, "Session not found; begin again with initialize")
		return
	}
	defer end()
	if x.r.Method == http.MethodDelete {
		l.sessions.drop(sid[0])
		x.w.WriteHeader(http.StatusNoContent)
		return
	}
	if x.streams = acceptsStream(x.r.Header); !x.streams {
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
	w := newLegacyWriter(x, true, e.o.KeepAlive)
	defer w.close()
	l.http.ServeHTTP(w, x.sdkRequest(ctx, http.MethodGet, nil))
}

// sdkRequest is the request that the SDK sees: nothing of the client's header but what it needs. In particular it never
// sees the caller's credential (R6.9).
func (x *exchange) sdkRequest(ctx context.Context, method string, body []byte) *http.Request {
	r := &http.Request{
		Method: method, URL: x.r.URL, Proto: x.r.Proto, ProtoMajor: x.r.ProtoMajor, ProtoMinor: x.r.ProtoMinor,
		Host: x.r.Host, RemoteAddr: x.r.RemoteAddr, ContentLength: int64(len(body)),
		Body: io.NopCloser(bytes.NewReader(body)),
		Header: http.Header{
			"Content-Type": headerJSON,
			"Accept":       {"application/json, text/event-stream"}, // a client that asks for JSON alone gets it, see legacyWriter
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

// legacyError answers before the SDK is asked.
func (x *exchange) legacyError(f *content.Frame, status int, code int64, message string) {
	a := failure(status, code, message)
	x.write(&a, f.ID, true)
}

func safeID(raw []byte) bool {
	if len(raw) > 0 && raw[0] == '"' {
		return true
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil && n >= -maxSafeID && n <= maxSafeID
}

// sdkParams is as much of the params as the SDK has to know. The rest goes round it. A problem is fit for the caller.
func sdkParams(f *content.Frame) (params []byte, problem string) {
	switch f.Method {
	case methodInitialize:
		version, ok := content.String(content.Member(f.Params, "protocolVersion"))
		if !ok {
			return nil, "params.protocolVersion must be a string"
		}
		if !content.IsObject(content.Member(f.Params, "capabilities")) {
			return nil, "params.capabilities must be an object"
		}
		if !content.IsObject(content.Member(f.Params, "clientInfo")) {
			return nil, "params.clientInfo must be an object"
		}
		return content.NewObject(nil).String("protocolVersion", truncated(version, 64)).Raw("capabilities", []byte("{}")).
			Raw("clientInfo", []byte(`{"name":"","version":""}`)).End(), ""
	case methodSetLevel:
		level, ok := content.String(content.Member(f.Params, "level"))
		if !ok {
			return nil, "params.level must be a string"
		}
		return content.NewObject(nil).String("level", truncated(level, 64)).End(), ""
	case methodCallTool:
		return []byte(`{"name":"call"}`), ""
	case noteCancelled:
		id := content.Member(f.Params, "requestId")
		if !safeID(id) {
			return []byte(`{"requestId":""}`), "" // names nothing
		}
		return content.NewObject(nil).Raw("requestId", id).End(), ""
	default:
		return []byte("{}"), ""
	}
}
