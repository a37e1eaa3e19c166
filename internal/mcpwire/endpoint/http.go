package endpoint

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// exchange is one HTTP request on its way through the rules.
type exchange struct {
	w         http.ResponseWriter
	r         *http.Request
	export    *export
	principal call.Principal
	streams   bool // the client takes text/event-stream
	legacy    bool // the handshake era, where a JSON-RPC error is no HTTP status

	body *buffer // what the request was read into, if it may be used again
}

// keepBody leaves the request's body to the collector: something may outlive the request that still looks at it.
func (x *exchange) keepBody() { x.body = nil }

// release gives the request's body back, when the request has been answered.
func (x *exchange) release() {
	if x.body != nil {
		putBody(x.body)
	}
}

// Handler serves one export, both eras on one path. An export that does not exist is 404 to those who may ask at all.
func (e *Endpoint) Handler(name string) http.Handler {
	ex := e.exports[name]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{w: w, r: r, export: ex}
		defer e.recoverHTTP(x)
		e.serveHTTP(x)
	})
}

// serveHTTP applies the rules in their order: a rule sees only what passed the ones before it.
func (e *Endpoint) serveHTTP(x *exchange) {
	// 1. No web page speaks here in its user's place (R10.5, S-031).
	if why := e.perimeter.Check(x.r); why != "" {
		e.refused("perimeter", "", why)
		x.fail(http.StatusForbidden, codeInvalidRequest, "Forbidden: "+why)
		return
	}
	// 2. Who (R10.1): before anything of a protocol exists, or is said to.
	principal, refusal := e.guard.Check(x.r)
	if refusal != nil {
		// Clients ask without a token first, and a flood of guesses must not become a flood of records.
		if refusal.Reason == "missing" || refusal.Reason == "throttled" {
			e.log.Debug("request without a valid credential", "reason", refusal.Reason)
		} else {
			e.refused("unauthenticated", "", refusal.Reason)
		}
		refusal.Write(x.w)
		return
	}
	x.principal = principal
	// 3. What they may not use does not exist (R10.8). The server's answer to a path that nobody serves is the same, to the
	// byte: nobody can tell which it is.
	if x.export == nil || !x.export.allows(principal.ID) {
		h := x.w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
		x.w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(x.w, "not found\n") // whoever does not want it has gone
		return
	}
	// 4. Methods.
	switch x.r.Method {
	case http.MethodPost, http.MethodGet, http.MethodDelete:
	default:
		x.methodNotAllowed()
		return
	}
	if e.isClosing() {
		x.unavailable("the server is shutting down")
		return
	}
	// 5. GET and DELETE belong to legacy sessions; without one the modern rule holds (S-050).
	if x.r.Method != http.MethodPost {
		if x.r.Header.Get("Mcp-Session-Id") == "" || isModern(x.r.Header) {
			x.methodNotAllowed()
			return
		}
		e.serveSession(x)
		return
	}
	// 6. One JSON body, bounded, read once and parsed once.
	if !e.requests.take() {
		x.unavailable("too many requests at a time")
		return
	}
	defer e.requests.give()
	if !jsonBody(x.r.Header) {
		x.fail(http.StatusUnsupportedMediaType, codeInvalidRequest, "Content-Type must be application/json, without a content encoding")
		return
	}
	x.streams = acceptsStream(x.r.Header)
	body, ok := e.readBody(x)
	if !ok {
		return
	}
	defer x.release()
	frame, err := content.ParseFrame(body, content.FrameLimits{Size: e.o.MaxBody})
	if err != nil {
		e.badFrame(x, err)
		return
	}
	// 7. The era. Never by Mcp-Method: there are legacy clients that send it.
	if isModern(x.r.Header) || saysModern(&frame) {
		e.serveModern(x, &frame)
		return
	}
	x.keepBody() // the SDK keeps what it is given as long as it likes
	e.serveLegacy(x, &frame)
}

// isModern: the version header is there and is not one of the legacy revisions.
func isModern(h http.Header) bool {
	v := h["Mcp-Protocol-Version"]
	return len(v) > 1 || len(v) == 1 && !slices.Contains(legacyRevisions, v[0])
}

// saysModern: the body names a version as only modern requests do, so the header is missing or wrong (S-036).
func saysModern(f *content.Frame) bool {
	return f.Kind == content.Request && f.Method != methodInitialize && content.Member(content.Member(f.Params, "_meta"), keyVersion) != nil
}

func (e *Endpoint) readBody(x *exchange) ([]byte, bool) {
	size := x.r.ContentLength
	if size > e.o.MaxBody {
		x.tooLarge(e.o.MaxBody)
		return nil, false
	}
	var body []byte
	if size >= 0 && size < pooledBody {
		body = make([]byte, 0, size+1)
	} else {
		// What a client says of its length is not believed beyond what is kept anyway: a longer body makes the buffer grow.
		x.body = getBody(int(min(max(size, pooledBody), maxPooled)) + 1)
		body = x.body.b
	}
	limited := http.MaxBytesReader(x.w, x.r.Body, e.o.MaxBody)
	for {
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
		n, err := limited.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			if x.body != nil {
				x.body.b = body
			}
			return body, true
		}
		if err != nil {
			if _, large := errors.AsType[*http.MaxBytesError](err); large {
				x.tooLarge(e.o.MaxBody)
			} else if errors.Is(err, os.ErrDeadlineExceeded) {
				x.w.Header().Set("Connection", "close")
				x.fail(http.StatusRequestTimeout, codeInvalidRequest, "The body did not arrive in time")
			} else {
				x.fail(http.StatusBadRequest, codeInvalidRequest, "The body could not be read")
			}
			return nil, false
		}
	}
}

func (e *Endpoint) badFrame(x *exchange, err error) {
	fe, ok := errors.AsType[*content.FrameError](err)
	if !ok {
		fe = &content.FrameError{Fault: content.FaultSyntax, Reason: "no valid JSON"}
	}
	a := frameAnswer(fe)
	e.refused("malformed", x.principal.ID, quoted(fe.Reason))
	x.write(&a, fe.ID)
}

func frameAnswer(fe *content.FrameError) answer {
	if fe.Fault == content.FaultSyntax {
		return failure(http.StatusBadRequest, codeParse, "Parse error: "+fe.Reason)
	}
	return failure(http.StatusBadRequest, codeInvalidRequest, "Invalid request: "+fe.Reason)
}

// recoverHTTP is the last net: a panic is this request's 500 (F-64).
func (e *Endpoint) recoverHTTP(x *exchange) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	a := e.panicked(p)
	x.write(&a, nil) // if an answer has begun, net/http drops this one
}

var (
	headerJSON    = []string{"application/json"}
	headerNoStore = []string{"no-store"}
)

// write sends an answer as one JSON body.
func (x *exchange) write(a *answer, id []byte) {
	h := x.w.Header()
	h["Content-Type"] = headerJSON
	h["Cache-Control"] = headerNoStore
	buf := getBuffer()
	defer putBuffer(buf)
	if len(a.result) > largeResult {
		// A large listing is written from where it was rendered.
		buf.b = appendResultHead(buf.b, id)
		h["Content-Length"] = []string{strconv.Itoa(len(buf.b) + len(a.result) + 1)}
		for _, part := range [...][]byte{buf.b, a.result, {'}'}} {
			if _, err := x.w.Write(part); err != nil {
				return
			}
		}
		return
	}
	buf.b = a.append(buf.b, id, !x.legacy)
	if a.status != 0 && (!x.legacy || a.force) {
		x.w.WriteHeader(a.status)
	}
	_, _ = x.w.Write(buf.b) // a client that has gone does not want it; its context has ended
}

// largeResult is from where on a result of our own is not copied to be written.
const largeResult = 16 << 10

// fail answers a request whose message was not read, or cannot be answered as one.
func (x *exchange) fail(status int, code int64, message string) {
	a := failure(status, code, message)
	a.force = true
	x.write(&a, nil)
}

func (x *exchange) methodNotAllowed() {
	x.w.Header().Set("Allow", "POST")
	x.fail(http.StatusMethodNotAllowed, codeInvalidRequest, "Method not allowed")
}

func (x *exchange) unavailable(why string) {
	x.w.Header().Set("Retry-After", "1")
	x.fail(http.StatusServiceUnavailable, codeInternal, "Unavailable: "+why)
}

func (x *exchange) tooLarge(limit int64) {
	x.w.Header().Set("Connection", "close")
	x.fail(http.StatusRequestEntityTooLarge, codeInvalidRequest, "The body is larger than "+strconv.FormatInt(limit, 10)+" bytes")
}

// jsonBody: the media type is JSON, and nothing has to be unpacked first.
func jsonBody(h http.Header) bool {
	if enc := h.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return false
	}
	types := h["Content-Type"]
	if len(types) != 1 {
		return false
	}
	if types[0] == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(types[0])
	if err != nil || media != "application/json" {
		return false
	}
	charset, given := params["charset"]
	return !given || strings.EqualFold(charset, "utf-8")
}

// acceptsStream: the client would take an event stream. Clients that ask for JSON alone are tolerated and get JSON.
func acceptsStream(h http.Header) bool {
	accepts := h["Accept"]
	if len(accepts) == 0 {
		return true
	}
	for _, line := range accepts {
		for item := range strings.SplitSeq(line, ",") {
			media, _, _ := strings.Cut(item, ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "text/event-stream", "text/*", "*/*":
				return true
			}
		}
	}
	return false
}
