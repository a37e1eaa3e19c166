package gate

import (
	"context"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/provider"
)

// Cleared is the ticket for one outbound call: it has passed every step up to the commit of its intent. Its zero value
// names nothing, and an Upstream refuses it.
type Cleared struct {
	id         call.ID
	generation provider.Generation
	tool       *call.Descriptor
	request    *call.Request
}

// CallID is the call's id; "" for the empty ticket.
func (c Cleared) CallID() call.ID { return c.id }

// Generation is the connection that the call goes to, and no other.
func (c Cleared) Generation() provider.Generation { return c.generation }

// Tool is the frozen descriptor of the tool; nil for the empty ticket.
func (c Cleared) Tool() *call.Descriptor { return c.tool }

// Export is the export through which the call came; "" for the operator's own.
func (c Cleared) Export() string { return c.request.Export }

// Arguments is the raw JSON object to send; nil: none.
func (c Cleared) Arguments() []byte { return c.request.Arguments }

// Meta is the caller's _meta to send along, without reserved keys; nil: none.
func (c Cleared) Meta() []byte { return c.request.Meta }

// Progress is where progress goes; nil: it is not wanted.
func (c Cleared) Progress() func(call.Progress) { return c.request.Progress }

// Log is where log messages of the call go; nil: they are not wanted.
func (c Cleared) Log() func(call.LogMessage) { return c.request.Log }

// LogLevel is the least severe level that the caller asked for; "" if none.
func (c Cleared) LogLevel() string { return c.request.LogLevel }

// Upstream places calls. internal/mcpwire implements it.
type Upstream interface {
	// Call places the call once and never again. It returns when an answer came, or when it is certain enough that none
	// will: the connection ended, the answer broke the protocol, or ctx ended. After ctx ends it tells the provider and
	// returns promptly. Progress and Log are not called after it has returned, and nothing of the ticket's bytes is looked at.
	// The answer's Delivery is measured.
	Call(ctx context.Context, c Cleared) call.Answer
}
