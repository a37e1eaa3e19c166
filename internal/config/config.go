package config

import (
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/world"
)

// Config is a whole configuration, checked: every reference in it resolves and every bound holds.
type Config struct {
	File       string
	Server     Server
	Principals []Principal // in the file's order; server.token_env comes first, as "default"
	Providers  []Provider  // in the file's order, which is the order of the start
	Exports    []Export    // in the file's order
	Rules      []policy.Rule
	Approval   Approval
	Budget     Budget
	Evidence   Evidence
	Vault      Vault
	World      World
	Ledger     Ledger

	// Policy is the providers' tool sets and all rules, compiled and held against the tools, principals and exports that
	// there are (R7.1 to R7.3).
	Policy *policy.Policy

	// Warnings are doubts that stop nothing, such as a literal that looks like a secret.
	Warnings Faults

	settings []Setting
}

// Server is the inbound side.
type Server struct {
	Listen         string
	Data           string // "": the caller's default
	AllowedHosts   []string
	AllowedOrigins []string
	MaxBody        int64
	MaxConcurrent  int
	MaxSessions    int
	SessionIdle    time.Duration
	Drain          time.Duration
	Instructions   string
}

// Principal is a caller who shows a token.
type Principal struct {
	Name     string
	TokenEnv string
	Exports  []string // names of exports
	token    string
	line     int
}

// Token gives the bearer token; false if its variable is not set, in which case the principal cannot call.
func (p Principal) Token() (Secret, bool) { return NewSecret(p.token), p.token != "" }

// Provider is one external MCP server.
type Provider struct {
	Profile       provider.Profile
	CredentialEnv string // the variable behind Profile.HTTP.Credential; "" if there is none
	// CredentialEntry is the vault's entry that holds the bearer token; "" if there is none. Profile.HTTP.Credential is then
	// nil: who opens the vault sets it.
	CredentialEntry string
	Admission       Admission
	Restart         Restart
	Events          Events
	EventScopes     []world.ScopePattern // what its events may speak of; nil: every scope but others' own
	Interaction     Interaction
	Policy          Policy
	Firewall        Firewall
}

// Admission says who admits tools as they were first found.
type Admission string

// The admissions.
const (
	AdmitExplicit Admission = "explicit"
	AdmitFirstUse Admission = "first_use"
)

// Restart says what happens when a connection ends (R2.7).
type Restart string

// The restarts.
const (
	RestartNever     Restart = "never"
	RestartOnFailure Restart = "on-failure"
)

// Events says whether a provider's events become facts (R5).
type Events string

// The sources of events.
const (
	EventsOff    Events = "off"
	EventsWorld  Events = "world_events"
	EventsLegacy Events = "legacy_aurora"
)

// Interaction says what becomes of a tool's question (R3.8).
type Interaction string

// The interactions.
const (
	InteractionRefuse  Interaction = "refuse"
	InteractionForward Interaction = "forward"
)

// Policy is the one policy of a provider (R7.1).
type Policy struct {
	Available bool
	Approval  policy.Approval
	Frontier  bool                  // calls must state the frontier that they are based on
	Elicit    bool                  // the person behind the client that makes a call may agree to it (R7.6)
	Tools     map[string]ToolPolicy // the overrides alone, by the tool's name
}

// ToolPolicy is what holds for one tool, its provider's policy and its own override taken together.
type ToolPolicy struct {
	Effect       call.EffectClass
	Available    bool
	Approval     policy.Approval
	Frontier     bool           // as in the policy
	Labels       *policy.Labels // nil: what its effect class and its provider's trust tier imply
	SchemaDigest call.Digest    // zero: none is expected
}

// Tool is what holds for the tool of that name (its raw name or alias).
func (p Policy) Tool(name string) ToolPolicy {
	if t, ok := p.Tools[name]; ok {
		return t
	}
	return ToolPolicy{Available: p.Available, Approval: p.Approval, Frontier: p.Frontier}
}

// Export is a set of tools shown as one MCP server (R10.8).
type Export struct {
	Name         string
	Path         string
	Naming       Naming
	Tools        []ExportedTool // in the file's order
	Instructions string         // its own, else the server's
	World        world.Readable // what of the world can be read through it; nil: nothing
	line         int
}

// Naming is the style of names towards clients (R10.7).
type Naming string

// The namings.
const (
	NamingID   Naming = "id"
	NamingFlat Naming = "flat"
	NamingRaw  Naming = "raw"
)

// ExportedTool is one tool of an export under the name that its clients see. Names are unique within an export.
type ExportedTool struct {
	ID   call.ToolID
	Name string
}

// Firewall is what findings do at one provider (R8.4). The embedded rules are those of the provider as a whole; Content is
// that of its profile.
type Firewall struct {
	firewall.Rules
	Tools map[string]firewall.Rules // the tools that differ, by their name, the provider's rules and their own taken together
}

// Tool is what holds for the tool of that name (its raw name or alias).
func (f Firewall) Tool(name string) firewall.Rules {
	if r, ok := f.Tools[name]; ok {
		return r
	}
	return f.Rules
}

// Approval is how waiting calls are treated.
type Approval struct {
	Hold    time.Duration // how long a call is held open
	Expiry  time.Duration // how long a request waits, and how long a grant for one call can be spent
	Session time.Duration // how long a grant for a session holds
	Elicit  bool          // the person behind the client that makes a call may agree to it, unless a provider's policy says otherwise (R7.6)
}

// Budget bounds what callers may do in a while: a principal over all its sessions, and each session.
type Budget struct{ Principal, Session policy.Limits }

// Evidence is how long, and how much of, what the firewall held is kept.
type Evidence struct {
	Retention  time.Duration
	MaxBytes   int64 // of all payloads together
	MaxPayload int64 // bytes of one
}

// Vault says where the vault's key is looked for: the variable, then the file, then the keyring.
type Vault struct {
	KeyEnv  string
	KeyFile string // "": vault.key in the data directory
	Keyring bool   // whether the keyring of the operating system is one of the places
}

// World is the journal of facts.
type World struct {
	FrontierRequired bool // where a provider's policy does not say
}

// Ledger is how records are written, and how long their content is kept.
type Ledger struct {
	RelaxedDelay time.Duration
	Keep         time.Duration // 0: for ever
}

// Provider finds a provider by its package.
func (c *Config) Provider(pkg string) (Provider, bool) {
	for _, p := range c.Providers {
		if p.Profile.Package == pkg {
			return p, true
		}
	}
	return Provider{}, false
}

// Export finds an export by its name.
func (c *Config) Export(name string) (Export, bool) {
	for _, e := range c.Exports {
		if e.Name == name {
			return e, true
		}
	}
	return Export{}, false
}
