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

// What the edge tells the middleware about a request, as header fields. The SDK hands the header of a request on as it is
// given. No client can set them: a name with a lower-case first letter never comes out of net/http.
const (
	edgePrincipal = "ostiary-principal"
	edgeParams    = "ostiary-params" // the params as they were parsed at the edge, byte for byte
)

// legacy is the handshake-era server of one export: the SDK keeps the sessions, and every method that matters is answered
// here, from bytes. The SDK sees neither arguments nor results of a call as values, because its typed path rounds numbers.
type legacy struct {
	e        *Endpoint
	export   *export
	server   *mcp.Server
	sessions *sessions
	http     http.Handler

	mu     sync.Mutex // guards marker
	marker bool
}

func (e *Endpoint) newLegacy(x *export) *legacy {
	l := &legacy{e: e, export: x}
	l.sessions = newSessions(e.o.MaxSessions, e.o.SessionTimeout, e.o.Now)
	l.server = mcp.NewServer(&mcp.Implementation{Name: e.o.ServerName, Version: e.o.ServerVersion}, &mcp.ServerOptions{
		Instructions: x.Instructions,
		// The SDK logs values that clients sent. What is worth an operator's while is logged here.
		Logger:                    slog.New(slog.DiscardHandler),
		Capabilities:              &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}, Logging: &mcp.LoggingCapabilities{}},
		SupportedProtocolVersions: legacyRevisions,
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
			c.CacheScope = "private"
		},
	})
	l.server.AddReceivingMiddleware(l.receive)
	l.server.AddSendingMiddleware(sendRaw)
	l.http = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return l.server }, &mcp.StreamableHTTPOptions{
		Logger:                     slog.New(slog.DiscardHandler),
		DisableLocalhostProtection: true, // the perimeter has checked already
		MaxRequestBodyBytes:        -1,   // so has the edge
	})
	return l
}

// toolsChanged makes the SDK send tools/list_changed to all sessions. It does that only when its own tool set changes, so a
// marker goes in and out of it, which nobody can see: lists and calls are answered here.
func (l *legacy) toolsChanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	const name = "changed"
	if l.marker {
		l.server.RemoveTools(name)
	} else {
		l.server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, errNoMarker })
	}
	l.marker = !l.marker
}

var errNoMarker = &jsonrpc.Error{Code: codeInvalidParams, Message: "Unknown tool"}

func (l *legacy) close() { l.sessions.close() }

// legacyMethods are the requests that a session may make; all else is -32601 before the SDK sees it.
func legacyMethod(method string) bool {
	switch method {
	case methodInitialize, methodPing, methodSetLevel, methodListTools, methodCallTool:
		return true
	}
	return false
}

// receive answers what this server answers itself. It is the outermost middleware: a panic below it is an error of that
// request, and not the end of the process (F-64).
func (l *legacy) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, in mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				a := l.e.panicked(p)
				res, err = nil, wireError(&a)
			}
		}()
		ss, _ := in.GetSession().(*mcp.ServerSession)
		req := &request{export: l.export, session: ss.ID(), method: method}
		if extra := in.GetExtra(); extra != nil {
			if v := extra.Header[edgePrincipal]; len(v) == 1 {
				req.principal.ID = v[0]
			}
			if v := extra.Header[edgeParams]; len(v) == 1 {
				req.params = []byte(v[0])
			}
		}
		switch method {
		case methodInitialize:
			if err := l.sessions.bind(ss, req.principal.ID); err != nil {
				return nil, &jsonrpc.Error{Code: codeInternal, Message: err.Error()}
			}
			return next(ctx, method, in)
		case methodPing:
			return next(ctx, method, in)
		case methodSetLevel:
			level, ok := content.String(content.Member(req.params, "level"))
			if !ok || severity(level) < 0 {
				return nil, &jsonrpc.Error{Code: codeInvalidParams, Message: "unknown log level " + quoted(level)}
			}
			l.sessions.setLevel(ss, level)
			return next(ctx, method, in)
		case methodListTools:
			return rawAnswer(req.list(false))
		case methodCallTool:
			return l.call(ctx, ss, req)
		case "notifications/initialized", noteCancelled:
			return next(ctx, method, in)
		default:
			if len(method) > 14 && method[:14] == "notifications/" {
				return nil, nil // of no meaning to this server
			}
			a := methodNotFound(method)
			return nil, wireError(&a)
		}
	}
}

// call places a call for a session. The context ends with notifications/cancelled or with the session; a client that has
// only lost its stream does not cancel in this era.
func (l *legacy) call(ctx context.Context, ss *mcp.ServerSession, req *request) (mcp.Result, error) {
	c, a, ok := l.e.prepare(req)
	if !ok {
		return nil, wireError(&a)
	}
	meta, rest, err := content.SplitMeta(content.Member(req.params, "_meta"))
	if err != nil {
		return nil, &jsonrpc.Error{Code: codeInvalidParams, Message: err.Error()}
	}
	c.meta, c.progressToken = rest, meta.ProgressToken
	session, level := l.sessions.use(ss)
	c.logLevel = level
	if session != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(session, cancel)()
	}
	box := newMailbox(func(method string, params []byte) { l.notify(ctx, ss, method, params) })
	c.post = box.post
	a = l.e.place(ctx, c)
	box.close()
	return rawAnswer(a)
}

// notify sends a notification of a running call; ctx ties it to the stream of its request. An error means that the
// client has gone or the session has ended, and a notification is a hint.
func (l *legacy) notify(ctx context.Context, ss *mcp.ServerSession, method string, params []byte) {
	raw := &rawParams{raw: params}
	switch method {
	case noteProgress:
		_ = ss.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: raw})
	case noteMessage:
		_ = ss.Log(ctx, &mcp.LoggingMessageParams{Level: "emergency", Data: raw}) // the relay has compared the level
	}
}
