package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/drift"
	"github.com/ostiary/ostiary/internal/world"
)

// Reason is why a provider is DEGRADED, DISABLED or QUARANTINED (R6.5). Code is from a closed list; Text is for operators.
type Reason struct {
	Code ReasonCode `json:"code"`
	Text string     `json:"text,omitempty"`
}

// ReasonCode is a typed reason.
type ReasonCode string

// The reasons of R6.5.
const (
	ReasonBlocked        ReasonCode = "trust_blocked"   // DISABLED: its trust tier is BLOCKED
	ReasonStartFailed    ReasonCode = "start_failed"    // DEGRADED: it is optional and did not start (R2.4)
	ReasonConnectionLost ReasonCode = "connection_lost" // DEGRADED: its connection ended and is not re-opened (R2.7)
	// QUARANTINED has the reasons of admission; this is the one that a call finds: a tool is not the one that was expected
	// (R6.6).
	ReasonSchemaDrift ReasonCode = "schema_drift"
	ReasonStopped     ReasonCode = "stopped" // DISABLED: the gateway is stopping
)

// Provider is one admitted MCP server while the gateway runs. It is safe for concurrent use.
type Provider struct {
	Profile Profile
	Origin  call.Digest // of the profile: see [Profile.Origin]

	builtIn bool // a part of the gateway: nothing of it changes

	hurry chan struct{}                   // capacity 1: a call waits for a change to be looked at
	gone  atomic.Pointer[map[string]bool] // tools that the newest listing lacks, by raw name; nil: none

	mu      sync.Mutex // guards what follows
	state   State
	reason  Reason
	link    Link
	catalog *Catalog
	gen     Generation
	phase   Phase
	since   time.Time
	changes []drift.Change // what a later listing showed; the catalog goes on as it was frozen
	restart bool
	looked  uint64    // how many announced changes the newest listing came after
	listed  time.Time // when it was begun
	lookErr error     // why it could not be read; nil: it could
	// compared is the digest of the listing that was last held against what is admitted.
	compared [32]byte
	settled  chan struct{} // closed when the next listing has been looked at
}

// Status is a provider as operators see it.
type Status struct {
	Package         string         `json:"provider_id"`
	Kind            string         `json:"provider_kind"`
	Transport       string         `json:"transport_kind"`
	Trust           string         `json:"trust_tier"`
	Required        bool           `json:"required"`
	State           State          `json:"state"`
	Available       bool           `json:"available"` // calls can be let through
	Reason          *Reason        `json:"reason,omitempty"`
	Phase           string         `json:"phase,omitempty"` // while it is DISCOVERING
	Since           time.Time      `json:"since"`
	Generation      string         `json:"generation,omitempty"`
	Revision        string         `json:"protocol_revision,omitempty"` // negotiated, never a configured one (R1.3)
	ToolContract    bool           `json:"tool_contract,omitempty"`     // tool-contract v1 was negotiated (R4.1)
	WorldEvents     bool           `json:"world_events,omitempty"`      // its events are taken (R5.1, R5.4)
	ServerName      string         `json:"server_name,omitempty"`       // the server's own words, for display only
	ServerVersion   string         `json:"server_version,omitempty"`
	Counts          *Counts        `json:"tools,omitempty"`
	CatalogDigest   string         `json:"catalog_digest,omitempty"`
	Warnings        []ToolWarning  `json:"warnings,omitempty"`
	RestartRequired bool           `json:"restart_required"`
	Held            int            `json:"held,omitempty"` // tools that are not used until somebody has looked; known to the gateway alone
	Changes         []drift.Change `json:"changes,omitempty"`
	Link            *LinkStats     `json:"connection,omitempty"`
	// Events counts what came of its events; nil: there were none. It is not this package that knows.
	Events *world.IntakeStats `json:"events,omitempty"`
}

// Status reads everything at one moment.
func (p *Provider) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{
		Package: p.Profile.Package, Kind: Kind, Transport: p.Profile.Transport.String(), Trust: p.Profile.Trust.String(),
		Required: p.Profile.Required, State: p.state, Since: p.since, RestartRequired: p.restart, Changes: p.changes,
		Available: p.callableLocked(),
	}
	if p.reason.Code != "" {
		r := p.reason
		s.Reason = &r
	}
	if p.state == Discovering {
		s.Phase = p.phase.String()
	}
	if c := p.catalog; c != nil {
		n := c.Negotiated
		s.Generation, s.Revision, s.ServerName, s.ServerVersion = c.Generation.String(), n.Revision, n.ServerName, n.ServerVersion
		s.ToolContract, s.WorldEvents = n.ToolContract, n.WorldEvents
		counts := c.Counts
		s.Counts, s.CatalogDigest, s.Warnings = &counts, c.Digest.String(), c.Warnings
	}
	if p.link != nil {
		st := p.link.Stats()
		s.Link = &st
	}
	return s
}

// Route says over which connection calls go now; ok is false when none may, and reason says why.
func (p *Provider) Route() (gen Generation, reason Reason, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gen, p.reason, p.callableLocked()
}

func (p *Provider) callableLocked() bool {
	if p.builtIn { // there is no connection that could end
		return true
	}
	if !p.state.Active() || p.link == nil {
		return false
	}
	select {
	case <-p.link.Done():
		return false
	default:
		return true
	}
}

// Settle waits until a call that is on its way at the given time knows what the server offers: every change that was
// announced so far has been looked at, and the newest listing is no older than the profile says, for a server may change
// without a word (R6.6, A-04). It costs a lock if that is so, and has a listing read at once if not; calls that wait share
// it. A server that goes on changing does not hold a call up for longer than two listings may take.
func (p *Provider) Settle(ctx context.Context, at time.Time) error {
	if p.builtIn {
		return nil
	}
	for tries := 0; ; tries++ {
		p.mu.Lock()
		link, looked, listed, err, settled := p.link, p.looked, p.listed, p.lookErr, p.settled
		p.mu.Unlock()
		switch {
		case link == nil:
			return errors.New("there is no connection")
		case err != nil && tries > 0:
			return fmt.Errorf("the tools could not be listed again: %w", err)
		case err == nil && link.Changes() == looked && !listed.Before(at.Add(-p.Profile.Relist)):
			return nil
		}
		if tries == 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 2*p.Profile.Limits.Connect)
			defer cancel()
		}
		select {
		case p.hurry <- struct{}{}:
		default:
		}
		select {
		case <-settled:
		case <-link.Done():
			return errors.New("the connection has ended")
		case <-ctx.Done():
			return fmt.Errorf("the tools are being listed again: %w", ctx.Err())
		}
	}
}

// settle ends the wait for a listing that was begun then, after so many announced changes.
func (p *Provider) settle(changes uint64, began time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looked, p.listed, p.lookErr = changes, began, err
	close(p.settled)
	p.settled = make(chan struct{})
}

// Gone says that the newest listing lacks a tool of the frozen catalog.
func (p *Provider) Gone(rawName string) bool {
	m := p.gone.Load()
	return m != nil && (*m)[rawName]
}

// Instructions are what the server says of itself; they are its own words.
func (p *Provider) Instructions() string {
	if c := p.Catalog(); c != nil {
		return c.Negotiated.Instructions
	}
	return ""
}

// ToolContract says that tool-contract v1 holds on its connection.
func (p *Provider) ToolContract() bool {
	c := p.Catalog()
	return c != nil && c.Negotiated.ToolContract
}

// Readmit ends a quarantine. The provider is as good as its connection.
func (p *Provider) Readmit(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != Quarantined {
		return false
	}
	p.setLocked(Ready, Reason{}, now)
	if !p.callableLocked() {
		p.setLocked(Degraded, Reason{ReasonConnectionLost, "the connection ended"}, now)
	}
	return true
}

// Quarantine stops all calls of the provider until an operator has looked (R6.6). It says whether that is news.
func (p *Provider) Quarantine(code ReasonCode, text string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == Quarantined || p.state == Removed {
		return false
	}
	p.setLocked(Quarantined, Reason{code, text}, now)
	return true
}

func (p *Provider) set(s State, r Reason, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setLocked(s, r, now)
}

func (p *Provider) setLocked(s State, r Reason, now time.Time) {
	p.state, p.reason, p.since = s, r, now
}

func (p *Provider) enter(ph Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = ph
}

// close ends the connection, if there is one, and waits for it.
func (p *Provider) close(ctx context.Context) error {
	p.mu.Lock()
	link := p.link
	p.mu.Unlock()
	if link == nil {
		return nil
	}
	return link.Close(ctx)
}

// Catalog is the frozen catalog; nil before the provider has started.
func (p *Provider) Catalog() *Catalog {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.catalog
}
