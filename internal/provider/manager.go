package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ostiary/ostiary/call"
)

// builtInSession owns the attachments of gateway-wide providers.
const builtInSession = "gateway"

// Event is something that happened to a provider and belongs into the ledger.
type Event struct {
	Kind     EventKind
	Provider *Provider
	Status   Status
	Err      error // of EventFailed
}

// EventKind says what happened.
type EventKind string

// The events of a provider.
const (
	EventStarted EventKind = "started"
	EventFailed  EventKind = "failed"
	EventState   EventKind = "state"
	EventChanged EventKind = "changed" // R2.6
)

// ManagerOptions configure a [Manager].
type ManagerOptions struct {
	Connector Connector
	Profiles  []Profile
	Registry  *Registry
	Logger    *slog.Logger
	Now       func() time.Time

	// OnEvent is told what happened, in order for one provider; it may be called from several goroutines at once.
	OnEvent func(Event)
	// OnListed is told of what a later listing offers of the allowed tools, before calls that wait for it go on. One that is
	// the same as the one before is told of only if there was an error. nil: nobody is.
	OnListed func(p *Provider, offered []*call.Descriptor) error
	// OnPhase is told as a provider's start moves on, for progress on a terminal; nil: nobody is.
	OnPhase func(pkg string, phase Phase)

	// RelistEvery is the shortest time between two listings that list_changed causes; 0: 5 s (F-27).
	RelistEvery time.Duration
	// StartConcurrency is how many providers start at a time; 0: 16.
	StartConcurrency int
}

// Manager starts and watches all providers of one gateway.
type Manager struct {
	o         ManagerOptions
	providers []*Provider // in configuration order

	stop context.CancelFunc // ends the watchers
	wg   sync.WaitGroup     // the watchers

	startMu sync.Mutex  // guards started
	started []*Provider // connected, in the order in which they got there

	restageMu sync.Mutex // one at a time
}

// NewManager makes a manager; nothing is started.
func NewManager(o ManagerOptions) (*Manager, error) {
	if o.Connector == nil || o.Registry == nil || o.Logger == nil || o.Now == nil || o.OnEvent == nil {
		return nil, errors.New("provider manager: Connector, Registry, Logger, Now and OnEvent are needed")
	}
	if o.RelistEvery == 0 {
		o.RelistEvery = 5 * time.Second
	}
	if o.StartConcurrency == 0 {
		o.StartConcurrency = 16
	}
	m := &Manager{o: o}
	seen := map[string]bool{}
	for _, pr := range o.Profiles {
		if seen[pr.Package] {
			return nil, fmt.Errorf("provider manager: two profiles for %s", pr.Package)
		}
		seen[pr.Package] = true
		m.providers = append(m.providers, &Provider{Profile: pr, Origin: pr.Origin(), since: o.Now(),
			hurry: make(chan struct{}, 1), settled: make(chan struct{})})
	}
	return m, nil
}

// Providers lists all providers in configuration order.
func (m *Manager) Providers() []*Provider { return m.providers }

// Start starts every provider, each in one transaction under one deadline of its own (R2.1). If a required one fails, what
// was connected is closed in reverse order and the error names each that failed (R2.4). If all is well the registry holds
// every catalog (R2.5).
func (m *Manager) Start(ctx context.Context) error {
	slots := make(chan struct{}, m.o.StartConcurrency)
	errs := make([]error, len(m.providers))
	startCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for i, p := range m.providers {
		if p.Profile.Trust == Blocked { // kept, never invoked (R6.2)
			p.set(Disabled, Reason{ReasonBlocked, "its trust tier is BLOCKED"}, m.o.Now())
			m.event(EventState, p, nil)
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = m.start(startCtx, p)
			if errs[i] != nil && p.Profile.Required {
				cancel() // the start as a whole has failed: the others need not go on
			}
		})
	}
	wg.Wait()

	var fatal []error
	for i, err := range errs {
		if err == nil {
			continue
		}
		p := m.providers[i]
		if p.Profile.Required && (ctx.Err() != nil || !errors.Is(err, context.Canceled)) {
			fatal = append(fatal, err)
		}
	}
	if len(fatal) > 0 {
		return errors.Join(append(fatal, m.closeAll(context.WithoutCancel(ctx)))...)
	}
	if err := m.publish(); err != nil {
		return errors.Join(err, m.closeAll(context.WithoutCancel(ctx)))
	}
	watchCtx, stop := context.WithCancel(context.WithoutCancel(ctx)) // the watchers outlive the start; Stop ends them
	m.stop = stop
	for _, p := range m.started {
		m.wg.Go(func() { m.watch(watchCtx, p) })
	}
	return nil
}

// start is the start transaction of one provider: connect, negotiate, listen, list, validate.
func (m *Manager) start(ctx context.Context, p *Provider) error {
	limit := p.Profile.Limits.Connect
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within timeout_seconds = %v", limit.Seconds()))
	defer cancel()
	p.set(Discovering, Reason{}, m.o.Now())
	gen := Generation{Attachment: builtInSession + "/" + p.Profile.Package, Number: 1}
	enter := func(ph Phase) {
		p.enter(ph)
		if m.o.OnPhase != nil {
			m.o.OnPhase(p.Profile.Package, ph)
		}
	}
	enter(PhaseConnect)
	link, err := m.o.Connector.Connect(ctx, gen, p.Profile, enter)
	if err != nil {
		return m.failed(ctx, p, err)
	}
	before, began := link.Changes(), m.o.Now()
	var listing Listing
	catalog, err := func() (_ *Catalog, err error) {
		enter(PhaseList)
		listing, err = link.List(ctx)
		if err != nil {
			return nil, err
		}
		enter(PhaseValidate)
		return Freeze(&p.Profile, gen, link.Negotiated(), listing)
	}()
	if err != nil {
		closeCtx, done := context.WithTimeout(context.WithoutCancel(ctx), p.Profile.Limits.Close)
		defer done()
		return m.failed(ctx, p, errors.Join(err, link.Close(closeCtx)))
	}
	descriptors := catalog.descriptors()
	link.SetTools(descriptors)
	p.mu.Lock()
	for _, t := range catalog.Tools {
		t.Provider = p
	}
	p.link, p.catalog, p.gen, p.looked, p.listed, p.compared = link, catalog, gen, before, began, listing.Digest()
	p.setLocked(Ready, Reason{}, m.o.Now())
	p.mu.Unlock()
	m.startMu.Lock()
	m.started = append(m.started, p)
	m.startMu.Unlock()
	m.event(EventStarted, p, nil)
	return nil
}

// publish gives the registry all catalogs.
func (m *Manager) publish() error {
	var catalogs []*Catalog
	for _, p := range m.providers {
		if c := p.Catalog(); c != nil {
			catalogs = append(catalogs, c)
		}
	}
	return m.o.Registry.publish(catalogs)
}

// Restage lists a provider's tools again and freezes them as a new generation over the same connection: what an operator
// has admitted of a change is then what is called. Nothing changes if it fails.
func (m *Manager) Restage(ctx context.Context, pkg string) error {
	m.restageMu.Lock()
	defer m.restageMu.Unlock()
	at := slices.IndexFunc(m.providers, func(p *Provider) bool { return p.Profile.Package == pkg })
	if at < 0 {
		return fmt.Errorf("restage: there is no provider %s", pkg)
	}
	p := m.providers[at]
	p.mu.Lock()
	link, gen := p.link, p.gen
	p.mu.Unlock()
	if link == nil {
		return fmt.Errorf("restage provider %s: there is no connection", pkg)
	}
	ctx, cancel := context.WithTimeout(ctx, p.Profile.Limits.Connect)
	defer cancel()
	before, began := link.Changes(), m.o.Now()
	listing, err := link.List(ctx)
	if err != nil {
		return fmt.Errorf("restage provider %s: %w", pkg, err)
	}
	gen.Number++
	catalog, err := Freeze(&p.Profile, gen, link.Negotiated(), listing)
	if err != nil {
		return fmt.Errorf("restage provider %s: %w", pkg, err)
	}
	for _, t := range catalog.Tools {
		t.Provider = p
	}
	if err := link.Renew(gen, catalog.descriptors()); err != nil {
		return fmt.Errorf("restage provider %s: %w", pkg, err)
	}
	p.mu.Lock()
	p.catalog, p.gen, p.changes, p.restart, p.compared = catalog, gen, nil, false, listing.Digest()
	p.mu.Unlock()
	p.gone.Store(nil)
	p.settle(before, began, nil)
	if err := m.publish(); err != nil {
		return err
	}
	m.event(EventStarted, p, nil)
	return nil
}

// failed turns any failure of a start into the report that R2.8 asks for.
func (m *Manager) failed(ctx context.Context, p *Provider, err error) error {
	p.mu.Lock()
	phase := p.phase
	p.mu.Unlock()
	if errors.Is(err, context.DeadlineExceeded) {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = fmt.Errorf("%w (%w)", cause, err)
		}
	}
	se, ok := errors.AsType[*StartError](err)
	if !ok {
		se = &StartError{Provider: p.Profile.Package, Phase: phase, Cause: err}
	}
	if se.Provider == "" {
		se.Provider = p.Profile.Package
	}
	if se.Advice == "" {
		se.Advice = advice(se, &p.Profile)
	}
	p.set(Degraded, Reason{ReasonStartFailed, se.Error()}, m.o.Now())
	m.event(EventFailed, p, se)
	return se
}

func advice(e *StartError, p *Profile) string {
	target := "the server at its url"
	if p.Transport == StdioCommand && p.Stdio != nil {
		target = fmt.Sprintf("the command %q", p.Stdio.Command)
	}
	switch {
	case errors.Is(e.Cause, context.DeadlineExceeded):
		return "check that " + target + " answers MCP requests, or raise timeout_seconds"
	case e.Phase == PhaseConnect:
		return "check that " + target + " exists and can be started"
	case e.Phase == PhaseNegotiate:
		return "check that " + target + " is an MCP server; its last words are in the log"
	case e.Phase == PhaseValidate:
		return "correct allowed_tools, or take the tool out of it"
	default:
		return "see the log for what " + target + " said"
	}
}

func (c *Catalog) descriptors() []*call.Descriptor {
	out := make([]*call.Descriptor, len(c.Tools))
	for i, t := range c.Tools {
		out[i] = t.Descriptor
	}
	return out
}

func (m *Manager) event(kind EventKind, p *Provider, err error) {
	m.o.OnEvent(Event{Kind: kind, Provider: p, Status: p.Status(), Err: err})
}

// Stop ends the watchers and closes all connections in reverse order of their start. It waits, each within the bound of
// its profile, and is safe before Start and to call twice.
func (m *Manager) Stop(ctx context.Context) error {
	if m.stop != nil {
		m.stop()
	}
	m.wg.Wait()
	return m.closeAll(ctx)
}

func (m *Manager) closeAll(ctx context.Context) error {
	m.startMu.Lock()
	started := m.started
	m.started = nil
	m.startMu.Unlock()
	var errs []error
	for i := len(started) - 1; i >= 0; i-- {
		p := started[i]
		p.set(Disabled, Reason{ReasonStopped, "the gateway is stopping"}, m.o.Now())
		closeCtx, done := context.WithTimeout(ctx, 2*p.Profile.Limits.Close)
		if err := p.close(closeCtx); err != nil {
			errs = append(errs, fmt.Errorf("close provider %s: %w", p.Profile.Package, err))
		}
		done()
		m.event(EventState, p, nil)
	}
	return errors.Join(errs...)
}
