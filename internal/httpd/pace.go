package httpd

import (
	"io"
	"net/http"
	"time"
)

// answer gives every write its own deadline, so that a stream may live for hours and a client that takes nothing cannot
// hold one. It is what handlers see as their ResponseWriter; http.ResponseController finds the real one by Unwrap.
type answer struct {
	http.ResponseWriter
	rc    *http.ResponseController
	idle  time.Duration
	now   func() time.Time
	began bool
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(code int) {
	a.began = a.began || code >= 200
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(p []byte) (int, error) {
	a.began = true
	_ = a.rc.SetWriteDeadline(a.now().Add(a.idle)) // not supported: not behind a connection
	return a.ResponseWriter.Write(p)
}

// Flush is for handlers that look for http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError is what http.ResponseController calls.
func (a *answer) FlushError() error {
	a.began = true
	_ = a.rc.SetWriteDeadline(a.now().Add(a.idle))
	return a.rc.Flush()
}

// pacedBody bounds the time between two pieces of a body and for all of it (F-46). The first deadline is set before
// anything is read: a handler that answers without reading leaves the rest to net/http, which must not wait for ever.
type pacedBody struct {
	io.ReadCloser
	rc   *http.ResponseController
	o    *Options
	ends time.Time
}

func newPacedBody(b io.ReadCloser, rc *http.ResponseController, o *Options) *pacedBody {
	now := o.Now()
	p := &pacedBody{ReadCloser: b, rc: rc, o: o, ends: now.Add(o.BodyTotal)}
	_ = rc.SetReadDeadline(now.Add(o.BodyIdle))
	return p
}

func (p *pacedBody) Read(b []byte) (int, error) {
	next := p.o.Now().Add(p.o.BodyIdle)
	if next.After(p.ends) {
		next = p.ends
	}
	_ = p.rc.SetReadDeadline(next)
	n, err := p.ReadCloser.Read(b)
	if err == io.EOF {
		// From here on net/http watches the connection to learn of a disconnect; a deadline would look like one.
		_ = p.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}
