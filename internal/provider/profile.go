package provider

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ostiary/ostiary/call"
)

// Kind is the kind of a provider (R6.1). There is one.
const Kind = "MCP_TOOL_PROVIDER"

// TransportKind says how a provider is reached (R6.1).
type TransportKind uint8

// The transports of R6.1. The zero value is none, so that a profile without one fails.
const (
	TransportNone TransportKind = iota
	StdioCommand
	StreamableHTTP
	SandboxStdio
)

var transportNames = [...]string{"none", "stdio_command", "streamable_http", "sandbox_stdio"}

func (k TransportKind) String() string {
	if int(k) < len(transportNames) {
		return transportNames[k]
	}
	return fmt.Sprintf("invalid(%d)", k)
}

// TrustTier is how far a provider is trusted (R6.2). The zero value is none: a missing tier fails closed.
type TrustTier uint8

// The trust tiers of R6.2.
const (
	TrustNone TrustTier = iota
	ControlledLocal
	UserAddedReviewed
	OrgManaged
	Blocked
)

var trustNames = [...]string{"none", "CONTROLLED_LOCAL", "USER_ADDED_REVIEWED", "ORG_MANAGED", "BLOCKED"}

func (t TrustTier) String() string {
	if int(t) < len(trustNames) {
		return trustNames[t]
	}
	return fmt.Sprintf("invalid(%d)", t)
}

// ParseTrustTier reads a tier as configuration writes it.
func ParseTrustTier(s string) (TrustTier, error) {
	for i, n := range trustNames[1:] {
		if n == s {
			return TrustTier(i + 1), nil
		}
	}
	return TrustNone, fmt.Errorf("trust tier %q: expected CONTROLLED_LOCAL, USER_ADDED_REVIEWED, ORG_MANAGED or BLOCKED", s)
}

// AllowedTool is one entry of allowed_tools: a provider's raw name, and the alias that stands for it in tool ids when the
// raw name does not fit (R2.3).
type AllowedTool struct {
	Raw   string
	Alias string // "" : the raw name itself
}

// Name is what the tool is called in its tool id.
func (a AllowedTool) Name() string {
	if a.Alias != "" {
		return a.Alias
	}
	return a.Raw
}

// Profile is one provider as it was configured, validated and free of secrets.
type Profile struct {
	Package   string // provider_id
	Transport TransportKind
	Trust     TrustTier
	Required  bool // false: a failed start is reported as UNAVAILABLE, not fatal (R2.4)

	Stdio *Stdio // for StdioCommand
	HTTP  *HTTP  // for StreamableHTTP

	// Protocol is "auto", "2026-07-28" or "2025-11-25" (R1.2).
	Protocol string

	AllowedTools []AllowedTool
	// Effects gives the effect class of a tool by its Name; one that is missing is EXTERNAL_SIDE_EFFECT (R7.2).
	Effects map[string]call.EffectClass
	// ExpectedDigests gives the schema digest that a tool must have, by its Name (R6.6).
	ExpectedDigests map[string]call.Digest
	// Content lists the content kinds that a result may hold (R3.7); nil: text, image, audio, resource, resource_link,
	// and any kind that a later revision adds.
	Content []string

	// WorldEvents offers the world-events extension to the server (R5.1). LegacyEvents takes log messages of the logger
	// aurora/event for events if the server is one of the handshake era (R5.4). Neither is possible over HTTP (R5.5).
	WorldEvents  bool
	LegacyEvents bool

	// NullIsAbsent checks an optional argument that is null as if it had been left out. It is sent as it came.
	NullIsAbsent bool

	// Relist is how old the newest listing may be when a call is let through; an older one is read again first. 0:
	// before every call.
	Relist time.Duration

	// RelaxedLedger lets READ_ONLY calls go out before their intent is on disk.
	RelaxedLedger bool

	Limits Limits
}

// Origin is a digest of how the provider is reached: command line, environment, address and headers as the configuration
// has them. A server behind the same name that is started or reached otherwise is not the one that was admitted: a
// value can load other code. What is copied from elsewhere, where secrets are, counts by its name alone.
func (p *Profile) Origin() call.Digest {
	sum := sha256.New()
	list := func(parts ...string) { // counts and lengths come first, so that no two profiles are written alike
		fmt.Fprintf(sum, "%d:", len(parts)) // a hash takes everything
		for _, s := range parts {
			fmt.Fprintf(sum, "%d:%s", len(s), s)
		}
	}
	list(p.Transport.String())
	if s := p.Stdio; s != nil {
		list(s.Command, s.Dir)
		list(s.Args...)
		list(pairs(s.Env)...)
		list(slices.Sorted(slices.Values(s.EnvFrom))...)
	}
	if h := p.HTTP; h != nil {
		list(h.URL)
		list(pairs(h.Headers)...)
	}
	return call.Digest(sum.Sum(nil))
}

// pairs are names and values, in the order of the names.
func pairs(m map[string]string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, name, m[name])
	}
	return out
}

// Stdio is how a child process is started (R1.12). Nothing passes through a shell.
type Stdio struct {
	Command string
	Args    []string
	Dir     string            // "" : the gateway's own
	Env     map[string]string // literal values
	EnvFrom []string          // names to copy from the gateway's environment
}

// HTTP is how a remote server is reached (R1.9, R1.10).
type HTTP struct {
	URL             string
	Headers         map[string]string
	Credential      func() (string, error) // the bearer token, fetched when it is needed and never kept; nil: none
	AllowRedirects  bool
	AllowPrivateNet bool // the host may resolve to private addresses; loopback literals are always allowed over http
}

// Limits are the bounds of R1.11. [DefaultLimits] fills what is zero.
type Limits struct {
	Connect        time.Duration // the whole start transaction: timeout_seconds
	Call           time.Duration // one call, progress or not
	Message        int64         // bytes of one message from the provider
	Pages          int           // of one tools/list
	Tools          int           // of one provider
	ResponseHeader int64         // bytes of an HTTP response header
	Concurrent     int           // calls of one provider at a time
	Close          time.Duration // stdin close, TERM, KILL together
}

// DefaultLimits are the documented defaults.
var DefaultLimits = Limits{
	Connect: 30 * time.Second, Call: 60 * time.Second, Message: 16 << 20, Pages: 1024, Tools: 10_000,
	ResponseHeader: 64 << 10, Concurrent: 256, Close: 5 * time.Second,
}
