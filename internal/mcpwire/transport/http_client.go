package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// gatewayError is the code of the errors that we put in place of a broken answer for the SDK. It lies outside the range that
// JSON-RPC and MCP reserve (S-004); no decision rests on it, since the fault itself is in the [Caught] of the context.
const gatewayError = -31500

// Caught keeps the fault of the last request that went through [HTTPCarrier.HTTPClient] with its context, which the SDK
// would flatten to text.
type Caught struct {
	mu    sync.Mutex
	fault error
}

type caughtKey struct{}

// CatchFault returns a context under which the guarded client leaves its last fault.
func CatchFault(ctx context.Context) (context.Context, *Caught) {
	c := new(Caught)
	return context.WithValue(ctx, caughtKey{}, c), c
}

// Err is the fault: a [*Fault], a context's error, or nil. It may be read when the request has returned.
func (c *Caught) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}

func catch(ctx context.Context, err error) {
	if c, ok := ctx.Value(caughtKey{}).(*Caught); ok {
		c.mu.Lock()
		c.fault = err
		c.mu.Unlock()
	}
}

// HTTPClient is the same guarded way to the same endpoint for the SDK's HTTP transport. Its answers are strict: a request
// gets one valid answer or fails alone, bodies and events are bounded, ids of events are taken out so that nothing is
// resumed by itself, and a session id of the modern era is dropped. It goes to the provider's URL and nowhere else.
func (c *HTTPCarrier) HTTPClient() *http.Client {
	return &http.Client{
		Transport:     roundTripper{c},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type roundTripper struct{ c *HTTPCarrier }

// RoundTrip sends one message of the SDK. Failures are errors, which the SDK takes as those of one call.
func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readRequest(req, t.c.opts.MaxMessage)
	if err != nil {
		return nil, err
	}
	if req.URL.String() != t.c.url.String() {
		return nil, &Fault{Code: call.CodeProviderRefused, Detail: "a request to another URL than the provider's"}
	}
	x, err := t.c.begin(req.Context())
	if err != nil {
		return nil, err
	}
	resp, err := t.roundTrip(x, req, body)
	if err != nil {
		x.sent.seal()
		err = x.fault(err)
		catch(req.Context(), err)
		x.end()
		return nil, err
	}
	return resp, nil
}

func readRequest(req *http.Request, limit int64) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()
	b, err := io.ReadAll(io.LimitReader(req.Body, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = &Fault{Code: call.CodeInvalidRequest, Detail: "the message is larger than the bound"}
	}
	return b, err
}

// roundTrip ends the flight if it returns a response, or lets the response's body end it.
func (t roundTripper) roundTrip(x *flight, req *http.Request, body []byte) (*http.Response, error) {
	own := make(http.Header, len(req.Header))
	for k, v := range req.Header {
		if k != "User-Agent" && k != "Authorization" && k != "Accept-Encoding" {
			own[k] = v
		}
	}
	h, err := x.header(own)
	if err != nil {
		return nil, err
	}
	var id []byte
	if len(body) > 0 {
		f, err := content.ParseFrame(body, content.FrameLimits{Size: t.c.opts.MaxMessage})
		if err != nil {
			return nil, err
		}
		if f.Kind == content.Request {
			id = f.ID
		}
		body = content.AppendFrame(nil, f)
	}
	resp, err := x.send(req.Method, h, body)
	if err != nil {
		return nil, err
	}
	if modernHeader(h) {
		resp.Header.Del(headerSession)
	}
	switch {
	case resp.StatusCode == http.StatusNotFound && h[headerSession] != nil:
		return x.plain(req, resp, nil) // the SDK knows what the end of a session means
	case req.Method == http.MethodGet && resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream":
		return x.filtered(req, resp, nil, modernHeader(h)), nil
	case id == nil:
		return t.status(x, req, resp)
	case resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream":
		return x.filtered(req, resp, id, modernHeader(h)), nil
	}
	return t.message(x, req, resp, id)
}

// status answers what has no answer: notifications, replies, GET and DELETE.
func (t roundTripper) status(x *flight, req *http.Request, resp *http.Response) (*http.Response, error) {
	if req.Method != http.MethodPost {
		return x.plain(req, resp, nil)
	}
	if err := x.accepted(resp); err != nil {
		return nil, err
	}
	resp.StatusCode = http.StatusAccepted
	return x.plain(req, resp, nil)
}

// message answers a request whose answer is one message in a body.
func (t roundTripper) message(x *flight, req *http.Request, resp *http.Response, id []byte) (*http.Response, error) {
	limit := t.c.opts.MaxMessage
	if resp.StatusCode == http.StatusOK && mediaType(resp) != "application/json" {
		resp.Body.Close()
		return nil, &Fault{Code: call.CodeProtocolError, HTTPStatus: resp.StatusCode, Detail: "the answer is neither JSON nor an event stream"}
	}
	if resp.StatusCode != http.StatusOK {
		limit = errorBody
	}
	b, _, err := x.readBody(resp, limit)
	if err != nil && resp.StatusCode == http.StatusOK {
		return nil, err
	}
	f, parseErr := content.ParseFrame(b, t.c.limits())
	ours := parseErr == nil && bytes.Equal(f.ID, id) && (f.Kind == content.Response && resp.StatusCode == http.StatusOK || f.Kind == content.ErrorResponse)
	switch {
	case ours:
		resp.StatusCode = http.StatusOK
		return x.plain(req, resp, content.AppendFrame(nil, f))
	case resp.StatusCode != http.StatusOK:
		return nil, refused(resp, b)
	case parseErr != nil:
		t.c.violation("an answer that is no message")
		return nil, parseErr
	default:
		t.c.violation("an answer with another id")
		return nil, &Fault{Code: call.CodeProtocolError, HTTPStatus: resp.StatusCode, Detail: "the answer has another id, or is none"}
	}
}

// plain makes a response with a complete body, and ends the flight.
func (x *flight) plain(req *http.Request, resp *http.Response, body []byte) (*http.Response, error) {
	resp.Body.Close()
	x.end()
	out := &http.Response{
		Status: http.StatusText(resp.StatusCode), StatusCode: resp.StatusCode, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, 2), Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
	if body != nil {
		out.Header["Content-Type"] = contentJSON
	}
	if s := resp.Header[headerSession]; s != nil {
		out.Header[headerSession] = s
	}
	return out, nil
}

// filtered makes a response whose body is the event stream, message by message checked and written anew.
func (x *flight) filtered(req *http.Request, resp *http.Response, id []byte, modern bool) *http.Response {
	s := &eventFilter{x: x, body: resp.Body, id: id, modern: modern}
	s.events = newEventReader(resp.Body, x.c.opts.MaxMessage, 0)
	if id != nil {
		s.events.maxTotal = streamFactor * x.c.opts.MaxMessage
	}
	out := &http.Response{
		Status: "OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: s, ContentLength: -1, Request: req,
	}
	if v := resp.Header[headerSession]; v != nil {
		out.Header[headerSession] = v
	}
	return out
}

// eventFilter reads a checked stream. When the stream breaks before the answer, it puts an error answer in its place, so
// that the SDK ends that call and no other.
type eventFilter struct {
	x      *flight
	body   io.ReadCloser
	events *eventReader
	id     []byte // of the request whose answer ends the stream; nil: a standalone stream
	modern bool

	closing sync.Once
	mu      sync.Mutex // guards events and what follows
	out     []byte
	off     int
	end     error // what Read returns once out is read
}

func (s *eventFilter) Read(p []byte) (int, error) {
	n, err := s.read(p)
	if err != nil {
		s.Close() // a reader that stops at the end may never close
	}
	return n, err
}

func (s *eventFilter) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.off == len(s.out) {
		if s.end != nil {
			return 0, s.end
		}
		s.fill()
	}
	n := copy(p, s.out[s.off:])
	s.off += n
	return n, nil
}

func (s *eventFilter) fill() {
	s.out, s.off = s.out[:0], 0
	ev, err := s.events.next()
	if err != nil {
		s.broken(err)
		return
	}
	if len(ev.data) == 0 || ev.name != "" && ev.name != "message" {
		return
	}
	f, err := content.ParseFrame(ev.data, s.x.c.limits())
	if err != nil {
		s.x.c.violation("an event that is no message")
		s.broken(err)
		return
	}
	switch f.Kind {
	case content.Notification:
		s.x.c.notifications.Add(1)
	case content.Request:
		if s.modern {
			s.x.c.violation("a request of the server on a stream")
			return
		}
	default:
		if s.id == nil {
			s.x.c.strays.Add(1)
			return
		}
		if !bytes.Equal(f.ID, s.id) {
			s.x.c.violation("an answer with another id")
			s.broken(&Fault{Code: call.CodeProtocolError, Detail: "the answer has another id"})
			return
		}
		s.end = io.EOF
	}
	s.event(func(b []byte) []byte { return content.AppendFrame(b, f) })
}

func (s *eventFilter) event(message func([]byte) []byte) {
	s.out = append(s.out, "event: message\ndata: "...)
	s.out = append(message(s.out), "\n\n"...)
}

func (s *eventFilter) broken(err error) {
	s.end = io.EOF
	if s.id == nil {
		return
	}
	if errors.Is(err, io.EOF) {
		err = errStreamEnded
	}
	err = s.x.fault(err)
	catch(s.x.caller, err)
	e := &call.ProviderError{Code: gatewayError, Message: "gateway: " + err.Error()}
	s.event(func(b []byte) []byte { return content.AppendError(b, s.id, e) })
}

// Close gives the stream up, in the middle of a Read too.
func (s *eventFilter) Close() error {
	s.closing.Do(func() {
		s.x.cancel(errHTTPClosed)
		s.body.Close()
		s.mu.Lock()
		if s.end == nil {
			s.end = net.ErrClosed
		}
		s.events.release()
		s.mu.Unlock()
		s.x.end()
	})
	return nil
}
