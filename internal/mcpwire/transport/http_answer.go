package transport

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// errorBody bounds what is read of a body that explains a refusal.
const errorBody = 64 << 10

// faultBody bounds what of it a fault keeps, for telling the eras apart.
const faultBody = 16 << 10

// answer reads the answer to a request out of an HTTP response, and closes that.
func (x *flight) answer(r *Request, h http.Header, resp *http.Response) (Response, error) {
	if modernHeader(h) {
		resp.Header.Del(headerSession) // there are no sessions: a server that gives one is not listened to (R1.8)
	}
	if resp.StatusCode != http.StatusOK {
		return x.refusal(r, resp)
	}
	switch mediaType(resp) {
	case "application/json":
		b, release, err := x.readBody(resp, x.c.opts.MaxMessage)
		if err != nil {
			return Response{}, err
		}
		out, err := x.c.jsonAnswer(r.ID, resp, b)
		out.Release = release
		return out, err
	case "text/event-stream":
		return x.streamAnswer(r, h, resp)
	}
	resp.Body.Close()
	return Response{}, &Fault{Code: call.CodeProtocolError, HTTPStatus: resp.StatusCode, Detail: "the answer is neither JSON nor an event stream"}
}

func mediaType(resp *http.Response) string {
	v := resp.Header["Content-Type"]
	if len(v) != 1 {
		return ""
	}
	t, _, _ := strings.Cut(v[0], ";")
	switch t = strings.TrimSpace(t); {
	case strings.EqualFold(t, "application/json"):
		return "application/json"
	case strings.EqualFold(t, "text/event-stream"):
		return "text/event-stream"
	}
	return t
}

func (c *HTTPCarrier) limits() content.FrameLimits {
	return content.FrameLimits{Size: c.opts.MaxMessage}
}

// jsonAnswer reads one message that must be the answer to id.
func (c *HTTPCarrier) jsonAnswer(id string, resp *http.Response, b []byte) (Response, error) {
	if len(b) == 0 {
		return Response{}, &Fault{Code: call.CodeProtocolError, HTTPStatus: resp.StatusCode, Detail: "the answer is empty"}
	}
	f, err := content.ParseFrame(b, c.limits())
	if err != nil {
		c.violation("an answer that is no message")
		return Response{}, err
	}
	if f.Kind != content.Response && f.Kind != content.ErrorResponse {
		c.violation("a message that is no answer")
		return Response{}, &Fault{Code: call.CodeProtocolError, HTTPStatus: resp.StatusCode, Detail: "the answer is a " + f.Kind.String()}
	}
	return c.answerFrame(id, resp, f)
}

// answerFrame takes a response message as the answer to id, or says that it is another's (F-34).
func (c *HTTPCarrier) answerFrame(id string, resp *http.Response, f content.Frame) (Response, error) {
	if got, ok := content.IDString(f.ID); !ok || got != id {
		c.strays.Add(1)
		c.violation("an answer with another id")
		fault := &Fault{Code: call.CodeProtocolError, HTTPStatus: resp.StatusCode, Detail: "the answer has another id"}
		if f.ID == nil {
			fault.Detail = fmt.Sprintf("the answer is an error without an id, code %d", f.Error.Code)
		}
		return Response{}, fault
	}
	return Response{Result: f.Result, Error: f.Error, HTTPStatus: resp.StatusCode, Header: resp.Header}, nil
}

// refusal reads an answer whose status is not 200. A JSON-RPC error with our id in its body is the answer; everything else
// is a fault that keeps what the status line and the header say.
func (x *flight) refusal(r *Request, resp *http.Response) (Response, error) {
	b, err := x.readPrefix(resp)
	if err != nil && x.ctx.Err() != nil {
		return Response{}, err
	}
	if err == nil && resp.StatusCode >= 400 && len(b) > 0 {
		f, err := content.ParseFrame(b, x.c.limits())
		if err == nil && f.Kind == content.ErrorResponse {
			if got, ok := content.IDString(f.ID); ok && got == r.ID {
				return Response{Error: f.Error, HTTPStatus: resp.StatusCode, Header: resp.Header}, nil
			}
		}
	}
	return Response{}, refused(resp, b)
}

// refused is the fault of an HTTP status.
func refused(resp *http.Response, body []byte) *Fault {
	f := &Fault{
		Code: call.CodeProviderRefused, HTTPStatus: resp.StatusCode, RetryAfter: clip(resp.Header.Get("Retry-After"), 64),
		Body: body[:min(len(body), faultBody)], Detail: "no answer but a status",
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		f.WWWAuthenticate = clip(strings.Join(resp.Header.Values("Www-Authenticate"), ", "), 4096)
	}
	if resp.StatusCode < 300 {
		f.Code, f.Detail = call.CodeProtocolError, "a request was answered by a status without a message"
	}
	return f
}

// accepted reads the status of a message that has no answer.
func (x *flight) accepted(resp *http.Response) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp.Body.Close() // whatever follows an acceptance means nothing
	}
	b, err := x.readPrefix(resp)
	if err != nil && x.ctx.Err() != nil {
		return err
	}
	return refused(resp, b)
}

func clip(s string, n int) string { return s[:min(len(s), n)] }

// readBody reads a body to its end, within a size and at a pace, and closes it. The bytes are the caller's until it calls
// release, which may be nil.
func (x *flight) readBody(resp *http.Response, limit int64) (b []byte, release func(), err error) {
	defer resp.Body.Close()
	n := resp.ContentLength
	switch {
	case n > limit:
		return nil, nil, tooLarge(limit)
	case n >= 0 && n < pooledFrom:
		b, err = x.readPaced(resp.Body, make([]byte, 0, n+1), limit)
		return b, nil, err
	}
	// What a peer says of its length is not believed beyond what is kept anyway: a longer body makes the buffer grow.
	buf := message(int(min(max(n, pooledFrom), keptMessage)) + 1)
	if b, err = x.readPaced(resp.Body, *buf, limit); err != nil {
		return nil, nil, err
	}
	*buf = b
	return b, func() { keep(buf) }, nil
}

// readPrefix reads what is wanted of a body that explains a status, and closes it. It returns what it has, error or not.
func (x *flight) readPrefix(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	return x.readPaced(io.LimitReader(resp.Body, errorBody), nil, errorBody)
}

func tooLarge(limit int64) *Fault {
	return &Fault{Code: call.CodeResultTooLarge, Detail: fmt.Sprintf("the answer is larger than %d bytes", limit)}
}

// readPaced appends to b until the end. Waiting for the first byte is bounded by the call alone, since a server may send
// its header before it works; from then on the body must come at a pace (F-32).
func (x *flight) readPaced(r io.Reader, b []byte, limit int64) ([]byte, error) {
	var pace *paceGuard
	for {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, max(2*cap(b), 512)), b...)
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if int64(len(b)) > limit {
			err = tooLarge(limit)
		}
		if err != nil {
			pace.stop()
			if err == io.EOF {
				return b, nil
			}
			return b, err
		}
		if pace == nil && n > 0 {
			pace = x.newPaceGuard()
		}
		pace.got(n)
	}
}

// paceGuard gives a flight up when a body that has begun brings too little in a span of time.
type paceGuard struct {
	x     *flight
	bytes atomic.Int64
	timer *time.Timer
}

func (x *flight) newPaceGuard() *paceGuard {
	g := &paceGuard{x: x}
	g.timer = time.AfterFunc(x.c.opts.BodyWindow, g.check)
	return g
}

func (g *paceGuard) check() {
	if g.bytes.Swap(0) < g.x.c.opts.BodyFloor {
		g.x.cancel(errBodySlow)
		return
	}
	g.timer.Reset(g.x.c.opts.BodyWindow)
}

func (g *paceGuard) got(n int) {
	if g != nil {
		g.bytes.Add(int64(n))
	}
}

func (g *paceGuard) stop() {
	if g != nil {
		g.timer.Stop()
	}
}
