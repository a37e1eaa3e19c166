package transport

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/ostiary/ostiary/call"
)

// Request is one JSON-RPC request on its way out.
type Request struct {
	ID     string // a string id of ours ("g1"), which can never collide with the SDK's integers
	Method string
	Params []byte // the complete params object; nil: none

	Header http.Header // HTTP only: what the session adds (Mcp-Method, Mcp-Name, Mcp-Param-*, session id, version)

	// Delivery is marked as the request travels; nil is allowed.
	Delivery *Delivery

	// OnNotification takes the notifications that arrive on this request's own stream (HTTP), in order, never after Do
	// has returned. On stdio there is one stream: all notifications go to the carrier's own sink instead.
	OnNotification func(method string, params []byte)

	// OnAnswer is called once the answer has been taken off a shared stream (stdio), before anything that came after it;
	// it must not block, and result, nil if the answer is an error, is valid until it returns. On HTTP the stream of the
	// request ends with the answer, and it is not called. nil: nobody is told.
	OnAnswer func(result []byte)
}

// Response is a well-formed answer: exactly one of Result and Error is set. The slices are the peer's own bytes.
type Response struct {
	Result []byte
	Error  *call.ProviderError

	// Release gives the memory of Result and Error back, for another message to use; nil: there is nothing to give back.
	// Calling it is never needed, and nothing may look at them afterwards.
	Release func()

	// HTTPStatus is the status of the HTTP answer that carried it; 0 on stdio.
	HTTPStatus int
	// Header is that of the HTTP answer; nil on stdio.
	Header http.Header
}

// Carrier carries requests to one peer. All methods may be called concurrently. A bad answer fails its own request and no
// other, unless the peer's stream itself is broken.
type Carrier interface {
	// Do sends r once and waits for its answer. Errors are a *Fault, or ctx's error when ctx ended first. It returns
	// promptly when ctx ends, however the peer behaves; telling the peer is the session's work on stdio, and closing the
	// stream does it on HTTP.
	Do(ctx context.Context, r *Request) (Response, error)

	// Notify sends a notification. It waits for the write (stdio) or for the answer's status (HTTP).
	Notify(ctx context.Context, method string, params []byte, header http.Header) error

	// Done is closed when the carrier has ended for good, by Close or by itself; Err says why. HTTP carriers end by Close
	// alone.
	Done() <-chan struct{}
	Err() error

	// Close ends everything within the carrier's bound and waits for it. Open requests fail with their delivery as marked.
	Close(ctx context.Context) error
}

// Delivery says how far one request got. It only ever goes forward.
type Delivery struct{ state atomic.Int32 }

const (
	notSent int32 = iota
	maybeSent
	confirmed
)

// MaybeSent marks that a first byte may have left this process.
func (d *Delivery) MaybeSent() {
	if d != nil {
		d.state.CompareAndSwap(notSent, maybeSent)
	}
}

// Confirmed marks that an answer to this request came.
func (d *Delivery) Confirmed() {
	if d != nil {
		d.state.Store(confirmed)
	}
}

// State reads the mark.
func (d *Delivery) State() call.Delivery {
	if d == nil {
		return call.DeliveryUnknown
	}
	switch d.state.Load() {
	case notSent:
		return call.NotSent
	case confirmed:
		return call.Confirmed
	default:
		return call.DeliveryUnknown
	}
}

// Fault says why a request got no valid answer.
type Fault struct {
	Code   call.Code // provider_lost, provider_refused, protocol_error, result_too_large, deadline_exceeded, overloaded, …
	Detail string    // for operators, without secrets

	HTTPStatus      int    // 0 if it was no HTTP answer
	WWWAuthenticate string // of a 401 or 403; sensitive
	RetryAfter      string // as the peer said it
	Body            []byte // the first bytes of an HTTP error body, for era detection; never shown
}

func (f *Fault) Error() string {
	if f.HTTPStatus != 0 {
		return fmt.Sprintf("%s: HTTP %d: %s", f.Code, f.HTTPStatus, f.Detail)
	}
	return fmt.Sprintf("%s: %s", f.Code, f.Detail)
}
