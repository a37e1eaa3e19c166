package endpoint

import (
	"bytes"
	"net/http"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// answerOf says how the reply of the path reaches a client: a provider's result with the outcome beside it, a provider's
// error as it is, or the path's own words as a tool result.
func answerOf(r call.Reply, modern bool) answer {
	if r.Result == nil && r.Error != nil {
		a := answer{err: r.Error}
		if modern {
			a.err = emittable(r.Error)
			if a.err.Code == codeCapability {
				a.status = http.StatusBadRequest // S-008
			}
		}
		return a
	}
	if modern && r.Question != nil {
		return answer{result: inputRequired(&r)}
	}
	return answer{reply: &r}
}

// emittable maps the codes that a server of the modern era must not send (S-004, S-005) to an internal error, with message
// and data kept: the codes that were retired, those that nobody has defined, and the two that would now speak of the
// client's request to us when the provider meant ours to it. Missing capabilities are the client's, so that code stays.
func emittable(e *call.ProviderError) *call.ProviderError {
	switch c := e.Code; {
	case c == codeCapability:
		return e
	case c == -32002, c == -32042, c >= -32099 && c <= -32020:
		return &call.ProviderError{Code: codeInternal, Message: e.Message, Data: e.Data}
	default:
		return e
	}
}

// append writes the whole JSON-RPC message on one line.
func (a *answer) append(dst, id []byte, modern bool) []byte {
	if a.err != nil {
		return content.AppendError(dst, id, a.err)
	}
	dst = a.appendResult(appendResultHead(dst, id), modern)
	return append(dst, '}')
}

// appendResultHead writes what comes before a result.
func appendResultHead(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	return append(dst, `,"result":`...)
}

// appendResult writes the result alone, on one line.
func (a *answer) appendResult(dst []byte, modern bool) []byte {
	if a.reply == nil {
		return append(dst, a.result...)
	}
	if a.reply.Result == nil {
		return append(dst, content.RefusalResult(a.reply, modern)...)
	}
	start := len(dst)
	if a.reply.Outcome.Status == call.StatusUnknown { // the provider's words on what it does not know
		dst = content.UnknownResult(dst, a.reply, modern)
		flatten(dst[start:])
		return dst
	}
	dst = content.WithOutcome(dst, a.reply, modern)
	flatten(dst[start:])
	return dst
}

// flatten makes valid JSON fit into a line of stdio or an SSE event. A raw line break in valid JSON can only be blank space
// between tokens, so it may as well be a blank.
func flatten(b []byte) {
	for _, end := range [...]byte{'\n', '\r'} {
		for rest := b; ; {
			i := bytes.IndexByte(rest, end)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}

// overloaded is the outcome of a call beyond the bounds. It is a tool result and no HTTP status: a model can read it and
// wait, while most clients give a 503 to nobody.
func overloaded() answer {
	info := call.CodeOverloaded.Info()
	return notPlaced(info.Meaning + " " + info.Advice)
}

// notPlaced is the outcome of a call that has not begun; another attempt may.
func notPlaced(message string) answer {
	info := call.CodeOverloaded.Info()
	return answer{reply: &call.Reply{Outcome: call.Outcome{
		Status: call.Failed, Delivery: call.NotSent, Effect: call.EffectNone,
		Code: info.Code, Stage: info.Stage, Retry: info.Retry, Message: message,
	}}}
}
