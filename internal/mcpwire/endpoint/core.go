package endpoint

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/world"
)

// Keys of _meta that this package writes.
const (
	keyServerInfo     = "io.modelcontextprotocol/serverInfo"
	keySubscriptionID = "io.modelcontextprotocol/subscriptionId"
	keyVersion        = "io.modelcontextprotocol/protocolVersion"
)

// JSON-RPC codes of our own protocol checks.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeHeaderMismatch = -32020
	codeCapability     = -32021
	codeVersion        = -32022
)

const (
	methodDiscover   = "server/discover"
	methodInitialize = "initialize"
	methodPing       = "ping"
	methodSetLevel   = "logging/setLevel"
	methodListTools  = "tools/list"
	methodCallTool   = "tools/call"
	methodListen     = "subscriptions/listen"

	noteProgress    = "notifications/progress"
	noteMessage     = "notifications/message"
	noteCancelled   = "notifications/cancelled"
	noteInitialized = "notifications/initialized"
	noteToolsChange = "notifications/tools/list_changed"
	noteAck         = "notifications/subscriptions/acknowledged"
)

// logLevels are the severities of RFC 5424 as MCP names them, least severe first.
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// severity is the place of a level in that order, -1 if it is none.
func severity(level string) int { return slices.Index(logLevels, level) }

// request is one JSON-RPC request as a front has read it, whatever the wire.
type request struct {
	export    *export
	principal call.Principal
	session   string // of a legacy session, else ""
	id        []byte // raw
	method    string
	params    []byte      // a JSON object, or nil
	header    http.Header // of a modern HTTP request; nil: there is no header layer to compare with
}

// answer is what becomes of a request: exactly one of result, reply and err is set.
type answer struct {
	result []byte              // of our own, complete
	reply  *call.Reply         // of a call: a provider's result, or what the path says
	err    *call.ProviderError // a JSON-RPC error
	status int                 // the HTTP status in the modern era; 0: 200
	force  bool                // it is the status in the legacy era, too
}

func failure(status int, code int64, message string) answer {
	return answer{err: &call.ProviderError{Code: code, Message: message}, status: status}
}

func methodNotFound(method string) answer {
	return failure(http.StatusNotFound, codeMethodNotFound, "Method not found: "+quoted(method))
}

// modernMeta is what a modern request says of itself in _meta.
type modernMeta struct {
	content.ReservedMeta
	rest []byte // the caller's own keys
}

// checkModern applies the rules that hold for every modern request: the required _meta fields (S-007), the version (S-039)
// and, on HTTP, that headers and body agree (S-036, S-037). ok is false if a is the answer.
func (e *Endpoint) checkModern(req *request) (m modernMeta, a answer, ok bool) {
	var err error
	m.ReservedMeta, m.rest, err = content.SplitMeta(content.Member(req.params, "_meta"))
	if err != nil {
		return m, failure(http.StatusBadRequest, codeInvalidParams, err.Error()), false
	}
	e.auditMeta(req, &m.ReservedMeta)
	if req.header != nil {
		switch versions := req.header["Mcp-Protocol-Version"]; {
		case len(versions) == 0:
			return m, e.mismatch(req, "MCP-Protocol-Version header is missing"), false
		case len(versions) > 1:
			return m, e.mismatch(req, "MCP-Protocol-Version header is set more than once"), false
		case m.ProtocolVersion != "" && versions[0] != m.ProtocolVersion:
			return m, e.mismatch(req, "MCP-Protocol-Version header does not match the version in _meta"), false
		}
	}
	if m.ProtocolVersion == "" {
		return m, failure(http.StatusBadRequest, codeInvalidParams, `params._meta["`+keyVersion+`"] is required`), false
	}
	if m.ProtocolVersion != revisionModern {
		return m, unsupportedVersion(m.ProtocolVersion), false
	}
	if m.ClientCapabilities == nil {
		return m, failure(http.StatusBadRequest, codeInvalidParams, `params._meta["io.modelcontextprotocol/clientCapabilities"] is required`), false
	}
	if m.LogLevel != "" && severity(m.LogLevel) < 0 {
		return m, failure(http.StatusBadRequest, codeInvalidParams, "unknown log level "+quoted(m.LogLevel)), false
	}
	if req.header != nil {
		switch methods := req.header["Mcp-Method"]; {
		case len(methods) == 0:
			return m, e.mismatch(req, "Mcp-Method header is missing"), false
		case len(methods) > 1:
			return m, e.mismatch(req, "Mcp-Method header is set more than once"), false
		case methods[0] != req.method:
			return m, e.mismatch(req, "Mcp-Method header does not match the method"), false
		}
	}
	return m, answer{}, true
}

// mismatch is the answer to headers that contradict the body. It is told to the ledger: somebody on the way may have been
// meant to see another request than we do.
func (e *Endpoint) mismatch(req *request, message string) answer {
	e.refused("header_mismatch", req.principal.ID, message)
	return failure(http.StatusBadRequest, codeHeaderMismatch, "Header mismatch: "+message)
}

func unsupportedVersion(requested string) answer {
	versions := []byte{'['}
	for i, v := range revisions {
		if i > 0 {
			versions = append(versions, ',')
		}
		versions = content.AppendString(versions, v)
	}
	data := content.NewObject(nil).Raw("supported", append(versions, ']')).String("requested", truncated(requested, 64)).End()
	return answer{status: http.StatusBadRequest, err: &call.ProviderError{Code: codeVersion, Message: "Unsupported protocol version", Data: data}}
}

// list answers tools/list from what was rendered before.
func (req *request) list(modern bool) answer {
	cursor := ""
	if raw := content.Member(req.params, "cursor"); raw != nil {
		var ok bool
		if cursor, ok = content.String(raw); !ok {
			return failure(0, codeInvalidParams, "params.cursor must be a string")
		}
	}
	p, ok := req.export.listing.Load().pageAt(cursor)
	if !ok {
		return failure(0, codeInvalidParams, "Invalid cursor: the list may have changed; list again from the beginning")
	}
	if modern {
		return answer{result: p.modern}
	}
	return answer{result: p.legacy}
}

// prepare reads a tools/call and finds its tool. A name outside the export is answered in the same words whether or not
// such a tool exists anywhere.
func (e *Endpoint) prepare(req *request) (*toolCall, answer, bool) {
	p, err := content.ParseCallParams(req.params)
	if err != nil {
		return nil, failure(http.StatusBadRequest, codeInvalidParams, err.Error()), false
	}
	var frontier call.Frontier
	if p.Frontier != nil {
		if frontier, err = world.ReadFrontier(p.Frontier); err != nil {
			return nil, failure(http.StatusBadRequest, codeInvalidParams, `params._meta["org.ostiary/frontier"]: `+err.Error()), false
		}
	}
	if req.header != nil {
		if a, ok := e.checkName(req, "name", p.Name); !ok {
			return nil, a, false
		}
	}
	tool := req.export.listing.Load().tools[p.Name]
	if tool == nil {
		e.refused("unknown_tool", req.principal.ID, quoted(p.Name))
		return nil, failure(0, codeInvalidParams, "Unknown tool: "+quoted(p.Name)), false
	}
	if req.header != nil && len(tool.mirrored) > 0 {
		if err := content.CheckMirrored(req.header, tool.mirrored, p.Arguments); err != nil {
			return nil, e.mismatch(req, err.Error()), false
		}
	}
	return &toolCall{request: req, tool: tool, arguments: p.Arguments, frontier: frontier, answered: answeredBy(&p)}, answer{}, true
}

// checkName compares the header with the member of the params that it repeats.
func (e *Endpoint) checkName(req *request, member, name string) (answer, bool) {
	switch names := req.header["Mcp-Name"]; {
	case len(names) == 0:
		return e.mismatch(req, "Mcp-Name header is missing"), false
	case len(names) > 1:
		return e.mismatch(req, "Mcp-Name header is set more than once"), false
	case names[0] == name && content.ValidHeaderValue(name):
		// An exact match is a match, unless it is the encoding of something else; the name itself would then have had to
		// be encoded.
		if decoded, err := content.DecodeHeaderValue(names[0]); err == nil && decoded == name {
			return answer{}, true
		}
		return e.mismatch(req, "Mcp-Name header does not match params."+member), false
	default:
		decoded, err := content.DecodeHeaderValue(names[0])
		if err != nil {
			return e.mismatch(req, "Mcp-Name header is not validly encoded"), false
		}
		if decoded != name {
			return e.mismatch(req, "Mcp-Name header does not match params."+member), false
		}
		return answer{}, true
	}
}

// auditMeta tells which keys of a caller's _meta went no further, because they are the protocol's or ours (S-017).
func (e *Endpoint) auditMeta(req *request, m *content.ReservedMeta) {
	if m.StrippedCount > 0 {
		e.refused("reserved_meta", req.principal.ID, quoted(strings.Join(m.Stripped, " ")))
	}
}

// refused tells the log and the ledger what never became a call. detail must be quoted already.
func (e *Endpoint) refused(kind, principal, detail string) {
	e.log.Warn("request refused", "kind", kind, "principal", principal, "detail", detail)
	e.o.OnRefused(kind, principal, detail)
}

// quoted makes a client's word fit for a message or a log line: ASCII, escaped, bounded (F-52, F-59).
func quoted(s string) string { return strconv.QuoteToASCII(truncated(s, 128)) }

// truncated cuts s to n bytes and says how long it was.
func truncated(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := n
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "… (" + strconv.Itoa(len(s)) + " bytes)"
}
