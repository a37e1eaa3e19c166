package endpoint

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var errSessions = errors.New("too many sessions")

// sessions are the legacy sessions of one export: whose they are, what log level they asked for, and when they end. The SDK
// knows neither bounds nor owners, and its own timeout forgets that a listening client is not idle.
type sessions struct {
	max     int
	timeout time.Duration
	now     func() time.Time
	waiting sync.WaitGroup // a goroutine for each session, and its timer's

	mu     sync.Mutex // guards what follows
	byID   map[string]*session
	closed bool
}

// session is one of them. Its fields are guarded by sessions.mu.
type session struct {
	ss        *mcp.ServerSession
	principal string
	level     string
	ctx       context.Context // ends with the session
	cancel    context.CancelFunc
	refs      int // requests and streams in progress
	used      time.Time
	timer     *time.Timer
}

func newSessions(bound int, timeout time.Duration, now func() time.Time) *sessions {
	return &sessions{max: bound, timeout: timeout, now: now, byID: make(map[string]*session)}
}

// bind makes a session the principal's. If there are too many, the same principal's longest idle one has to go: a client
// whose session is gone makes a new one, while clients that never end theirs are common.
func (t *sessions) bind(ss *mcp.ServerSession, principal string) error {
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
	s := &session{ss: ss, principal: principal, used: t.now()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	t.byID[ss.ID()] = s
	s.timer = time.AfterFunc(t.timeout, func() { t.expire(s) })
	t.waiting.Go(func() {
		_ = ss.Wait() // why it ended does not matter
		t.mu.Lock()
		defer t.mu.Unlock()
		t.dropLocked(s)
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

// dropLocked forgets a session and ends it. Ending waits for its calls, which dropping cancels, so it has a goroutine.
func (t *sessions) dropLocked(s *session) {
	if t.byID[s.ss.ID()] != s {
		return
	}
	delete(t.byID, s.ss.ID())
	s.timer.Stop()
	s.cancel()
	t.waiting.Go(func() { _ = s.ss.Close() })
}

func (t *sessions) expire(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.refs == 0 {
		t.dropLocked(s)
	}
}

// hold keeps a session from expiring while a request or a stream of it goes on. It fails for a session that does not exist
// and for somebody else's, alike (S-118). end is only called if it succeeds.
func (t *sessions) hold(id, principal string) (end func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.principal != principal {
		return nil, false
	}
	s.refs++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		s.used = t.now()
		if s.refs--; s.refs == 0 && t.byID[id] == s {
			s.timer.Reset(t.timeout)
		}
	}, true
}

// drop ends a session, as its client asked.
func (t *sessions) drop(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byID[id]; s != nil {
		t.dropLocked(s)
	}
}

func (t *sessions) setLevel(ss *mcp.ServerSession, level string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byID[ss.ID()]; s != nil {
		s.level = level
	}
}

// use is what a call needs of its session: a context that ends with it, and its log level.
func (t *sessions) use(ss *mcp.ServerSession) (context.Context, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byID[ss.ID()]; s != nil {
		return s.ctx, s.level
	}
	return nil, ""
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
