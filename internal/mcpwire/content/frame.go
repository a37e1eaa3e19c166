package content

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
)

// DefaultDepth bounds how deep a message may nest. No MCP message known to us nests deeper than about sixty levels, and
// 512 is the smallest bound among the widely used JSON parsers, so that what passes here can be read by everyone behind us.
const DefaultDepth = 512

// DefaultSize bounds a message in bytes where no other bound was given.
const DefaultSize = 16 << 20

// FrameLimits bound one message. Zero fields take [DefaultSize] and [DefaultDepth].
type FrameLimits struct {
	Size  int64
	Depth int
}

func (l FrameLimits) withDefaults() FrameLimits {
	if l.Size <= 0 {
		l.Size = DefaultSize
	}
	if l.Depth <= 0 {
		l.Depth = DefaultDepth
	}
	return l
}

// FrameKind says what a message is.
type FrameKind uint8

// The kinds of JSON-RPC messages.
const (
	Request FrameKind = iota + 1
	Notification
	Response
	ErrorResponse
)

var frameKindNames = [...]string{"invalid", "request", "notification", "response", "error response"}

func (k FrameKind) String() string { return frameKindNames[min(int(k), len(frameKindNames)-1)] }

// Frame is one JSON-RPC message, parsed strictly. The raw fields alias the bytes that were parsed, and keep them exactly.
type Frame struct {
	Kind   FrameKind
	ID     []byte // a JSON string or integer; nil: a notification, or an error that names no request
	Method string
	Params []byte // a JSON object, or nil
	Result []byte // a JSON object
	Error  *call.ProviderError
}

// FrameFault says in which way bytes are no message.
type FrameFault uint8

// The faults of a message: it is no strict JSON, it is no JSON-RPC message of MCP, or it exceeds a bound.
const (
	FaultSyntax FrameFault = iota
	FaultInvalid
	FaultLimit
)

// FrameError says why bytes are no message. Reason holds nothing of what the peer sent.
type FrameError struct {
	Fault  FrameFault
	Reason string
	ID     []byte // the request's id if it could be read, so that it can be answered
}

func (e *FrameError) Error() string { return "message: " + e.Reason }

// CheckValue parses one raw JSON value strictly: no duplicate keys at any level, valid UTF-8, no lone surrogates, nothing
// after it, and within the limits. The error is a [*FrameError].
func CheckValue(b []byte, limit FrameLimits) error {
	limit = limit.withDefaults()
	if int64(len(b)) > limit.Size {
		return &FrameError{Fault: FaultLimit, Reason: fmt.Sprintf("larger than %d bytes", limit.Size)}
	}
	if !withinDepth(b, limit.Depth) {
		return &FrameError{Fault: FaultLimit, Reason: fmt.Sprintf("nested deeper than %d levels", limit.Depth)}
	}
	if jsontext.Value(b).IsValid() {
		return nil
	}
	return &FrameError{Fault: FaultSyntax, Reason: syntaxReason(b)}
}

// syntaxReason looks at refused bytes once more, to say why in words that quote none of them.
func syntaxReason(b []byte) string {
	if !utf8.Valid(b) {
		return "invalid UTF-8"
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(b))
	err := d.SkipValue()
	if err == nil {
		return "bytes after the end of the message"
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return "duplicate key"
	}
	if se, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return "no valid JSON at byte " + strconv.FormatInt(se.ByteOffset, 10)
	}
	return "no valid JSON"
}

// withinDepth counts brackets outside strings. Most messages have fewer brackets than the bound has levels, which two
// counts at memory speed show.
func withinDepth(b []byte, limit int) bool {
	if bytes.Count(b, []byte{'{'})+bytes.Count(b, []byte{'['}) <= limit {
		return true
	}
	for i, depth := 0, 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = skipString(b, i) - 1; i < 0 {
				return true // the parser will say what is wrong with it
			}
		case '{', '[':
			if depth++; depth > limit {
				return false
			}
		case '}', ']':
			depth--
		}
	}
	return true
}

// envelopeKeys are the keys of a JSON-RPC envelope and errorKeys those of its error. A key that a laxer parser could take
// for one of them makes the message ambiguous, and ambiguous messages are refused (R3.9).
var (
	envelopeKeys = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	errorKeys    = []string{"code", "message", "data"}
)

// resembles says whether key would be known if case were folded, or if it ended at its first NUL.
func resembles(key []byte, known []string) bool {
	if len(key) > 64 {
		key = key[:64]
	}
	s, _, _ := strings.Cut(string(key), "\x00")
	for _, k := range known {
		if strings.EqualFold(s, k) {
			return true
		}
	}
	return false
}

// ParseFrame parses one JSON-RPC message strictly, in one pass (R3.9). It refuses batches, duplicate keys at any level,
// invalid UTF-8, keys that only resemble those of the envelope, ids that are neither string nor integer, and messages that
// are two things at once. Other keys of the envelope are dropped. The error is a [*FrameError].
func ParseFrame(b []byte, limit FrameLimits) (Frame, error) {
	if err := CheckValue(b, limit); err != nil {
		return Frame{}, err
	}
	var f Frame
	var id, method, params, result, rpcErr, version []byte
	var reason string
	c := cursor{b: b}
	for c.next() {
		switch string(c.name) {
		case "jsonrpc":
			version = c.value()
		case "id":
			id = c.value()
		case "method":
			method = c.value()
		case "params":
			params = c.value()
		case "result":
			result = c.value()
		case "error":
			rpcErr = c.value()
		default:
			if resembles(c.name, envelopeKeys) {
				reason = "a key that resembles one of the envelope"
			}
		}
	}
	goodID := isID(id)
	switch {
	case c.bad && kind(b) == '[':
		reason = "a batch"
	case c.bad:
		reason = "not an object"
	case reason != "":
	case string(version) != `"2.0"`:
		reason = "jsonrpc is not 2.0"
	case method != nil && (result != nil || rpcErr != nil):
		reason = "both a request and a response"
	case result != nil && rpcErr != nil:
		reason = "both a result and an error"
	case method != nil:
		f, reason = requestFrame(id, goodID, method, params)
	case result != nil && !goodID:
		reason = "a result without a string or integer id"
	case result != nil && kind(result) != '{':
		reason = "a result that is not an object"
	case result != nil:
		f = Frame{Kind: Response, ID: id, Result: result}
	case rpcErr != nil && id != nil && !goodID && kind(id) != 'n':
		reason = "an id that is neither string nor integer"
	case rpcErr != nil:
		if !goodID {
			id = nil // the peer could not read our id
		}
		f = Frame{Kind: ErrorResponse, ID: id}
		f.Error, reason = parseError(rpcErr)
	default:
		reason = "neither a request nor a response"
	}
	if reason != "" {
		if !goodID {
			id = nil
		}
		return Frame{}, &FrameError{Fault: FaultInvalid, Reason: reason, ID: id}
	}
	return f, nil
}

func requestFrame(id []byte, goodID bool, rawMethod, params []byte) (Frame, string) {
	method, ok := String(rawMethod)
	switch {
	case !ok || method == "":
		return Frame{}, "a method that is not a name"
	case id != nil && !goodID:
		return Frame{}, "an id that is neither string nor integer"
	case params != nil && kind(params) != '{':
		return Frame{}, "params that are not an object"
	case id == nil:
		return Frame{Kind: Notification, Method: method, Params: params}, ""
	default:
		return Frame{Kind: Request, ID: id, Method: method, Params: params}, ""
	}
}

func parseError(raw []byte) (*call.ProviderError, string) {
	e := &call.ProviderError{}
	var haveCode, haveMessage bool
	c := cursor{b: raw}
	for c.next() {
		switch string(c.name) {
		case "code":
			n, err := strconv.ParseInt(string(c.value()), 10, 64)
			e.Code, haveCode = n, err == nil
		case "message":
			e.Message, haveMessage = String(c.value())
		case "data":
			e.Data = c.value()
		default:
			if resembles(c.name, errorKeys) {
				return nil, "an error key that resembles a known one"
			}
		}
	}
	switch {
	case c.bad:
		return nil, "an error that is not an object"
	case !haveCode:
		return nil, "an error without an integer code"
	case !haveMessage:
		return nil, "an error without a message"
	}
	return e, ""
}

// isID says whether a raw value can be a request id: a string or an integer, never null, a fraction or an exponent (S-001).
func isID(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	if raw[0] == '"' {
		return true
	}
	digits := bytes.TrimPrefix(raw, []byte{'-'})
	for _, d := range digits {
		if d < '0' || d > '9' {
			return false
		}
	}
	return len(digits) > 0
}
