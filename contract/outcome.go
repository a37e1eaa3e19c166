package contract

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What a handler's error says of the effect of its call. Wrap one of them: fmt.Errorf("post: %w (%w)", err, ErrUnknown).
// Where both are in one error, the effect is unknown.
var (
	// ErrUnknown says that the effect may or may not have happened.
	ErrUnknown = errors.New("whether it had an effect is unknown")
	// ErrNoEffect says that it is certain that there was none, or that it has been undone completely.
	ErrNoEffect = errors.New("nothing was changed")
)

// Unknown is the result of a call that may have had its effect: the answer did not come, the connection broke, the time
// was over. Each text is one block for the model. Whoever gets it does not try again on its own.
func Unknown(text ...string) *mcp.CallToolResult { return outcome(ErrUnknown, text) }

// Failed is the result of a call that certainly changed nothing, or whose change has been undone completely. It stays
// what it is after [Begun].
func Failed(text ...string) *mcp.CallToolResult { return outcome(ErrNoEffect, text) }

func outcome(err error, text []string) *mcp.CallToolResult {
	r := &mcp.CallToolResult{}
	for _, t := range text {
		r.Content = append(r.Content, &mcp.TextContent{Text: t})
	}
	if len(text) > 0 {
		err = worded{strings.Join(text, "\n"), err}
	}
	r.SetError(err)
	return r
}

// worded has a text of its own and is one of the two errors.
type worded struct {
	text string
	is   error
}

func (e worded) Error() string { return e.text }

func (e worded) Unwrap() error { return e.is }

type effectKey struct{}

// effect is what is known of one call while it runs.
type effect struct{ begun atomic.Bool }

// Begun marks the point from which on the call of ctx may have had its effect: call it right before the request goes out,
// the row is written, the mail is handed over. A handler that then returns an error, or panics, has not failed: its call
// is [Unknown], unless the error says [ErrNoEffect] or the result is [Failed].
//
// ctx is that of the handler, or one derived from it. Anywhere but in a tool call of a server with [Extensions.Attach] it
// does nothing.
func Begun(ctx context.Context) {
	if e, ok := ctx.Value(effectKey{}).(*effect); ok {
		e.begun.Store(true)
	}
}
