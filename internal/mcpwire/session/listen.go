package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/mcpwire/transport"
)

// listener knows whether changes of the tool list are being heard: by an acknowledged subscription in the modern era, by
// the session itself in the legacy era.
type listener struct {
	heard atomic.Bool

	mu    sync.Mutex // guards what follows
	id    string     // of the subscription that is open; "" : none
	acked bool
	onAck func(error)
	end   context.CancelFunc
}

const (
	relistenMin = 250 * time.Millisecond
	relistenMax = 30 * time.Second
	// listenSettled is how long a stream must have lived for the next wait to be short again.
	listenSettled = time.Minute
)

// listen begins to hear changes before the first tools/list (R2.2). A server that does not declare that it announces them
// is not asked to; one that does must acknowledge.
func (s *Session) listen(ctx context.Context) error {
	if !s.agreed().ToolChanges {
		return nil
	}
	if !s.agreed().Modern {
		return s.listenLegacy(ctx)
	}
	first := make(chan error, 1)
	s.background(func() { s.keepListening(first) })
	select {
	case err := <-first:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.carrier.Done():
		return s.carrier.Err()
	}
}

// keepListening opens the subscription again whenever it ends while the connection lives. What was announced in between
// was not heard, so after each gap the tools are compared with the listing that is in force.
func (s *Session) keepListening(first chan<- error) {
	wait := relistenMin
	for again := false; ; again = true {
		began := s.opts.Now()
		acked := false
		err := s.subscribe(func(err error) {
			if !again {
				first <- err
			}
			if acked = err == nil; acked && again {
				s.background(s.compareListing)
			}
		})
		if s.life.Err() != nil || s.carrier.Err() != nil || !acked && !again {
			return
		}
		if s.opts.Now().Sub(began) >= listenSettled {
			wait = relistenMin
		}
		s.log.Debug("subscription for tool changes ended", "cause", err, "again_in", wait)
		if !s.pause(s.opts.Jitter(wait)) {
			return
		}
		wait = min(2*wait, relistenMax)
	}
}

func (s *Session) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.life.Done():
		return false
	}
}

// subscribe holds one subscription and returns why it ended. onAck is called once: with nil when the server has
// acknowledged what was asked for, or with the reason why it did not.
func (s *Session) subscribe(onAck func(error)) error {
	id := s.newID()
	l := &s.listening
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	l.mu.Lock()
	l.id, l.acked, l.onAck, l.end = id, false, onAck, cancel
	l.mu.Unlock()
	resp, err := s.carrier.Do(ctx, &transport.Request{
		ID: id, Method: "subscriptions/listen", Header: s.header("subscriptions/listen", ""),
		Params:         s.params([]byte(`"notifications":{"toolsListChanged":true}`)),
		OnNotification: s.notification,
	})
	l.heard.Store(false)
	l.mu.Lock()
	l.id = ""
	acked := l.acked
	l.onAck = nil
	l.mu.Unlock()
	switch {
	case err != nil:
	case resp.Error != nil:
		err = fmt.Errorf("subscriptions/listen: refused with error %d", resp.Error.Code)
	default:
		err = errors.New("subscriptions/listen: ended by the server")
	}
	if !acked {
		onAck(&Failure{Err: err,
			Advice: "the server declares that it announces tool changes and does not let them be heard; report this to its author"})
	}
	return err
}

// subscribed says whether params name the subscription that is open (S-025). On an HTTP stream of its own a notification
// may leave the name out; another's name is never taken.
func (s *Session) subscribed(params []byte) bool {
	raw := content.SubscriptionID(params)
	if raw == nil {
		return s.http != nil
	}
	id, ok := content.String(raw)
	s.listening.mu.Lock()
	defer s.listening.mu.Unlock()
	return ok && id == s.listening.id && id != ""
}

// acknowledged handles the first message of a subscription (S-061).
func (s *Session) acknowledged(params []byte) {
	l := &s.listening
	if !s.subscribed(params) {
		s.violation("acknowledgement of a subscription that is not open")
		return
	}
	granted := string(content.Member(content.Member(params, "notifications"), "toolsListChanged")) == "true"
	l.mu.Lock()
	onAck := l.onAck
	if l.acked {
		onAck = nil
	}
	l.acked = true
	l.mu.Unlock()
	if onAck == nil {
		return
	}
	if !granted {
		onAck(&Failure{Err: errors.New("the server acknowledges the subscription without tool changes, which it declares"),
			Advice: "report this to the server's author"})
		return
	}
	l.heard.Store(true)
	onAck(nil)
}

// subscriptionCancelled ends a subscription that the server says it has torn down, whether or not it also answers the
// request. Of anything else a server's cancellation means nothing (S-062).
func (s *Session) subscriptionCancelled(params []byte) {
	id, ok := content.String(content.Member(params, "requestId"))
	l := &s.listening
	l.mu.Lock()
	defer l.mu.Unlock()
	if ok && id == l.id && l.end != nil {
		l.end()
	}
}

// toolsChanged handles notifications/tools/list_changed. In the modern era only a subscription of ours that has been
// acknowledged can bring it.
func (s *Session) toolsChanged(params []byte) {
	if s.agreed().Modern && (!s.subscribed(params) || !s.listening.heard.Load()) {
		s.violation("tool change for a subscription that is not open")
		return
	}
	s.announce()
}

// Changes counts what was announced so far. It has been counted before any later message of the server is handed on.
func (s *Session) Changes() uint64 { return s.changes.Load() }

// announce voids a listing that is being read, and wakes who waits for a change. A storm of announcements is one (F-27).
func (s *Session) announce() {
	s.changes.Add(1)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// legacyListenGrace is how long an HTTP server may take to open a stream of its own, or to say that it has none. Some
// send nothing before their first event.
const legacyListenGrace = time.Second

// listenLegacy hears what the session brings by itself: the pipe, or on HTTP the stream that the server may offer. One
// that offers none is not heard, and status says so.
func (s *Session) listenLegacy(ctx context.Context) error {
	if s.http == nil {
		s.listening.heard.Store(true)
		return nil
	}
	settled := make(chan struct{})
	s.background(func() { s.keepStream(sync.OnceFunc(func() { close(settled) })) })
	grace := time.NewTimer(min(legacyListenGrace, s.opts.Limits.Connect/3))
	defer grace.Stop()
	select {
	case <-settled:
	case <-grace.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// keepStream holds the server's own stream open, and opens it again when it ends. settled is called as soon as it is known
// whether there is one.
func (s *Session) keepStream(settled func()) {
	wait := relistenMin
	for again := false; ; again = true {
		began := s.opts.Now()
		err := s.http.ListenOpen(s.life, nil, func() {
			s.listening.heard.Store(true)
			settled()
			if again {
				s.background(s.compareListing)
			}
		}, s.notification)
		s.listening.heard.Store(false)
		settled()
		if s.life.Err() != nil || s.carrier.Err() != nil {
			return
		}
		if f, ok := errors.AsType[*transport.Fault](err); ok && definite(f.HTTPStatus) {
			s.log.Debug("the server has no stream for changes", "status", f.HTTPStatus)
			return
		}
		if s.opts.Now().Sub(began) >= listenSettled {
			wait = relistenMin
		}
		if !s.pause(s.opts.Jitter(wait)) {
			return
		}
		wait = min(2*wait, relistenMax)
	}
}

// definite says whether an HTTP status will not change by asking again soon.
func definite(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// compareListing reads the tools again after a gap in what was heard, and announces a change that it finds.
func (s *Session) compareListing() {
	want, ok := s.listed.get()
	if !ok || !s.listed.comparing.CompareAndSwap(false, true) {
		return
	}
	defer s.listed.comparing.Store(false)
	ctx, cancel := context.WithTimeout(s.life, s.opts.Limits.Connect)
	defer cancel()
	listing, err := s.list(ctx)
	if err != nil {
		s.log.Debug("compare tools after a gap", "error", err.Error())
		return
	}
	if listing.Digest() != want {
		s.announce()
	}
}

// gone says whether a fault means that the legacy session has ended at the server: no later request will be taken.
func (s *Session) gone(f *transport.Fault) bool {
	return s.http != nil && !s.agreed().Modern && f.HTTPStatus == http.StatusNotFound && f.Code == call.CodeProviderRefused
}
