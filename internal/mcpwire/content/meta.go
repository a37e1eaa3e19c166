package content

import (
	"fmt"
	"strings"
)

// Keys of _meta that the protocol reserves for itself, and ours.
const (
	keyProgressToken      = "progressToken"
	keyProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	keyClientInfo         = "io.modelcontextprotocol/clientInfo"
	keyClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	keyLogLevel           = "io.modelcontextprotocol/logLevel"
	keySubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	keyTraceparent        = "traceparent"
	keyTracestate         = "tracestate"
	keyBaggage            = "baggage"

	ownPrefix   = "org.ostiary/"
	keyFrontier = ownPrefix + "frontier"
	keyMissed   = ownPrefix + "missed"
	keyCall     = ownPrefix + "call"

	keyProvenance = ownPrefix + "provenance"
)

// KeyOutcome is under what a client is told the outcome of a call.
const KeyOutcome = ownPrefix + "outcome"

// maxStripped bounds the keys that SplitMeta names; the rest is only counted.
const maxStripped = 16

// ReservedMeta is what a peer said in the reserved keys of a _meta. Raw fields alias it; nil or "" means absent.
type ReservedMeta struct {
	ProtocolVersion    string
	ClientInfo         []byte // a JSON object; self-reported, for display only (R1.6)
	ClientCapabilities []byte // a JSON object
	LogLevel           string
	ProgressToken      []byte // a JSON string or number
	SubscriptionID     []byte // any JSON value

	Traceparent string // valid, or ""
	Tracestate  string
	Baggage     string

	Collect string // _meta["org.ostiary/call"], the earlier call whose held result is asked for

	// Stripped names keys that were taken out and mean nothing here, for the audit (S-017): the first few, and how many.
	Stripped      []string
	StrippedCount int
}

// SplitMeta takes the reserved keys out of a _meta object: those of MCP (S-017), progressToken and our own. What remains,
// the peer's own keys and valid trace context, is rest, byte for byte if nothing had to go; nil if nothing remains. Trace
// context that is not in W3C form is dropped (S-018). A reserved key of a wrong type is an error.
func SplitMeta(meta []byte) (r ReservedMeta, rest []byte, err error) {
	if meta == nil {
		return r, nil, nil
	}
	c := cursor{b: meta}
	for c.next() {
		if err := r.take(c.name, c.value()); err != nil {
			return ReservedMeta{}, nil, err
		}
	}
	if c.bad {
		return ReservedMeta{}, nil, ErrMeta
	}
	if r.Traceparent == "" {
		r.Tracestate = "" // W3C: it means nothing without a traceparent
	}
	return r, r.rest(meta), nil
}

// rest is a _meta without what take took; nil if nothing remains, meta itself if nothing goes.
func (r *ReservedMeta) rest(meta []byte) []byte {
	rest := make([]byte, 0, len(meta))
	kept := 0
	c := cursor{b: meta}
	for c.next() {
		if !r.keeps(string(c.name)) {
			continue
		}
		if kept++; kept == 1 {
			rest = append(rest, '{')
		} else {
			rest = append(rest, ',')
		}
		rest = append(rest, meta[c.keyStart:c.valEnd]...)
	}
	switch kept {
	case 0:
		return nil
	case c.n:
		return meta
	}
	return append(rest, '}')
}

func (r *ReservedMeta) keeps(name string) bool {
	switch name {
	case keyTraceparent:
		return r.Traceparent != ""
	case keyTracestate:
		return r.Tracestate != ""
	case keyBaggage:
		return r.Baggage != ""
	}
	return !ReservedMetaKey(name)
}

// take notes a member of a _meta that means something here.
func (r *ReservedMeta) take(name, v []byte) error {
	wrong := func(want string) error { return fmt.Errorf("params._meta[%q] must be %s", name, want) }
	k := kind(v)
	switch string(name) {
	case keyProgressToken:
		if k != '"' && k != '0' {
			return ErrProgressToken
		}
		r.ProgressToken = v
	case keyProtocolVersion:
		if k != '"' {
			return wrong("a string")
		}
		r.ProtocolVersion, _ = String(v)
	case keyClientInfo:
		if k != '{' {
			return wrong("an object")
		}
		r.ClientInfo = v
	case keyClientCapabilities:
		if k != '{' {
			return wrong("an object")
		}
		r.ClientCapabilities = v
	case keyLogLevel:
		if k != '"' {
			return wrong("a string")
		}
		r.LogLevel, _ = String(v)
	case keySubscriptionID:
		r.SubscriptionID = v
	case keyFrontier: // CallParams has it; nothing else may state one
	case keyCall:
		if k != '"' {
			return wrong("a string")
		}
		if r.Collect, _ = String(v); r.Collect == "" {
			return wrong("the id of a call")
		}
	case keyTraceparent:
		if s, _ := String(v); validTraceparent(s) {
			r.Traceparent = s
		}
	case keyTracestate:
		if s, _ := String(v); validTracestate(s) {
			r.Tracestate = s
		}
	case keyBaggage:
		if s, _ := String(v); validBaggage(s) {
			r.Baggage = s
		}
	default:
		if !ReservedMetaKey(string(name)) {
			return nil
		}
		if r.StrippedCount++; len(r.Stripped) < maxStripped {
			r.Stripped = append(r.Stripped, string(name[:min(len(name), 128)]))
		}
	}
	return nil
}

// ReservedMetaKey says whether a _meta key belongs to MCP or to this runtime, so that no peer may set it through us. MCP
// reserves a prefix whose second label is modelcontextprotocol or mcp (2026-07-28), or whose last but one is (2025-11-25).
func ReservedMetaKey(key string) bool {
	if key == keyProgressToken {
		return true
	}
	prefix, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	if strings.EqualFold(prefix+"/", ownPrefix) {
		return true
	}
	labels := strings.Split(prefix, ".")
	if len(labels) < 2 {
		return false
	}
	for _, l := range [...]string{labels[1], labels[len(labels)-2]} {
		if strings.EqualFold(l, "modelcontextprotocol") || strings.EqualFold(l, "mcp") {
			return true
		}
	}
	return false
}

// RequestMeta is what our side says in the _meta of a request. Zero fields are left out; a request of a handshake-era
// session carries at most a progress token.
type RequestMeta struct {
	ProtocolVersion    string
	ClientInfo         []byte // a JSON object
	ClientCapabilities []byte // a JSON object
	ProgressToken      []byte // a JSON string or number
	LogLevel           string
}

// AppendRequestMeta appends a _meta object: the caller's own keys, as [SplitMeta] left them in rest (nil: none), and ours
// (R1.6). All of ours are reserved, so none of the caller's own is overwritten. It appends "{}" if there is nothing to say.
func AppendRequestMeta(dst, rest []byte, m RequestMeta) []byte {
	start := len(dst)
	dst = append(dst, '{')
	for c := (cursor{b: rest}); c.next(); {
		if ReservedMetaKey(string(c.name)) {
			continue
		}
		if len(dst) > start+1 {
			dst = append(dst, ',')
		}
		dst = append(dst, rest[c.keyStart:c.valEnd]...)
	}
	o := &Object{buf: dst, open: len(dst) > start+1}
	if m.ProtocolVersion != "" {
		o.String(keyProtocolVersion, m.ProtocolVersion)
	}
	if m.ClientInfo != nil {
		o.Raw(keyClientInfo, m.ClientInfo)
	}
	if m.ClientCapabilities != nil {
		o.Raw(keyClientCapabilities, m.ClientCapabilities)
	}
	if m.LogLevel != "" {
		o.String(keyLogLevel, m.LogLevel)
	}
	if m.ProgressToken != nil {
		o.Raw(keyProgressToken, m.ProgressToken)
	}
	return o.End()
}

// SubscriptionID is the subscription that a notification's params name in their _meta, raw; nil if none (S-025).
func SubscriptionID(params []byte) []byte {
	if meta := Member(params, "_meta"); meta != nil {
		return Member(meta, keySubscriptionID)
	}
	return nil
}
