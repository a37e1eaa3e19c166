package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// errStreamEnded says that a stream ended before its answer came.
var errStreamEnded = errors.New("the stream ended without an answer")

const (
	// streamFactor bounds all the events before an answer together, in messages of the largest size.
	streamFactor = 4
	// maxResumes bounds how often one stream is resumed without a new event in between.
	maxResumes = 5
	// defaultRetry is waited before a stream is resumed where its server said nothing.
	defaultRetry = time.Second
)

// resume is what a stream left behind for its continuation (handshake era only, R15.5).
type resume struct {
	id    string // of the last event that had one; "": the stream cannot be resumed
	retry time.Duration
}

// readEvents parses every message of a stream and hands it to take until that says that it is done. Messages are copies
// that may be kept. It returns errStreamEnded at the stream's end.
func (c *HTTPCarrier) readEvents(body io.Reader, maxTotal int64, last *resume, take func(content.Frame) (done bool, err error)) error {
	r := newEventReader(body, c.opts.MaxMessage, maxTotal)
	defer r.release()
	for {
		ev, err := r.next()
		last.retry = time.Duration(r.retry) * time.Millisecond
		if err == io.EOF {
			return errStreamEnded
		}
		if err != nil {
			return err
		}
		if ev.idOK {
			last.id = ev.id
		}
		if len(ev.data) == 0 { // an event that only gives an id
			continue
		}
		if ev.name != "" && ev.name != "message" {
			c.violation("an event of another type than message")
			continue
		}
		f, err := content.ParseFrame(bytes.Clone(ev.data), c.limits())
		if err != nil {
			c.violation("an event that is no message")
			return err
		}
		if done, err := take(f); done || err != nil {
			return err
		}
	}
}

// streamAnswer reads an event stream up to the answer to r. Neither comments nor progress move the call's deadline (F-31).
// In the handshake era a stream that broke off may be resumed where its server said so, which repeats no call: it is the
// same answer that is waited for.
func (x *flight) streamAnswer(r *Request, h http.Header, resp *http.Response) (Response, error) {
	var out Response
	var last resume
	modern := modernHeader(h)
	take := func(f content.Frame) (bool, error) {
		switch f.Kind {
		case content.Notification:
			x.c.notify(r.OnNotification, f)
			return false, nil
		case content.Request:
			x.c.reverse(modern, f)
			return false, nil
		}
		var err error
		out, err = x.c.answerFrame(r.ID, resp, f)
		return true, err
	}
	for resumes := 0; ; resumes++ {
		before := last.id
		err := x.c.readEvents(resp.Body, streamFactor*x.c.opts.MaxMessage, &last, take)
		if err == nil {
			x.drain(resp.Body)
			return out, nil
		}
		resp.Body.Close()
		if modern || last.id == "" || x.ctx.Err() != nil || !lostConnection(err) {
			return Response{}, err
		}
		if last.id != before {
			resumes = 0
		}
		if resumes >= maxResumes {
			return Response{}, err
		}
		next, resumeErr := x.reopen(h, last)
		if resumeErr != nil {
			if x.ctx.Err() != nil {
				return Response{}, resumeErr
			}
			return Response{}, err // why the answer is missing, not why it could not be fetched
		}
		resp = next
	}
}

// reopen asks for the rest of a stream after the time that its server wished.
func (x *flight) reopen(h http.Header, last resume) (*http.Response, error) {
	wait := last.retry
	if wait <= 0 {
		wait = defaultRetry
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.ctx.Done():
		return nil, x.ctx.Err()
	}
	h = h.Clone()
	delete(h, "Content-Type")
	h[headerLastID] = []string{last.id}
	return x.openStream(h)
}

// openStream sends a GET that must be answered by an event stream.
func (x *flight) openStream(h http.Header) (*http.Response, error) {
	h["Accept"] = acceptSSE
	resp, err := x.send(http.MethodGet, h, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		b, err := x.readPrefix(resp)
		if err != nil && x.ctx.Err() != nil {
			return nil, err
		}
		return nil, refused(resp, b)
	}
	if mediaType(resp) != "text/event-stream" {
		resp.Body.Close()
		return nil, &Fault{Code: call.CodeProtocolError, HTTPStatus: resp.StatusCode, Detail: "the answer to GET is no event stream"}
	}
	return resp, nil
}

// notify hands a notification on: to the request whose stream it came on, else to the carrier's own sink.
func (c *HTTPCarrier) notify(own func(string, []byte), f content.Frame) {
	c.notifications.Add(1)
	if own == nil {
		own = c.opts.OnNotification
	}
	if own != nil {
		own(f.Method, f.Params)
	}
}

// reverse takes a request of the server.
func (c *HTTPCarrier) reverse(modern bool, f content.Frame) {
	if modern || c.opts.OnRequest == nil {
		c.violation("a request of the server on a stream")
		return
	}
	c.opts.OnRequest(f.ID, f.Method, f.Params)
}

// Listen reads the standalone stream of the handshake era until ctx ends or the stream does, and hands every notification
// to on. header may hold a Last-Event-Id. It always returns an error: ctx's, or a fault; [NotOffered] tells that of a
// server that has no such stream. A stream whose events have ids is resumed when it breaks off; one without them may have
// lost notifications, so that is left to the caller.
func (c *HTTPCarrier) Listen(ctx context.Context, header http.Header, on func(method string, params []byte)) error {
	return c.ListenOpen(ctx, header, nil, on)
}

// ListenOpen is [HTTPCarrier.Listen] with a signal: opened is called once, when the server has opened the stream.
func (c *HTTPCarrier) ListenOpen(ctx context.Context, header http.Header, opened func(), on func(method string, params []byte)) error {
	x, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer x.end()
	h, err := x.header(header)
	if err != nil {
		return x.fault(err)
	}
	resp, err := x.openStream(h)
	if err != nil {
		return x.fault(err)
	}
	if opened != nil {
		opened()
	}
	var last resume
	take := func(f content.Frame) (bool, error) {
		switch f.Kind {
		case content.Notification:
			c.notify(on, f)
		case content.Request:
			c.reverse(false, f)
		default:
			c.strays.Add(1)
		}
		return false, nil
	}
	for resumes := 0; ; resumes++ {
		before := last.id
		err := c.readEvents(resp.Body, 0, &last, take)
		resp.Body.Close()
		if last.id == "" || x.ctx.Err() != nil || !lostConnection(err) {
			return x.fault(err)
		}
		if last.id != before {
			resumes = 0
		}
		if resumes >= maxResumes {
			return x.fault(err)
		}
		if h, err = x.header(header); err != nil { // the credential may have changed
			return x.fault(err)
		}
		if resp, err = x.reopen(h, last); err != nil {
			return x.fault(err)
		}
	}
}
