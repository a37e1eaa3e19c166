package contract

import (
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// modern is the revision from which on a client says in each request what it can do, and the only one with world-events.
const modern = "2026-07-28"

// Options say which extensions a server adopts. The zero value is tool-contract alone.
type Options struct {
	// WorldEvents offers world-events, so that [Extensions.Emit] has somebody to send to.
	WorldEvents bool
	// LegacyEvents sends events to clients of the handshake era too, as log messages of the logger aurora/event. Only a host
	// that was told to expects them there; to every other client they are log messages.
	LegacyEvents bool

	Logger *slog.Logger     // what goes wrong in handlers; nil: nothing is logged
	Now    func() time.Time // nil: time.Now
}

// Extensions is what one [mcp.Server] has of tool-contract and world-events. Its methods may be called concurrently, but
// for Offer and Attach, which belong to the making of the server.
type Extensions struct {
	o   Options
	log *slog.Logger

	mu    sync.Mutex // guards what follows
	conns map[string]*conn
	made  int
}

// New makes Extensions for one server.
func New(o Options) *Extensions {
	e := &Extensions{o: o, log: o.Logger, conns: map[string]*conn{}}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.o.Now == nil {
		e.o.Now = time.Now
	}
	return e
}

// Offer adds the extensions to what the server says that it can do, and returns the options. nil are default options.
// It has to be called before [mcp.NewServer], which copies them.
//
// Capabilities that are nil stand for logging in the SDK, so they become that and the extensions.
func (e *Extensions) Offer(o *mcp.ServerOptions) *mcp.ServerOptions {
	if o == nil {
		o = &mcp.ServerOptions{}
	}
	logs := e.o.LegacyEvents
	if o.Capabilities == nil {
		o.Capabilities, logs = &mcp.ServerCapabilities{}, true
	}
	o.Capabilities.AddExtension(ToolContract, settingsV1())
	if e.o.WorldEvents {
		o.Capabilities.AddExtension(WorldEvents, settingsV1())
	}
	if logs {
		//lint:ignore SA1019 it is what clients of the handshake era know, and the SDK's own default
		o.Capabilities.Logging = &mcp.LoggingCapabilities{}
	}
	return o
}

// Attach puts the rules of tool-contract between the server and its tools. It is called once; middleware that is added
// later stands outside, and sees what the client will see.
func (e *Extensions) Attach(s *mcp.Server) { s.AddReceivingMiddleware(e.rules) }

// agreed says whether the client of a call holds to version 1 of tool-contract: by what this very request says in
// 2026-07-28, by the handshake before it.
func agreed(req *mcp.CallToolRequest) bool {
	if meta := req.Params.GetMeta(); meta != nil {
		if v, _ := meta[mcp.MetaKeyProtocolVersion].(string); v >= modern {
			caps, _ := meta[mcp.MetaKeyClientCapabilities].(map[string]any)
			extensions, _ := caps["extensions"].(map[string]any)
			return decodedV1(extensions[ToolContract])
		}
	}
	if req.Session == nil {
		return false
	}
	init := req.Session.InitializeParams()
	return init != nil && init.Capabilities != nil && decodedV1(init.Capabilities.Extensions[ToolContract])
}
