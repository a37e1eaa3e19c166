package ostiary

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/internal/admission"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/gate"
	"github.com/ostiary/ostiary/internal/httpd"
	"github.com/ostiary/ostiary/internal/identity"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/mcpwire"
	"github.com/ostiary/ostiary/internal/mcpwire/endpoint"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/sqlstore"
	"github.com/ostiary/ostiary/internal/vault"
	"github.com/ostiary/ostiary/internal/world"
)

// Host is one gateway. Its methods are safe for concurrent use between Start and Stop.
type Host struct {
	o        Options
	log      *slog.Logger
	pid      int
	since    time.Time
	policy   *policy.Policy
	registry *provider.Registry
	vault    *vault.Vault
	firewall *firewall.Engine
	rules    approval.Rules
	hub      *approval.Hub
	admitted admissions
	lock     *admission.Lock // nil: there is none
	builtIns *builtIns
	pruning  pruning

	store     store.Store
	gate      *gate.Gate
	providers *provider.Manager
	upstreams *mcpwire.Upstreams
	events    *world.Intake
	endpoint  atomic.Pointer[endpoint.Endpoint]
	httpd     *httpd.Server

	undo []func(context.Context) error // what Stop does, last first

	mu      sync.Mutex // guards what follows
	state   string     // "" when ready; else why not
	exports []ExportInfo
	shown   map[string][]endpoint.Tool // by export, as clients see them
	stopped bool
}

// New checks options and configuration. It opens, starts and listens to nothing.
func New(o Options) (*Host, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	h := &Host{o: o, log: o.Logger, pid: os.Getpid(), since: o.Now(), registry: new(provider.Registry), state: "not started"}
	h.policy = o.Config.Policy
	if o.Lock != nil {
		lock, err := admission.ParseLock(o.Lock)
		if err != nil {
			return nil, err
		}
		h.lock = &lock
	}
	h.upstreams = mcpwire.New(mcpwire.Options{Logger: o.Logger, ClientName: "ostiary", ClientVersion: Version, Now: o.Now, LookupEnv: o.LookupEnv,
		ToolContract: true, Events: h.eventsOf})
	h.events = h.newIntake()
	profiles, err := h.profiles()
	if err != nil {
		return nil, err
	}
	if h.builtIns, err = h.newBuiltIns(); err != nil {
		return nil, err
	}
	if h.vault, err = vault.Open(o.Config.VaultOptions(o.DataDir, o.LookupEnv)); err != nil {
		return nil, err
	}
	if h.firewall, err = firewall.New(firewall.Options{}); err != nil {
		return nil, err
	}
	if h.rules, err = approvalRules(o.Config); err != nil {
		return nil, err
	}
	h.hub = approval.NewHub(maxHeld)
	h.providers, err = provider.NewManager(provider.ManagerOptions{
		Connector: h.upstreams, Profiles: profiles, Registry: h.registry, Logger: o.Logger.With("component", "provider"),
		Now: o.Now, OnEvent: h.providerEvent, OnPhase: func(pkg string, ph provider.Phase) { h.phase(pkg, ph.String()) }, OnListed: h.listed,
	})
	return h, err
}

// Start opens the store, closes what an earlier run left open, starts all providers and lets calls through. If any part
// fails, what was started is undone in reverse order.
func (h *Host) Start(ctx context.Context) (err error) {
	h.setState("starting")
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Stop(context.WithoutCancel(ctx)))
		}
	}()
	h.store, err = sqlstore.Open(ctx, sqlstore.Options{Dir: h.o.DataDir, Logger: h.log.With("component", "store"), Now: h.o.Now, RelaxedDelay: h.o.Config.Ledger.RelaxedDelay})
	if err != nil {
		return err
	}
	h.push(func(context.Context) error { return h.store.Close() })
	if err := h.vault.Init(ctx); err != nil { // evidence is then kept without its content, and the log says so
		h.log.Error("make the vault", "err", err)
	}
	if h.gate, err = h.newGate(); err != nil {
		return err
	}
	if err := h.record(ctx, ledger.KindOpened, map[string]any{"version": Version, "pid": h.pid}); err != nil {
		return err
	}
	h.push(func(ctx context.Context) error { return h.record(ctx, ledger.KindClosed, map[string]any{"pid": h.pid}) })
	h.push(h.lastChance)
	closed, err := h.gate.Recover(ctx)
	if err != nil {
		return fmt.Errorf("close open calls: %w", err)
	}
	if closed > 0 {
		h.log.Warn("calls that were open when the gateway last stopped are recorded as unknown", "calls", closed)
	}
	if err := h.recordBuiltIns(ctx); err != nil {
		return err
	}
	if err := h.blockOutdated(ctx); err != nil {
		return err
	}
	if err := h.reload(ctx); err != nil {
		return err
	}
	h.sweep(ctx)
	if h.o.Offline {
		h.setState("")
		return nil
	}
	guard, err := h.guard()
	if err != nil {
		return err
	}
	if !h.o.NoEndpoint {
		if err := h.listen(ctx, guard); err != nil {
			return err
		}
	}
	h.push(func(ctx context.Context) error {
		h.events.Stop(ctx)
		return nil
	})
	h.push(h.providers.Stop)
	if err := h.providers.Start(ctx); err != nil {
		return err
	}
	if err := h.admitOffers(ctx); err != nil {
		return err
	}
	if err := h.openEndpoint(guard); err != nil {
		return err
	}
	h.push(h.drain)                          // the first thing to be undone: calls in work end before their providers do
	h.push(func(ctx context.Context) error { // and before that no event is taken any more
		ctx, cancel := context.WithTimeout(ctx, eventsDrain)
		defer cancel()
		h.events.Close(ctx)
		return nil
	})
	h.events.Open()
	h.setState("")
	return nil
}

// drain takes no new calls and lets those in work end, within the configured bound.
func (h *Host) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.o.Config.Server.Drain)
	defer cancel()
	h.mu.Lock()
	s := h.httpd
	h.mu.Unlock()
	if s != nil {
		s.Drain()
	}
	return h.endpoint.Load().Close(ctx)
}

// Stop refuses new calls, lets open ones end within the configured bound, and undoes what Start did in reverse order. It
// waits, and is safe to call twice and before Start.
func (h *Host) Stop(ctx context.Context) error {
	h.mu.Lock()
	undo := h.undo
	h.undo, h.stopped = nil, true
	h.state = "stopping"
	h.mu.Unlock()
	var errs []error
	for _, fn := range slices.Backward(undo) {
		if err := fn(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (h *Host) push(fn func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.undo = append(h.undo, fn)
}

// Ready says whether the whole start has succeeded; if not, why.
func (h *Host) Ready() (bool, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state == "", h.state
}

// fit says whether calls can be let through: the start has succeeded, and they can be recorded.
func (h *Host) fit() (bool, string) {
	if ok, why := h.Ready(); !ok {
		return false, why
	}
	if h.store.Healthy() != nil {
		return false, "the ledger cannot be written"
	}
	return true, ""
}

func (h *Host) setState(s string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped {
		h.state = s
	}
}

func (h *Host) phase(pkg, phase string) {
	if h.o.OnPhase != nil {
		h.o.OnPhase(pkg, phase)
	}
}

// Addr is where the inbound HTTP server listens; "" if it does not.
func (h *Host) Addr() string {
	h.mu.Lock()
	s := h.httpd
	h.mu.Unlock()
	if s == nil || s.Addr() == nil {
		return ""
	}
	return s.Addr().String()
}

// Done is closed when the inbound HTTP server has ended by itself; nil, and so never, if there is none.
func (h *Host) Done() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.httpd == nil {
		return nil
	}
	return h.httpd.Done()
}

// guard knows the configured principals. Without any token nobody can be let in.
func (h *Host) guard() (*identity.Guard, error) {
	var credentials []identity.Credential
	for _, p := range h.o.Config.Principals {
		if secret, ok := p.Token(); ok {
			credentials = append(credentials, identity.Credential{Principal: p.Name, Token: identity.Token(secret.Reveal())})
		}
	}
	if len(credentials) == 0 {
		return nil, nil
	}
	tokens, err := identity.NewTokens(credentials)
	if err != nil {
		return nil, err
	}
	return identity.NewGuard(tokens.Authenticate, identity.NewThrottle(identity.ThrottleOptions{Now: h.o.Now})), nil
}

// listen opens the inbound HTTP server. Until the start has succeeded it answers 503.
func (h *Host) listen(ctx context.Context, guard *identity.Guard) error {
	c := h.o.Config
	perimeter, err := identity.NewPerimeter(identity.PerimeterOptions{AllowedHosts: c.Server.AllowedHosts, AllowedOrigins: c.Server.AllowedOrigins})
	if err != nil {
		return err
	}
	mount := map[string]http.Handler{}
	for _, e := range c.Exports {
		if exportServed(c, e.Name) { // R10.1: without a token the route does not exist
			mount[e.Path] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.endpoint.Load().Handler(e.Name).ServeHTTP(w, r) })
		}
	}
	// Its deadlines are those of connections, which run by the kernel's clock and not by ours.
	s, err := httpd.New(httpd.Options{Listen: c.Server.Listen, Mount: mount, Ready: h.Ready, Fit: h.fit, Guard: guard, Perimeter: perimeter, Logger: h.log})
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	h.httpd = s
	h.mu.Unlock()
	h.push(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, listenerCloses)
		defer cancel()
		if err := s.Stop(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return nil // no call is in work any more: what had to be cut were connections that said nothing
	})
	return nil
}

// listenerCloses bounds the end of the listener, when no call is in work any more.
const listenerCloses = 2 * time.Second
