package contract

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ofUnknown is what a result says whose call may have had its effect: exactly this, and only to a client with whom it was
// agreed.
func ofUnknown() map[string]any { return map[string]any{"status": "unknown"} }

// inWords says the same to everybody else.
const inWords = "It is unknown whether this call had an effect. Look before doing it again."

// rules is the middleware. Everything but tools/call passes.
func (e *Extensions) rules(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call, ok := req.(*mcp.CallToolRequest)
		if !ok {
			return next(ctx, method, req)
		}
		eff := &effect{}
		res, err := e.guarded(context.WithValue(ctx, effectKey{}, eff), next, method, call)
		r, known := res.(*mcp.CallToolResult)
		if err == nil && (!known || r == nil) {
			return res, err // a result of the server's own making: it is not looked into
		}
		switch e.judge(call.Params.Name, r, err, eff.begun.Load()) {
		case unknown:
			return unknownResult(agreed(call), r, err), nil
		case none:
			return withWords(r, err), nil
		default:
			return res, err
		}
	}
}

// guarded turns a panic, which would end the process, into an error. Who panics can vouch for nothing, so the effect is
// unknown whether it was marked or not.
func (e *Extensions) guarded(ctx context.Context, next mcp.MethodHandler, method string, req *mcp.CallToolRequest) (res mcp.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("a tool panicked", "tool", req.Params.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			res, err = nil, worded{"internal error", ErrUnknown}
		}
	}()
	return next(ctx, method, req)
}

// standing is what an answer says of the effect. The zero value is that of an answer that stands as it is.
type standing uint8

const (
	asItIs standing = iota
	none
	unknown
)

func (e *Extensions) judge(tool string, r *mcp.CallToolResult, err error, begun bool) standing {
	cause := err
	if cause == nil {
		cause = r.GetError()
	}
	switch {
	case errors.Is(cause, ErrUnknown):
		return unknown
	case errors.Is(cause, ErrNoEffect):
		return none
	case begun && (err != nil || r.IsError):
		return unknown
	case err != nil:
		return asItIs
	}
	said, ok := r.Meta[ToolContract]
	if !ok {
		return asItIs
	}
	if m, ok := said.(map[string]any); !ok || len(m) != 1 || m["status"] != "unknown" {
		e.log.Error("a tool wrote contract metadata that no host understands; the call counts as unknown", "tool", tool)
	}
	return unknown
}

// unknownResult keeps the words of the handler, and nothing that a host could take for an outcome.
func unknownResult(agreed bool, r *mcp.CallToolResult, err error) *mcp.CallToolResult {
	out := withWords(r, err)
	if agreed {
		if out.Meta == nil {
			out.Meta = mcp.Meta{}
		}
		out.Meta[ToolContract] = ofUnknown()
	} else {
		out.Content = append(out.Content, &mcp.TextContent{Text: inWords})
	}
	return out
}

// withWords is a tool error with the content of a result, or with the words of an error where there is no result.
func withWords(r *mcp.CallToolResult, err error) *mcp.CallToolResult {
	out := &mcp.CallToolResult{}
	if r != nil {
		out.Meta = maps.Clone(r.Meta)
		delete(out.Meta, ToolContract)
		out.Content = append(out.Content, r.Content...)
		err = r.GetError()
	}
	if err == nil {
		err = ErrUnknown
	}
	out.SetError(err)
	return out
}
