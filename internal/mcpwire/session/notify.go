package session

import (
	"bytes"
	"context"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// notification takes what arrives on the pipe, or on a stream that belongs to no call: in wire order, before any later
// answer is delivered. It is the one receiver of each (R2.2). params are valid until it returns.
func (s *Session) notification(method string, params []byte) { s.take(nil, method, params) }

// streamed takes the notifications of one request's own HTTP stream.
func (s *Session) streamed(p *pump) func(string, []byte) {
	if s.http == nil {
		return nil
	}
	return func(method string, params []byte) {
		if s.agreed().Modern && method == "notifications/tools/list_changed" {
			s.violation("tool change on the stream of another request")
			return
		}
		s.take(p, method, params)
	}
}

// take routes one notification; p is the call whose own stream carried it, if it was one.
func (s *Session) take(p *pump, method string, params []byte) {
	<-s.dialed
	s.notifications.Add(1)
	switch method {
	case "notifications/tools/list_changed":
		s.toolsChanged(params)
	case "notifications/subscriptions/acknowledged":
		s.acknowledged(params)
	case "notifications/progress":
		s.progress(p, params)
	case "notifications/message":
		if s.legacyEvent(params) {
			s.opts.Events.Event(content.Member(params, "data"))
			return
		}
		s.logMessage(p, params)
	case eventMethod:
		switch {
		case s.opts.Events == nil:
		case s.opts.WorldEvents && s.http == nil:
			s.opts.Events.Event(params)
		default:
			s.opts.Events.Unasked()
		}
	case "notifications/cancelled":
		s.subscriptionCancelled(params)
	}
}

// maxReplies bounds the answers to a server's requests that are on their way at one time (F-28).
const maxReplies = 16

// reverseRequest is a request of the server that no SDK session takes. A legacy server on HTTP has its ping answered, and
// is told of everything else that it is not there: nothing else was declared (R1.8, R14.1). A modern server may not ask
// at all, and the carrier has counted that it did (S-022, S-049).
func (s *Session) reverseRequest(id []byte, method string, _ []byte) {
	<-s.dialed
	if s.http == nil || s.isModern() {
		return
	}
	if s.replies.Add(1) > maxReplies {
		s.replies.Add(-1)
		s.violation("more requests of the server than are answered")
		return
	}
	id = bytes.Clone(id)
	s.background(func() {
		defer s.replies.Add(-1)
		ctx, cancel := context.WithTimeout(s.life, replyBound)
		defer cancel()
		result, refusal := []byte("{}"), (*call.ProviderError)(nil)
		if method != "ping" {
			result, refusal = nil, &call.ProviderError{Code: codeMethodNotFound, Message: "Method not found"}
		}
		if err := s.http.Reply(ctx, id, result, refusal, nil); err != nil {
			s.log.Debug("answer the server", "error", err.Error())
		}
	})
}

// replyBound is how long such an answer may take.
const replyBound = 10 * time.Second

func (s *Session) violation(what string) {
	s.violations.Add(1)
	s.lastViolation.Store(&what)
	s.log.Debug("protocol violation", "violation", what)
}

func (s *Session) progress(p *pump, params []byte) {
	token, ok := content.String(content.Member(params, "progressToken"))
	if !ok {
		s.violation("progress with a token that is not ours")
		return
	}
	if p == nil && s.http == nil {
		p = s.calls.byToken(token)
	}
	if p == nil || p.token != token {
		return // the call has ended, or never asked
	}
	if !p.progress(params) {
		s.violation("progress that does not increase")
	}
}

func (s *Session) logMessage(p *pump, params []byte) {
	if p == nil && s.http == nil {
		// The pipe does not say whose message it is. It is given to a call only if it can be no other's.
		p = s.calls.onlyLogger()
		if p != nil && !s.agreed().Modern && s.open.Load() != 1 {
			p = nil
		}
	}
	if p != nil {
		p.message(params)
	}
}
