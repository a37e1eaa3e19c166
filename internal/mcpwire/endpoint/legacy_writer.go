package endpoint

import (
	"bytes"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// legacyWriter stands between the SDK and the client: it keeps quiet streams alive with comments, sends the headers of a
// stream before its first event, and turns the stream into one JSON body for a client that takes nothing else. The SDK
// writes whole events at a time.
type legacyWriter struct {
	x         *exchange
	keepAlive time.Duration
	rc        *http.ResponseController
	header    http.Header // what the SDK sets; it becomes the answer's with the first byte

	mu    sync.Mutex // guards what follows, and writing to x.w
	began bool
	ended bool
	timer *time.Timer
}

// newLegacyWriter makes one. events says that the answer is certain to be a stream.
func newLegacyWriter(x *exchange, events bool, keepAlive time.Duration) *legacyWriter {
	w := &legacyWriter{x: x, keepAlive: keepAlive, rc: http.NewResponseController(x.w), header: make(http.Header)}
	if events && x.streams {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.timer = time.AfterFunc(min(streamSoon*4, keepAlive), w.tick)
	}
	return w
}

func (w *legacyWriter) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	if !w.began {
		w.began = true
		w.x.beginEvents()
	}
	_, _ = w.x.w.Write(commentKeep)
	_ = w.rc.Flush()
	w.timer.Reset(w.keepAlive)
}

// Header is the SDK's own.
func (w *legacyWriter) Header() http.Header { return w.header }

// WriteHeader sends the SDK's headers, unless a stream has begun already.
func (w *legacyWriter) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beginLocked(code)
}

func (w *legacyWriter) beginLocked(code int) {
	if w.began || w.ended {
		return
	}
	w.began = true
	h := w.x.w.Header()
	maps.Copy(h, w.header)
	if !w.x.streams && isEvents(w.header) {
		h["Content-Type"] = headerJSON
	} else if isEvents(w.header) {
		h["X-Accel-Buffering"] = headerNoBuffer
	}
	w.x.w.WriteHeader(code)
}

func isEvents(h http.Header) bool { return h.Get("Content-Type") == "text/event-stream" }

// Write passes one event on, or of a stream that must be one body the answer alone.
func (w *legacyWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return 0, http.ErrHandlerTimeout
	}
	if !w.x.streams && isEvents(w.header) {
		data := eventData(b)
		if data == nil || content.Member(data, "method") != nil {
			return len(b), nil // a comment or a notification
		}
		w.beginLocked(http.StatusOK)
		if _, err := w.x.w.Write(data); err != nil {
			return 0, err
		}
		return len(b), nil
	}
	w.beginLocked(http.StatusOK)
	return w.x.w.Write(b)
}

// eventData is the data of one event as the SDK writes it, nil if there is none.
func eventData(event []byte) []byte {
	for line := range bytes.Lines(event) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			return bytes.TrimRight(data, "\n")
		}
	}
	return nil
}

// FlushError is what http.ResponseController calls.
func (w *legacyWriter) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || !w.began {
		return nil
	}
	return w.rc.Flush()
}

// close makes sure that nothing is written once the request has been answered.
func (w *legacyWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
