package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/transport"
	"github.com/ostiary/ostiary/internal/provider"
)

// Options say how a session is opened. Zero values select the defaults.
type Options struct {
	Protocol string // "auto" (also ""), or one revision
	Endpoint string // the URL, for the SDK's transport of the legacy era; "" on stdio

	ClientName    string // "ostiary"
	ClientVersion string // "0"
	// ToolContract offers the tool-contract extension, version 1 (R4.1).
	ToolContract bool
	// WorldEvents offers the world-events extension, version 1, to a server of the modern era (R5.1). LegacyEvents takes log
	// messages of the logger aurora/event from one of the handshake era for events (R5.4). Without Events they do nothing.
	WorldEvents, LegacyEvents bool
	// Events takes what the server says has happened; nil: it is dropped.
	Events Events

	Limits provider.Limits
	Logger *slog.Logger // nil: none

	// Enter is told each phase of the start as it begins; nil: nobody is.
	Enter func(provider.Phase)
	// Jitter spreads a wait; nil: a random half is taken off.
	Jitter func(time.Duration) time.Duration
	// Now is the clock of rates; nil: time.Now.
	Now func() time.Time
}

// Events takes the events of one connection, those that nobody has agreed on with them: in wire order, from the first
// message on. Its methods must not block.
type Events interface {
	// Event takes one payload as the server wrote it; it is valid until Event returns.
	Event(payload []byte)
	// Unasked is told of an event that came in a way that does not hold here whatever was agreed on.
	Unasked()
	// Agreed says whether events hold on this connection. It is called before the first event that they hold for, and may
	// be called again with the same word.
	Agreed(holds bool)
}

func (o *Options) setDefaults() {
	if o.Protocol == "" {
		o.Protocol = "auto"
	}
	if o.ClientName == "" {
		o.ClientName = "ostiary"
	}
	if o.ClientVersion == "" {
		o.ClientVersion = "0"
	}
	d := provider.DefaultLimits
	l := &o.Limits
	setDefault(&l.Connect, d.Connect)
	setDefault(&l.Call, d.Call)
	setDefault(&l.Message, d.Message)
	setDefault(&l.Pages, d.Pages)
	setDefault(&l.Tools, d.Tools)
	setDefault(&l.Concurrent, d.Concurrent)
	setDefault(&l.Close, d.Close)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Enter == nil {
		o.Enter = func(provider.Phase) {}
	}
	if o.Jitter == nil {
		o.Jitter = func(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

func setDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Sink takes what a server sends of its own accord, before the session is open already.
type Sink struct {
	Notification func(method string, params []byte)
	Request      func(id []byte, method string, params []byte)
}

// Dial starts a carrier that reports to the sink.
type Dial func(ctx context.Context, sink Sink) (transport.Carrier, error)

// sdkCarrier is a carrier that an SDK session can share: the pipe of a child.
type sdkCarrier interface {
	SDKTransport() mcp.Transport
	InitializeResult() []byte
}

// httpCarrier is a carrier whose requests have streams of their own.
type httpCarrier interface {
	HTTPClient() *http.Client
	SetSession(id, version string)
	ListenOpen(ctx context.Context, header http.Header, opened func(), on func(method string, params []byte)) error
	Reply(ctx context.Context, id, result []byte, e *call.ProviderError, header http.Header) error
}

// Session is one open connection with a server. Its methods may be called concurrently.
type Session struct {
	opts    Options
	log     *slog.Logger
	carrier transport.Carrier
	http    httpCarrier // nil on stdio

	dialed     chan struct{} // closed once carrier and http are set: a server may speak before
	negotiated atomic.Pointer[provider.Negotiated]
	logging    bool   // the server declares logging
	meta       []byte // the members of _meta that every modern request carries, without braces

	nextID atomic.Uint64
	open   atomic.Int64 // calls under way
	calls  openCalls
	logs   logLevel

	listening listener
	changes   atomic.Uint64 // announcements of a changed tool list so far
	changed   chan struct{}
	listed    listedDigest
	tools     atomic.Pointer[toolSet]

	violations, notifications atomic.Int64
	lastViolation             atomic.Pointer[string]
	replies                   atomic.Int64 // answers to a server's requests that are on their way

	legacy *mcp.ClientSession // nil in the modern era

	life   context.Context // ends with the session; never a caller's
	end    context.CancelFunc
	workMu sync.Mutex // orders the last new work before the wait for all of it
	work   sync.WaitGroup

	done     chan struct{}
	doneOnce sync.Once
	endCause atomic.Pointer[error]
	closing  sync.Once
}

// Open starts a carrier, agrees on a revision, and begins to listen for changes of the tool list. An error leaves nothing
// behind. It returns shortly after ctx ends, whatever the server does.
func Open(ctx context.Context, dial Dial, o Options) (*Session, error) {
	o.setDefaults()
	s := &Session{opts: o, log: o.Logger, changed: make(chan struct{}, 1), dialed: make(chan struct{}), done: make(chan struct{})}
	s.life, s.end = context.WithCancel(context.Background()) // a session outlives the start that opened it
	o.Enter(provider.PhaseConnect)
	carrier, err := dial(ctx, Sink{Notification: s.notification, Request: s.reverseRequest})
	if err != nil {
		close(s.dialed)
		s.end()
		return nil, err
	}
	s.carrier = carrier
	s.http, _ = carrier.(httpCarrier)
	s.meta = s.appendClientMeta(nil)
	close(s.dialed)
	err = s.start(ctx)
	if err != nil {
		// A server that did not start has nothing to finish in peace: the ladder is short.
		quick, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(o.Limits.Close, failedStartGrace))
		defer cancel()
		s.Close(quick)
		return nil, err
	}
	s.background(func() {
		select {
		case <-carrier.Done():
			s.finish(carrier.Err())
		case <-s.life.Done():
		}
	})
	return s, nil
}

// failedStartGrace bounds the end of a server whose start failed.
const failedStartGrace = 500 * time.Millisecond

func (s *Session) start(ctx context.Context) error {
	s.opts.Enter(provider.PhaseNegotiate)
	if err := s.negotiate(ctx); err != nil {
		return s.explain(ctx, err)
	}
	s.opts.Enter(provider.PhaseListen)
	if err := s.listen(ctx); err != nil {
		return s.explain(ctx, err)
	}
	return nil
}

// explain prefers the reason why the connection ended over what that looked like from the request that noticed.
func (s *Session) explain(ctx context.Context, err error) error {
	select {
	case <-s.carrier.Done():
		if cause := s.carrier.Err(); cause != nil {
			if words := s.lastWords(); words != "" {
				cause = fmt.Errorf("%w; its last words on stderr: %q", cause, words)
			}
			return &Failure{Err: cause, Advice: adviceFor(err, "look at the server's own messages on stderr; it may need arguments, settings or credentials")}
		}
	default:
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		if cause := context.Cause(ctx); cause != ctx.Err() {
			err = fmt.Errorf("%w (%w)", cause, err)
		}
		return &Failure{Err: err, Advice: "the server did not answer in time; raise timeout_seconds if it is only slow to start"}
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{Err: err, Advice: adviceFor(err, "")}
}

// Bounds of what is told of a child's last words.
const (
	lastLines = 8
	lastLine  = 200 // characters of each
)

// lastWords are the last lines that a child wrote to stderr, scrubbed and short, without the frames of a stack: for whoever
// has to find out why it ended. The reason is seldom in the very last one.
func (s *Session) lastWords() string {
	c, ok := s.carrier.(interface{ Stats() transport.StdioStats })
	if !ok {
		return ""
	}
	var said []string
	for _, line := range slices.Backward(c.Stats().Stderr) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "at ") {
			continue
		}
		said = append(said, string([]rune(line)[:min(lastLine, len([]rune(line)))]))
		if len(said) == lastLines {
			break
		}
	}
	slices.Reverse(said)
	return strings.Join(said, " | ")
}

// Negotiated is what both sides agreed on.
func (s *Session) Negotiated() provider.Negotiated { return *s.agreed() }

var nothingAgreed provider.Negotiated

// agreed is what was negotiated; before that it is empty.
func (s *Session) agreed() *provider.Negotiated {
	if n := s.negotiated.Load(); n != nil {
		return n
	}
	return &nothingAgreed
}

// Contract says whether tool-contract v1 holds on this connection (R4.1).
func (s *Session) Contract() bool { return s.agreed().ToolContract }

// Changed is signalled when the server announces a change of its tool list; announcements in between are one (F-27).
func (s *Session) Changed() <-chan struct{} { return s.changed }

// Done is closed when the connection has ended for good.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err says why the session ended; nil while it lives.
func (s *Session) Err() error {
	if p := s.endCause.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *Session) finish(cause error) {
	if cause == nil {
		cause = errors.New("closed")
	}
	s.doneOnce.Do(func() {
		s.endCause.Store(&cause)
		close(s.done)
	})
}

// Close ends the session within its bound, or that of ctx if it is shorter, and waits for what it started.
func (s *Session) Close(ctx context.Context) error {
	var err error
	s.closing.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, s.opts.Limits.Close)
		defer cancel()
		s.finish(errors.New("closed by the gateway"))
		s.workMu.Lock()
		s.end()
		s.workMu.Unlock()
		if s.legacy != nil && s.http != nil { // it says goodbye by DELETE, while the carrier still lives (R1.8)
			s.endLegacy(ctx)
		}
		err = s.carrier.Close(ctx)
		if s.legacy != nil && s.http == nil {
			s.endLegacy(ctx)
		}
		s.awaitWork(ctx)
	})
	return err
}

// awaitWork waits for what the session started. All of it ends with the carrier and the session's life; that something
// does not is a fault of ours, and is no reason to hang.
func (s *Session) awaitWork(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		s.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	select {
	case <-ended:
	case <-time.After(time.Second):
		s.log.Error("a session has ended and left work behind")
	}
}

// Stats are the session's share of the counters.
func (s *Session) Stats() provider.LinkStats {
	st := provider.LinkStats{
		Listening:     s.listening.heard.Load(),
		Violations:    s.violations.Load(),
		Notifications: s.notifications.Load(),
		OpenCalls:     int(s.open.Load()),
	}
	if c, ok := s.carrier.(interface{ Stats() transport.StdioStats }); ok {
		t := c.Stats()
		st.PID, st.StdoutNoise, st.LateAnswers, st.StderrTail = t.PID, t.Noise, t.Late, t.Stderr
		st.Violations += t.Violations
		st.LastViolation = t.LastViolation
		st.Notifications = t.Notifications
		st.Exit, st.Stopped = t.Exit, t.Stopped
	}
	if c, ok := s.carrier.(interface{ Stats() transport.HTTPStats }); ok {
		t := c.Stats()
		st.Violations += t.Violations + t.Strays
		st.LastViolation = t.LastViolation
	}
	if v := s.lastViolation.Load(); v != nil && st.LastViolation == "" {
		st.LastViolation = *v
	}
	return st
}

// Failure is a start that did not succeed, or a listing. It says what to do where that is known.
type Failure struct {
	Err    error
	Advice string
	Ours   []string // revisions that were offered, if they are the matter
	Theirs []string // revisions that the server named
}

func (e *Failure) Error() string { return e.Err.Error() }

func (e *Failure) Unwrap() error { return e.Err }

func adviceFor(err error, otherwise string) string {
	if f, ok := errors.AsType[*Failure](err); ok && f.Advice != "" {
		return f.Advice
	}
	if f, ok := errors.AsType[*transport.Fault](err); ok {
		switch {
		case f.HTTPStatus == http.StatusUnauthorized, f.HTTPStatus == http.StatusForbidden:
			return "check the provider's credential"
		case f.HTTPStatus == http.StatusTooManyRequests:
			return "the server asks to be called less often; try later"
		case f.HTTPStatus >= 500:
			return `the server failed; if it only speaks an older revision, set protocol = "2025-11-25"`
		}
	}
	return otherwise
}

// revisions of the legacy era, newest first (R1.2).
var legacyRevisions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// modernRevisions, newest first.
var modernRevisions = []string{"2026-07-28"}

func allRevisions() []string { return slices.Concat(modernRevisions, legacyRevisions) }
