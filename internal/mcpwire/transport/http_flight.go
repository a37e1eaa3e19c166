package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/ostiary/ostiary/call"
)

// maxHops bounds a chain of redirects.
const maxHops = 3

var (
	errNoticeLate = errors.New("no status came in time")
	errBodySlow   = errors.New("the body came too slowly")
)

// flight is one exchange with the provider. Its context has the caller's values and ends with the caller's, but may
// outlive Do for the moment that draining takes.
type flight struct {
	c      *HTTPCarrier
	caller context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	detach func() bool // from the caller's context
	trace  httptrace.ClientTrace
	sent   *sent
	reused bool // the last connection had carried something before
	lent   bool // a drain ends the flight
	bodies []*outBody
}

func (c *HTTPCarrier) begin(ctx context.Context) (*flight, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	x := &flight{c: c, caller: ctx, sent: new(sent)}
	x.trace.GotConn = func(info httptrace.GotConnInfo) {
		x.reused = info.Reused
		x.sent.attach(info.Conn)
	}
	x.ctx, x.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		x.cancel(nil)
		return nil, &Fault{Code: call.CodeProviderLost, Detail: errHTTPClosed.Error()}
	}
	c.flights[x] = struct{}{}
	c.wg.Add(1)
	c.mu.Unlock()
	x.detach = context.AfterFunc(ctx, func() { x.cancel(ctx.Err()) })
	return x, nil
}

func (x *flight) end() {
	x.detach()
	if !x.lent {
		x.finish()
	}
}

func (x *flight) finish() {
	x.cancel(nil)
	x.c.mu.Lock()
	delete(x.c.flights, x)
	x.c.mu.Unlock()
	x.c.wg.Done()
}

// send sends one request, over redirects if they are allowed, and returns an answer that is no redirect.
func (x *flight) send(method string, h http.Header, body []byte) (*http.Response, error) {
	for u, hop := x.c.url, 0; ; hop++ {
		resp, err := x.roundTrip(method, u, h, body)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode < 300 || resp.StatusCode >= 400 {
			if err := checkEncoding(resp); err != nil {
				resp.Body.Close()
				return nil, err
			}
			return resp, nil
		}
		resp.Body.Close()
		next, err := x.c.redirect(method, u, resp, hop)
		if err != nil {
			return nil, err
		}
		if !sameOrigin(next, x.c.url) {
			h = foreignHeader(h) // for good: a hop back does not bring the credential back
		}
		u = next
	}
}

// checkEncoding refuses a compressed body: we ask for none, and what it would grow to is the peer's choice (F-33).
func checkEncoding(resp *http.Response) error {
	for _, e := range resp.Header["Content-Encoding"] {
		if e != "" && e != "identity" {
			return &Fault{Code: call.CodeProtocolError, HTTPStatus: resp.StatusCode, Detail: "unsupported_content_encoding: the body is compressed, which was not asked for"}
		}
	}
	return nil
}

// redirect says where a redirect leads, or why it is refused (R1.9, F-40). Every rule for the provider's own URL holds for
// each hop; beside them a hop never goes from https to http, nor from elsewhere to loopback.
func (c *HTTPCarrier) redirect(method string, from *url.URL, resp *http.Response, hop int) (*url.URL, error) {
	refuse := func(why string) error {
		return &Fault{Code: call.CodeProviderRefused, HTTPStatus: resp.StatusCode, Detail: "redirect_refused: " + why}
	}
	if !c.opts.AllowRedirects {
		return nil, refuse("redirects are not allowed for this provider")
	}
	if hop >= maxHops {
		return nil, refuse(fmt.Sprintf("more than %d hops", maxHops))
	}
	switch resp.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if method != http.MethodGet {
			return nil, refuse("this status would change the request's method")
		}
	default:
		return nil, refuse("the status is no redirect to follow")
	}
	location := resp.Header["Location"]
	if len(location) != 1 {
		return nil, refuse("not exactly one Location")
	}
	to, err := from.Parse(location[0])
	if err != nil {
		return nil, refuse("the Location cannot be read")
	}
	if err := checkURL(to); err != nil {
		return nil, refuse(err.Error())
	}
	if from.Scheme == "https" && to.Scheme == "http" {
		return nil, refuse("from https to http")
	}
	if loopbackHost(to.Hostname()) && !loopbackHost(c.url.Hostname()) {
		return nil, refuse("to a loopback address")
	}
	return to, nil
}

// roundTrip sends one request to one address. net/http cannot send the body again on its own, for it has no way to get it
// twice. We do, once, if a kept connection turned out to be closed and measurably no byte had left: nothing was sent then,
// so nothing is repeated.
func (x *flight) roundTrip(method string, u *url.URL, h http.Header, body []byte) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		req := &http.Request{
			Method: method, URL: u, Host: u.Host, Header: h,
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		}
		if body != nil {
			out := &outBody{b: body}
			x.bodies = append(x.bodies, out)
			req.Body = out
			req.ContentLength = int64(len(body))
		}
		x.reused = false
		resp, err := x.c.transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(x.ctx, &x.trace)))
		if err == nil {
			return resp, nil
		}
		if attempt > 0 || !x.reused || x.ctx.Err() != nil || !x.sent.seal() {
			return nil, err
		}
		x.sent = new(sent)
	}
}

// drainTime bounds how long a stream may go on after its answer before its connection is thrown away.
const drainTime = 200 * time.Millisecond

// drain reads a stream to its end after its answer has come, so that its connection can be used again, and ends the flight.
func (x *flight) drain(body io.ReadCloser) {
	x.lent = true
	go func() { // waited for by Close, which cancels it too
		defer x.finish()
		defer body.Close()
		late := time.AfterFunc(drainTime, func() { x.cancel(errBodySlow) })
		defer late.Stop()
		_, _ = io.CopyN(io.Discard, body, 64<<10)
	}()
}

// sentOut says whether every body that was given to net/http has been closed: then its bytes may be used again.
func (x *flight) sentOut() bool {
	for _, b := range x.bodies {
		if !b.done() {
			return false
		}
	}
	return true
}
