package endpoint

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// edgePrincipal is the header field in which the edge tells the SDK's middleware whose session it is. The SDK hands a
// request's header on as it is given. No client can set it: a name with a lower-case first letter never comes out of
// net/http, and nothing of a client's header is copied to the request that the SDK sees.
const edgePrincipal = "ostiary-principal"

// edgeElicits is there, in the same way, if the client can be shown a form.
const edgeElicits = "ostiary-elicits"

// legacy is the handshake-era server of one export. The SDK does what a handshake-era session is: initialize, its id, its
// GET stream and the notifications on it. Requests within a session are answered from bytes before the SDK is reached: its
// typed path rounds numbers, changes ids, and costs several times the call itself.
type legacy struct {
	e        *Endpoint
	server   *mcp.Server
	sessions *sessions
	http     http.Handler

	mu     sync.Mutex // guards marker
	marker bool
}

func (e *Endpoint) newLegacy(x *export) *legacy {
	l := &legacy{e: e, sessions: newSessions(e.o.MaxSessions, e.o.SessionTimeout, e.o.Now)}
	if x.Resources != nil {
		l.sessions.watch = e.watchers.watch
	}
	//lint:ignore SA1019 clients of the older revisions ask for log messages, and are to have them
	capabilities := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}, Logging: &mcp.LoggingCapabilities{}}
	if x.Resources != nil {
		capabilities.Resources = &mcp.ResourceCapabilities{Subscribe: true}
	}
	l.server = mcp.NewServer(&mcp.Implementation{Name: e.o.ServerName, Version: e.o.ServerVersion}, &mcp.ServerOptions{
		Instructions: x.Instructions,
		// The SDK logs values that clients sent. What is worth an operator's while is logged here.
		Logger:                    slog.New(slog.DiscardHandler),
		Capabilities:              capabilities,
		SupportedProtocolVersions: legacyRevisions,
	})
	l.server.AddReceivingMiddleware(l.receive)
	l.http = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return l.server }, &mcp.StreamableHTTPOptions{
		Logger:                     slog.New(slog.DiscardHandler),
		JSONResponse:               true, // of initialize; the GET stream is one in any case
		DisableLocalhostProtection: true, // the perimeter has checked already
		MaxRequestBodyBytes:        -1,   // so has the edge
	})
	return l
}

// toolsChanged makes the SDK send tools/list_changed to all sessions. It does that only when its own tool set changes, so a
// marker goes in and out of it, which nobody can see: lists and calls do not reach the SDK.
func (l *legacy) toolsChanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	const name = "changed"
	if l.marker {
		l.server.RemoveTools(name)
	} else {
		l.server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, errNotReached })
	}
	l.marker = !l.marker
}

var errNotReached = &jsonrpc.Error{Code: codeMethodNotFound, Message: "Method not found"}

func (l *legacy) close() { l.sessions.close() }

// receive lets through what is the SDK's and makes a session its principal's. It is the outermost middleware: a panic
// below it is an error of that request, and not the end of the process (F-64).
func (l *legacy) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, in mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				a := l.e.panicked(p)
				res, err = nil, &jsonrpc.Error{Code: a.err.Code, Message: a.err.Message}
			}
		}()
		switch method {
		case methodInitialize:
			ss, ok := in.GetSession().(*mcp.ServerSession)
			if extra := in.GetExtra(); ok && extra != nil {
				//lint:ignore SA1008 the key is spelled as no client's header can be
				if owner := extra.Header[edgePrincipal]; len(owner) == 1 {
					//lint:ignore SA1008 nor can this one
					if err := l.sessions.bind(ss, owner[0], len(extra.Header[edgeElicits]) == 1); err != nil {
						return nil, &jsonrpc.Error{Code: codeInternal, Message: err.Error()}
					}
				}
			}
			return next(ctx, method, in)
		case noteInitialized:
			return next(ctx, method, in)
		default:
			return nil, errNotReached
		}
	}
}

// within answers a request within a session that takes no time: everything but tools/call and initialize. level takes a
// new log level.
func (req *request) within(level func(string)) answer {
	switch req.method {
	case methodPing:
		return answer{result: []byte("{}")}
	case methodListTools:
		return req.list(false)
	case methodSetLevel:
		l, ok := content.String(content.Member(req.params, "level"))
		if !ok || severity(l) < 0 {
			return failure(0, codeInvalidParams, "unknown log level "+quoted(l))
		}
		level(l)
		return answer{result: []byte("{}")}
	default:
		return methodNotFound(req.method)
	}
}

// prepareLegacy is prepare for a request within a session.
func (e *Endpoint) prepareLegacy(req *request, level string) (c *toolCall, a answer, ok bool) {
	if req.method == methodReadResource {
		c, a, ok = e.prepareRead(req, false)
	} else {
		c, a, ok = e.prepare(req)
	}
	if !ok {
		return nil, a, false
	}
	meta, rest, err := content.SplitMeta(content.Member(req.params, "_meta"))
	if err != nil {
		return nil, failure(0, codeInvalidParams, err.Error()), false
	}
	e.auditMeta(req, &meta)
	c.meta, c.logLevel, c.progressToken = rest, level, meta.ProgressToken
	c.answered = nil // that era has no such thing
	if c.resource == "" {
		c.collect = meta.Collect
	}
	return c, answer{}, true
}

// initializeParams is as much of the params as the SDK has to know; nothing else in them has a use here. A problem is fit
// for the caller.
func initializeParams(params []byte) (sdk []byte, problem string) {
	version, ok := content.String(content.Member(params, "protocolVersion"))
	switch {
	case !ok:
		return nil, "params.protocolVersion must be a string"
	case !content.IsObject(content.Member(params, "capabilities")):
		return nil, "params.capabilities must be an object"
	case !content.IsObject(content.Member(params, "clientInfo")):
		return nil, "params.clientInfo must be an object"
	}
	return content.NewObject(nil).String("protocolVersion", truncated(version, 64)).Raw("capabilities", []byte("{}")).
		Raw("clientInfo", []byte(`{"name":"","version":""}`)).End(), ""
}
