package endpoint

import (
	"context"
	"errors"
	"sync"
	"time"
)

var errSessions = errors.New("too many sessions")

// sessions are the legacy sessions of one export: whose they are, which calls are open in them, what log level they asked
// for, and when they end. The SDK knows neither bounds nor owners, and its own timeout forgets that a listening client is
// not idle.
type sessions struct {
	max     int
	timeout time.Duration
	now     func() time.Time
	waiting sync.WaitGroup                // a goroutine for each session, and one for each that is being ended
	watch   func(principal string) *watch // for the subscriptions of a session; nil: there are none

	mu     sync.Mutex // guards what follows
	byID   map[string]*session
	closed bool
}

// handle is what a session is to the SDK.
type handle interface {
	ID() string
	Wait() error  // until it has ended
	Close() error // ends it; may wait
}

// session is one of them. id, ctx, ss and watch do not change; the other fields are guarded by sessions.mu.
type session struct {
	id        string
	ss        handle
	ctx       context.Context // ends with the session
	cancel    context.CancelFunc
	principal string
	watch     *watch // nil: there is nothing to subscribe to
	elicits   bool   // its client can be shown a form; does not change
	asked     asked  // guards itself
	level     string
	open      map[string]context.CancelFunc // calls, by the key of their id
	refs      int                           // requests and streams in progress
	used      time.Time
	timer     *time.Timer
}

func newSessions(bound int, timeout time.Duration, now func() time.Time) *sessions {
	return &sessions{max: bound, timeout: timeout, now: now, byID: make(map[string]*session)}
}

// bind makes a session the principal's. If there are too many, the same principal's longest idle one has to go: a client
// whose session is gone makes a new one, while clients that never end theirs are common.
func (t *sessions) bind(ss handle, principal string, elicits bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errSessions
	}
	if t.byID[ss.ID()] != nil {
		return errors.New("the session is initialized already")
	}
	if len(t.byID) >= t.max {
		old := t.idlestLocked(principal)
		if old == nil {
			return errSessions
		}
		t.dropLocked(old)
	}
	s := &session{id: ss.ID(), ss: ss, principal: principal, elicits: elicits, open: make(map[string]context.CancelFunc), used: t.now()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if t.watch != nil {
		s.watch = t.watch(principal)
		context.AfterFunc(s.ctx, s.watch.close)
	}
	t.byID[s.id] = s
	s.timer = time.AfterFunc(t.timeout, func() { t.expire(s) })
	t.waiting.Go(func() {
		_ = ss.Wait() // why it ended does not matter
		t.drop(s)
	})
	return nil
}

// room says whether bind would find room for the principal.
func (t *sessions) room(principal string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.closed && (len(t.byID) < t.max || t.idlestLocked(principal) != nil)
}

func (t *sessions) idlestLocked(principal string) *session {
	var found *session
	for _, s := range t.byID {
		if s.principal == principal && s.refs == 0 && (found == nil || s.used.Before(found.used)) {
			found = s
		}
	}
	return found
}

// drop forgets a session and ends it and its calls.
func (t *sessions) drop(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropLocked(s)
}

func (t *sessions) dropLocked(s *session) {
	if t.byID[s.id] != s {
		return
	}
	delete(t.byID, s.id)
	s.timer.Stop()
	s.cancel()
	t.waiting.Go(func() { _ = s.ss.Close() }) // it may wait for writes
}

func (t *sessions) expire(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.refs == 0 {
		t.dropLocked(s)
	}
}

// hold finds a session and keeps it from expiring until release. It fails for one that does not exist and for somebody
// else's, alike (S-118).
func (t *sessions) hold(id, principal string) (*session, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.principal != principal {
		return nil, false
	}
	s.refs++
	return s, true
}

func (t *sessions) release(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.used = t.now()
	if s.refs--; s.refs == 0 && t.byID[s.id] == s {
		s.timer.Reset(t.timeout)
	}
}

// begin opens a call under its id, unless one is open under it (S-001), and says which log level it has.
func (t *sessions) begin(s *session, key string, cancel context.CancelFunc) (level string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.open[key] != nil {
		return "", false
	}
	s.open[key] = cancel
	return s.level, true
}

func (t *sessions) end(s *session, key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(s.open, key)
}

// cancel ends a call of the session; an id that names none is ignored.
func (t *sessions) cancel(s *session, key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cancel := s.open[key]; cancel != nil {
		cancel()
	}
}

func (t *sessions) setLevel(s *session, level string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.level = level
}

// close ends all sessions and waits for it.
func (t *sessions) close() {
	t.mu.Lock()
	t.closed = true
	for _, s := range t.byID {
		t.dropLocked(s)
	}
	t.mu.Unlock()
	t.waiting.Wait()
}
