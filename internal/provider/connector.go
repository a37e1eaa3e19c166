package provider

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/ostiary/ostiary/call"
)

// Generation names one realisation of one provider connection. It is never reused.
type Generation struct {
	Attachment string // a session's binding to a provider; gateway-wide providers are attachments of the built-in session
	Number     uint64
}

func (g Generation) String() string { return fmt.Sprintf("%s#%d", g.Attachment, g.Number) }

// Phase is where in its start a provider is (R2.8).
type Phase uint8

// The phases of R2.8, in order.
const (
	PhaseConnect Phase = iota
	PhaseNegotiate
	PhaseListen
	PhaseList
	PhaseValidate
)

var phaseNames = [...]string{"connect", "negotiate", "listen", "list", "validate"}

func (p Phase) String() string { return phaseNames[min(int(p), len(phaseNames)-1)] }

// StartError says why a provider did not start (R2.8). Its text leaves the advice out, for an edge to show in its own way.
type StartError struct {
	Provider string
	Phase    Phase
	Cause    error
	Advice   string // what to do, one sentence
}

func (e *StartError) Error() string {
	return fmt.Sprintf("start provider %s: %s: %v", e.Provider, e.Phase, e.Cause)
}

func (e *StartError) Unwrap() error { return e.Cause }

// Negotiated is what both sides agreed on. ServerName, ServerVersion and Instructions are the server's own words: for
// display, never a ground for a decision (R1.6).
type Negotiated struct {
	Revision      string
	Modern        bool // per-request metadata (2026-07-28) instead of a handshake
	ServerName    string
	ServerVersion string
	Instructions  string
	Capabilities  []byte // the raw JSON object of the server's capabilities
	ToolChanges   bool   // the server said that it announces changes of its tool list
	ToolContract  bool   // tool-contract v1 holds (R4.1)
	WorldEvents   bool   // the server's events are taken: world-events v1 holds (R5.1), or those of the handshake era (R5.4)
}

// Listing is one complete, stable tools/list: no change was announced while its pages were read (R2.2).
type Listing struct {
	Tools [][]byte // each tool object, byte for byte, in the server's order
	Pages int
	Bytes int64
	// Warnings name tools that the wire had to leave out, such as one with an illegal x-mcp-header (R1.7). Bounded.
	Warnings []ToolWarning
}

// Digest tells listings apart, byte for byte.
func (l *Listing) Digest() (sum [32]byte) {
	h := sha256.New()
	var n [8]byte
	for _, t := range l.Tools {
		binary.BigEndian.PutUint64(n[:], uint64(len(t)))
		h.Write(n[:])
		h.Write(t)
	}
	return [32]byte(h.Sum(sum[:0]))
}

// ToolWarning says why a tool is not in a catalog, or what is odd about it.
type ToolWarning struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// Connector opens connections. internal/mcpwire implements it. Connect may be called concurrently for different
// generations. It reports the phases that it passes (connect, negotiate, listen) as it enters them. An error leaves
// nothing behind: no process, no socket, no goroutine. It returns at the latest shortly after ctx ends, whatever the
// server does.
type Connector interface {
	Connect(ctx context.Context, gen Generation, p Profile, enter func(Phase)) (Link, error)
}

// Link is one live connection, seen from the provider package. Its methods may be called concurrently.
type Link interface {
	Negotiated() Negotiated

	// List reads all pages of tools/list. It listens for changes already; a change that is announced meanwhile voids the
	// listing and List begins again, until ctx ends.
	List(ctx context.Context) (Listing, error)

	// SetTools tells the link which tools may be called and what it needs to know of them (header annotations). It is
	// called once, when the first catalog is frozen.
	SetTools(tools []*call.Descriptor)

	// Renew makes gen another name of the same connection and replaces the tools that may be called on it. Calls that were
	// cleared for an earlier generation still go out.
	Renew(gen Generation, tools []*call.Descriptor) error

	// Changes counts the announcements so far. One that came before an answer has been counted when the answer is handed on.
	Changes() uint64

	// Changed is signalled (capacity 1, coalesced) when the server announces that its tool list changed.
	Changed() <-chan struct{}

	// Done is closed when the connection has ended for good; Err then says why. A link never re-opens itself (R2.7).
	Done() <-chan struct{}
	Err() error

	// Stats are counters for operators.
	Stats() LinkStats

	// Close ends the connection within its bound, whatever calls are open, and waits for what it started. It is safe to
	// call twice.
	Close(ctx context.Context) error
}

// LinkStats are counters of one connection, for operators.
type LinkStats struct {
	PID           int      `json:"pid,omitempty"`
	Listening     bool     `json:"listening"`        // changes are being heard (acknowledged, or pushed by a session)
	StdoutNoise   int64    `json:"stdout_noise"`     // lines on stdout that were no MCP message
	Violations    int64    `json:"violations"`       // messages that broke the protocol and were dropped
	LateAnswers   int64    `json:"late_answers"`     // answers to calls that had ended
	Notifications int64    `json:"notifications"`    // received in all
	StderrTail    []string `json:"stderr,omitempty"` // last lines, scrubbed, control characters made visible
	OpenCalls     int      `json:"open_calls"`
	LastViolation string   `json:"last_violation,omitempty"`
	Exit          string   `json:"exit,omitempty"`       // how the process ended; "" while it lives
	Stopped       string   `json:"stopped_by,omitempty"` // what that took: stdin, TERM or KILL; "" if it ended by itself
}
