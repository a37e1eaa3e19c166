package endpoint

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// rawResult carries a result through the SDK as bytes.
type rawResult struct {
	mcp.ResultBase
	raw []byte
}

// MarshalJSON gives the bytes.
func (r *rawResult) MarshalJSON() ([]byte, error) { return r.raw, nil }

// GetMeta gives nothing: the SDK has nothing to decide on.
func (r *rawResult) GetMeta() map[string]any { return nil }

// SetMeta takes nothing: the result is complete.
func (r *rawResult) SetMeta(map[string]any) {}

// rawParams carries the params of a notification through the SDK as bytes. It travels inside the typed params and takes
// their place in [sendRaw].
type rawParams struct {
	mcp.ParamsBase
	raw []byte
}

// MarshalJSON gives the bytes.
func (p *rawParams) MarshalJSON() ([]byte, error) { return p.raw, nil }

// sendRaw is sending middleware that replaces typed params by the raw ones they carry.
func sendRaw(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		var raw *rawParams
		switch p := req.GetParams().(type) {
		case *mcp.ProgressNotificationParams:
			raw, _ = p.ProgressToken.(*rawParams)
		case *mcp.LoggingMessageParams:
			raw, _ = p.Data.(*rawParams)
		}
		if ss, ok := req.GetSession().(*mcp.ServerSession); ok && raw != nil {
			req = &mcp.ServerRequest[*rawParams]{Session: ss, Params: raw}
		}
		return next(ctx, method, req)
	}
}

// rawAnswer is an answer of the legacy era in the SDK's terms.
func rawAnswer(a answer) (mcp.Result, error) {
	if a.err != nil {
		return nil, wireError(&a)
	}
	return &rawResult{raw: a.appendResult(nil, false)}, nil
}

// wireError is an answer's error in the SDK's terms.
func wireError(a *answer) error {
	e := &jsonrpc.Error{Code: a.err.Code, Message: a.err.Message, Data: a.err.Data}
	if e.Code == codeMethodNotFound {
		return verbatim{e}
	}
	return e
}

// verbatim hides from the SDK that an error says "method not found": it would put its own words in the place of what a
// provider said. Such an error loses its data on the way.
type verbatim struct{ e *jsonrpc.Error }

func (v verbatim) Error() string { return v.e.Message }

// As gives the SDK the code.
func (v verbatim) As(target any) bool {
	t, ok := target.(**jsonrpc.Error)
	if ok {
		*t = v.e
	}
	return ok
}
