package endpoint

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// livelyWriter keeps a session's GET stream alive with comments. The SDK writes whole events at a time, and begins the
// stream at once.
type livelyWriter struct {
	w         http.ResponseWriter
	rc        *http.ResponseController
	keepAlive time.Duration

	begun chan struct{} // closed when the stream begins

	mu    sync.Mutex // guards what follows, and writing to w
	began bool
	ended bool
	timer *time.Timer
}

func newLivelyWriter(w http.ResponseWriter, keepAlive time.Duration) *livelyWriter {
	l := &livelyWriter{w: w, rc: http.NewResponseController(w), keepAlive: keepAlive, begun: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(keepAlive, l.tick)
	return l
}

func (l *livelyWriter) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if l.began {
		_, _ = l.w.Write(commentKeep) // the SDK learns of a client that has gone by itself
		_ = l.rc.Flush()
	}
	l.timer.Reset(l.keepAlive)
}

// Header is that of the answer.
func (l *livelyWriter) Header() http.Header { return l.w.Header() }

// WriteHeader begins the stream, or the refusal of one.
func (l *livelyWriter) WriteHeader(code int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if code == http.StatusOK {
		l.w.Header()["X-Accel-Buffering"] = headerNoBuffer
	}
	l.w.WriteHeader(code)
	if code == http.StatusOK && !l.began {
		l.began = true
		close(l.begun)
	}
}

// Write passes an event on.
func (l *livelyWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return 0, http.ErrHandlerTimeout
	}
	return l.w.Write(b)
}

// tell writes what a session's subscriptions have to tell between the SDK's events, until ctx ends. What comes while there is
// no stream is told by the next one.
func (l *livelyWriter) tell(ctx context.Context, w *watch) {
	select {
	case <-ctx.Done():
		return
	case <-l.begun:
	}
	for {
		for _, uri := range w.take() {
			event := append(content.AppendNotification([]byte(eventBegin), noteResourceUpdated, updatedParams(uri)), eventEnd...)
			if _, err := l.Write(event); err != nil {
				return
			}
		}
		_ = l.FlushError() // a failure shows at the next write
		select {
		case <-ctx.Done():
			return
		case <-w.news:
		}
	}
}

// FlushError is what http.ResponseController calls.
func (l *livelyWriter) FlushError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return http.ErrHandlerTimeout
	}
	return l.rc.Flush()
}

// close makes sure that nothing is written once the request has ended.
func (l *livelyWriter) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.timer.Stop()
}
