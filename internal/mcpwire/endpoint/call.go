package endpoint

import (
	"context"
	"net/http"
	"runtime/debug"

	"github.com/ostiary/ostiary/call"
)

// toolCall is one tools/call that has passed the checks of its front.
type toolCall struct {
	*request
	tool          *Tool
	modern        bool
	arguments     []byte
	meta          []byte // the caller's own keys
	progressToken []byte
	frontier      call.Frontier // nil: the caller does not say
	logLevel      string
	collect       string // the earlier call whose held result is asked for
	resource      string // the address, of a resources/read; "" of a tools/call

	// askBack says that the client can be asked by the result of the call, and answered what it brings of such a question.
	askBack  bool
	answered *call.Answered
	// asked is where a handshake-era client's answers come, nil: it cannot be asked; elicit then asks on the call's own stream.
	asked  *asked
	elicit func(ctx context.Context, params []byte) (result []byte)

	// post hands a notification on its way to the client, and must not block; nil: nothing can be sent on the way.
	post func(method string, params []byte)
}

// placeCall takes a call down the path and says how it ended. It returns soon after ctx ends, which cancel brings about. A panic
// below it is this call's error alone (F-64).
func (e *Endpoint) placeCall(ctx context.Context, cancel context.CancelFunc, c *toolCall) (a answer) {
	if !e.enter() {
		return notPlaced("The gateway is shutting down; nothing was sent. Repeat the call later.")
	}
	defer e.running.Done()
	if !e.slots.take(c.principal.ID) {
		e.refused("overloaded", c.principal.ID, quoted(c.tool.Name))
		return overloaded()
	}
	defer e.slots.give(c.principal.ID)
	defer func() {
		if p := recover(); p != nil {
			a = e.panicked(p, "tool", string(c.tool.Descriptor.ID))
		}
	}()

	defer context.AfterFunc(e.ctx, cancel)()

	r := call.Request{
		Principal: c.principal,
		Export:    c.export.Name,
		Session:   c.session,
		Tool:      c.tool.Descriptor.ID,
		Arguments: c.arguments,
		Meta:      c.meta,
		Frontier:  c.frontier,
		LogLevel:  c.logLevel,
		Collect:   call.ID(c.collect),
		AskBack:   c.askBack,
		Answered:  c.answered,
	}
	if c.elicit != nil {
		r.Ask = func(ctx context.Context, q call.Question) call.Consent {
			return consentOf(c.elicit(ctx, elicitParams(q)))
		}
	}
	if c.post != nil && (c.progressToken != nil || c.logLevel != "") {
		relay := newRelay(c, e.o.Now)
		defer relay.end()
		if c.progressToken != nil {
			r.Progress = relay.progress
		}
		if c.logLevel != "" {
			r.Log = relay.message
		}
	}
	return answerOf(e.o.Caller.Call(ctx, r), c.modern)
}

// panicked logs a panic without its value, which may quote a caller, and answers for it.
func (e *Endpoint) panicked(p any, attrs ...any) answer {
	kind := "value"
	switch p.(type) {
	case error:
		kind = "error"
	case string:
		kind = "string"
	}
	e.log.Error("panic while handling a request", append(attrs, "panic", kind, "stack", string(debug.Stack()))...)
	return failure(http.StatusInternalServerError, codeInternal, "Internal error")
}
