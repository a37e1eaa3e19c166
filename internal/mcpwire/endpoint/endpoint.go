package endpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/identity"
)

// Caller is the path of a call; gate.Gate satisfies it. Call may be called concurrently. It returns soon after ctx ends,
// and uses neither Progress nor Log nor any bytes of the request once it has returned.
type Caller interface {
	Call(ctx context.Context, r call.Request) call.Reply
}

// Tool is one tool as an export shows it.
type Tool struct {
	Name       string // towards clients (R10.7)
	Descriptor *call.Descriptor
	// Unlisted has calls of the tool taken in, to be refused or not by the path, without showing it: its server may offer it
	// again at any time.
	Unlisted bool

	mirrored []call.ParamHeader // the arguments that clients mirror into headers, as the listing tells them to
}

// Export is an explicit set of tools (R10.3) at one path (R10.8).
type Export struct {
	Name         string
	Path         string // where it is mounted; for messages only
	Instructions string
	Tools        []Tool          // in the order of the listing
	Principals   map[string]bool // who may use it; nil: every principal
	Resources    *Resources      // nil: none are offered
}

// Options configures an [Endpoint]. Zero numbers and durations take the default that stands with the field.
type Options struct {
	ServerName, ServerVersion string
	Exports                   []Export

	// Authenticate resolves a bearer token. nil: nobody is let in over HTTP.
	Authenticate func(ctx context.Context, bearer string) (call.Principal, bool)
	// Guard, if set, is used instead of one made from Authenticate, so that several servers share one count of failures.
	Guard *identity.Guard

	Caller Caller
	World  World // needed if an export has resources

	// Changed, if set, is asked once for each export; a signal on its channel means that the tool set changed. See also
	// [Endpoint.SetTools], which signals by itself.
	Changed func(ctx context.Context, export string) <-chan struct{}

	AllowedHosts, AllowedOrigins []string // beyond loopback and the same origin; see identity.Perimeter

	MaxBody                   int64         // 4 MiB
	MaxConcurrent             int           // 256 calls at a time
	MaxConcurrentPerPrincipal int           // 64 calls at a time
	MaxSessions               int           // 1024 legacy sessions of each export
	MaxListens                int           // 1024 subscriptions/listen and legacy GET streams
	SessionTimeout            time.Duration // 30 min without a request or a stream
	KeepAlive                 time.Duration // 15 s between comments on a quiet stream

	Logger *slog.Logger // discarded if nil
	Now    func() time.Time

	// OnRefused is told what was refused before it became a call, for the ledger. kind is one word of malformed, perimeter,
	// unauthenticated, header_mismatch, unknown_tool, unknown_resource, reserved_meta and overloaded; principal is "" if nobody was
	// recognised; detail is quoted and bounded. It must not block.
	OnRefused func(kind, principal, detail string)
}

func (o *Options) setDefaults() {
	if o.MaxBody <= 0 {
		o.MaxBody = 4 << 20
	}
	setInt := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	setInt(&o.MaxConcurrent, 256)
	setInt(&o.MaxConcurrentPerPrincipal, 64)
	setInt(&o.MaxSessions, 1024)
	setInt(&o.MaxListens, 1024)
	if o.SessionTimeout <= 0 {
		o.SessionTimeout = 30 * time.Minute
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = 15 * time.Second
	}
	if o.ServerName == "" {
		o.ServerName = "ostiary"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OnRefused == nil {
		o.OnRefused = func(string, string, string) {}
	}
}

// Endpoint is the MCP server that clients see. It is safe for concurrent use.
type Endpoint struct {
	o         Options
	log       *slog.Logger
	guard     *identity.Guard
	perimeter *identity.Perimeter
	exports   map[string]*export
	slots     *slots
	requests  *gauge // HTTP requests from before their body is read until they are answered, streams aside
	listens   *gauge
	watchers  *watchers

	closingCtx context.Context // ends when Close begins: streams end gracefully
	closing    <-chan struct{} // its Done
	beginClose context.CancelFunc
	ctx        context.Context // ends when calls must end
	cancel     context.CancelFunc
	running    sync.WaitGroup // everything that Close waits for
	runMu      sync.Mutex     // guards closed, so that nothing is added to running once Close waits
	closed     bool
}

// New renders the exports. It starts one goroutine for each export that Changed gives a channel for; Close ends them.
func New(o Options) (*Endpoint, error) {
	o.setDefaults()
	if o.Caller == nil {
		return nil, errors.New("endpoint without a caller")
	}
	perimeter, err := identity.NewPerimeter(identity.PerimeterOptions{AllowedHosts: o.AllowedHosts, AllowedOrigins: o.AllowedOrigins})
	if err != nil {
		return nil, err
	}
	if o.Guard == nil {
		o.Guard = identity.NewGuard(o.Authenticate, identity.NewThrottle(identity.ThrottleOptions{Now: o.Now}))
	}
	e := &Endpoint{
		o: o, log: o.Logger.With("component", "endpoint"), guard: o.Guard, perimeter: perimeter,
		exports:  make(map[string]*export, len(o.Exports)),
		slots:    newSlots(o.MaxConcurrent, o.MaxConcurrentPerPrincipal),
		requests: newGauge(2*o.MaxConcurrent + 64),
		listens:  newGauge(o.MaxListens),
	}
	e.watchers = newWatchers(e)
	e.closingCtx, e.beginClose = context.WithCancel(context.Background())
	e.closing = e.closingCtx.Done()
	e.ctx, e.cancel = context.WithCancel(context.Background())
	for _, x := range o.Exports {
		if _, taken := e.exports[x.Name]; taken {
			return nil, fmt.Errorf("export %q is given twice", x.Name)
		}
		ex, err := e.newExport(x)
		if err != nil {
			return nil, fmt.Errorf("export %q: %w", x.Name, err)
		}
		e.exports[x.Name] = ex
	}
	if o.Changed != nil {
		for name, ex := range e.exports {
			if ch := o.Changed(e.ctx, name); ch != nil {
				e.running.Go(func() { e.follow(ex, ch) })
			}
		}
	}
	return e, nil
}

func (e *Endpoint) follow(ex *export, ch <-chan struct{}) {
	for {
		select {
		case <-e.closing:
			return
		case _, ok := <-ch:
			if !ok {
				return
			}
			ex.announce()
		}
	}
}

// SetTools replaces the tool set of an export and tells whoever listens (R10.3). Calls that are running go on.
func (e *Endpoint) SetTools(name string, tools []Tool) error {
	ex, ok := e.exports[name]
	if !ok {
		return fmt.Errorf("export %q does not exist", name)
	}
	l, err := render(e.identity(), slices.Clone(tools))
	if err != nil {
		return fmt.Errorf("export %q: %w", name, err)
	}
	ex.listing.Store(l)
	ex.announce()
	return nil
}

// enter counts one piece of work that Close waits for. It reports false once Close has begun.
func (e *Endpoint) enter() bool {
	e.runMu.Lock()
	defer e.runMu.Unlock()
	if e.closed {
		return false
	}
	e.running.Add(1)
	return true
}

// Close ends listening streams with their result, lets running calls go on until ctx ends, then cancels them, and waits
// for all of it. New requests are refused from the start. It is safe to call twice. It returns ctx's error if calls had
// to be cancelled.
func (e *Endpoint) Close(ctx context.Context) error {
	e.runMu.Lock()
	e.closed = true
	e.runMu.Unlock()
	e.beginClose()
	idle := make(chan struct{})
	go func() { // ends when the work does; cancel below makes sure that it does
		e.running.Wait()
		close(idle)
	}()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = fmt.Errorf("close endpoint: calls were cancelled: %w", ctx.Err())
	}
	e.cancel()
	<-idle
	for _, ex := range e.exports {
		ex.legacy.close()
	}
	return err
}

func (e *Endpoint) isClosing() bool {
	return e.closingCtx.Err() != nil
}
