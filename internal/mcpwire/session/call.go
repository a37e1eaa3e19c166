package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/mcpwire/transport"
)

// Call is one tools/call, cleared elsewhere.
type Call struct {
	Tool      *call.Descriptor
	Arguments []byte // a raw JSON object; nil: none
	Meta      []byte // the caller's own _meta; nil: none
	Progress  func(call.Progress)
	Log       func(call.LogMessage)
	LogLevel  string
}

// toolSet is what may be called, by raw name, with the headers that mirror arguments.
type toolSet map[string][]call.ParamHeader

// SetTools says which tools may be called. It is called when a catalog is frozen.
func (s *Session) SetTools(tools []*call.Descriptor) {
	set := make(toolSet, len(tools))
	for _, t := range tools {
		var headers []call.ParamHeader
		if s.http != nil && s.agreed().Modern {
			var err error
			if headers, err = content.ParamHeaders(t.InputSchema); err != nil {
				continue // it was left out of the listing, and is not callable round the back (R1.7)
			}
		}
		set[t.RawName] = headers
	}
	s.tools.Store(&set)
}

// paramBuffers are the buffers of outgoing params.
var paramBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

const maxPooledParams = 1 << 20

// Call places one call, once. Its delivery is measured on the way (R3.1); whatever else is known is in the answer's
// fault. It returns when an answer came, when none can come any more, or promptly after ctx has ended.
func (s *Session) Call(ctx context.Context, c Call) call.Answer {
	open := s.open.Add(1)
	defer s.open.Add(-1)
	if open > int64(s.opts.Limits.Concurrent) {
		return unsent(call.CodeOverloaded, fmt.Sprintf("%d calls of this provider are under way", s.opts.Limits.Concurrent))
	}
	set := s.tools.Load()
	if set == nil {
		return unsent(call.CodeProviderUnavailable, "the provider's tools are not frozen yet")
	}
	mirrored, ok := (*set)[c.Tool.RawName]
	if !ok {
		return unsent(call.CodeToolNotAllowed, "the tool is not among those of the connection")
	}
	if err := s.Err(); err != nil {
		return unsent(call.CodeProviderUnavailable, err.Error())
	}
	header := s.header("tools/call", c.Tool.RawName)
	if header != nil && len(mirrored) > 0 {
		if err := content.MirrorHeaders(header, mirrored, c.Arguments); err != nil {
			return unsent(call.CodeInvalidArguments, err.Error())
		}
	}
	if c.Log != nil && c.LogLevel != "" {
		s.askForLogs(ctx, c.LogLevel)
	}
	r := transport.Request{ID: s.newID(), Method: "tools/call", Header: header, Delivery: new(transport.Delivery)}
	var p *pump
	if c.Progress != nil || c.Log != nil {
		p = newPump(r.ID, &c)
		r.OnAnswer = func([]byte) { p.close() }
		s.calls.add(p)
		go p.run() // ended, and waited for, below
	}
	if s.http != nil {
		r.OnNotification = s.streamed(p)
	}
	buf := paramBuffers.Get().(*[]byte)
	*buf = s.appendCall((*buf)[:0], &c, r.ID)
	r.Params = *buf
	resp, err := s.carrier.Do(ctx, &r)
	if cap(*buf) <= maxPooledParams { // the carrier has written a copy into its message
		paramBuffers.Put(buf)
	}
	if p != nil {
		s.calls.remove(p)
		p.end()
	}
	if err != nil {
		return s.unanswered(ctx, &r, err)
	}
	r.Delivery.Confirmed()
	a := content.CallAnswer(resp.Result, resp.Error, s.agreed().Modern)
	a.Delivery = call.Confirmed
	if a.Contract = s.agreed().ToolContract; a.Contract && a.Result != nil {
		a.ContractCode = content.ContractCode(a.Result)
	}
	a.Release = resp.Release
	if resp.HTTPStatus >= 400 {
		a.HTTPStatus = resp.HTTPStatus
	}
	return a
}

func (s *Session) appendCall(dst []byte, c *Call, id string) []byte {
	dst = append(dst, `{"name":`...)
	dst = content.AppendString(dst, c.Tool.RawName)
	if c.Arguments != nil {
		dst = append(dst, `,"arguments":`...)
		dst = append(dst, c.Arguments...)
	} else {
		dst = append(dst, `,"arguments":{}`...) // some servers check what is not there against a schema of objects
	}
	m := requestMeta{caller: c.Meta}
	if c.Progress != nil {
		m.token = id
	}
	if c.Log != nil {
		m.logLevel = c.LogLevel
	}
	if s.agreed().Modern || m.token != "" || c.Meta != nil {
		dst = append(dst, `,"_meta":`...)
		dst = s.appendMeta(dst, s.agreed().Modern, m)
	}
	return append(dst, '}')
}

func unsent(code call.Code, detail string) call.Answer {
	return call.Answer{Delivery: call.NotSent, Fault: code, Detail: detail}
}

// unanswered says what is known of a call without a valid answer, and tells the server if the caller has gone (R3.10).
func (s *Session) unanswered(ctx context.Context, r *transport.Request, err error) call.Answer {
	a := call.Answer{Delivery: r.Delivery.State(), Detail: err.Error()}
	if f, ok := errors.AsType[*transport.Fault](err); ok {
		a.Fault, a.Detail, a.HTTPStatus = f.Code, f.Detail, f.HTTPStatus
		if s.gone(f) {
			s.finish(errors.New("the server has ended the session"))
		}
		return a
	}
	reason := "cancelled"
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		a.Fault, reason = call.CodeDeadlineExceeded, "timeout"
	case errors.Is(err, context.Canceled):
		a.Fault = call.CodeCancelled
	default:
		a.Fault = call.CodeInternal
		return a
	}
	if a.Delivery != call.NotSent {
		s.tellCancelled(r.ID, reason)
	}
	return a
}

// cancelNotice bounds how long a cancellation waits for a pipe that is blocked. It is a courtesy: the call has ended.
const cancelNotice = 2 * time.Second

// tellCancelled sends the one notification that ends a request at the server. On modern HTTP the end of the stream has
// said so already, and nothing is sent (R1.8).
func (s *Session) tellCancelled(id, reason string) {
	if s.http != nil && s.agreed().Modern {
		return
	}
	params := content.NewObject(nil).String("requestId", id).String("reason", reason).End()
	s.background(func() {
		ctx, cancel := context.WithTimeout(s.life, cancelNotice)
		defer cancel()
		if err := s.carrier.Notify(ctx, "notifications/cancelled", params, nil); err != nil {
			s.log.Debug("cancel a call", "error", err.Error())
		}
	})
}

// background runs f beside the caller; Close waits for it. Once the session is closing nothing new begins.
func (s *Session) background(f func()) {
	s.workMu.Lock()
	defer s.workMu.Unlock()
	if s.life.Err() == nil {
		s.work.Go(f)
	}
}
