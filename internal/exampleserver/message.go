package exampleserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxMessage bounds one message in either direction of either transport.
const maxMessage = 64 << 20

// message is one JSON-RPC request or notification. Its parts are raw and point into the bytes it was parsed from.
type message struct {
	id     jsontext.Value // nil: a notification
	method string
	params object
}

// object is a JSON object, strictly read: no duplicate names, valid UTF-8, values byte for byte.
type object map[string]jsontext.Value

// parseObject reads exactly one JSON object.
func parseObject(b []byte) (object, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(b)) // strict by default
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	if tok.Kind() != '{' {
		return nil, fmt.Errorf("expected an object, got %v", tok.Kind())
	}
	o := object{}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		o[key] = v.Clone()
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return o, nil
}

// errResponse marks a response, which this server never waits for.
var errResponse = errors.New("a response, not a request")

// parseMessage reads one JSON-RPC request or notification.
func parseMessage(b []byte) (message, *rpcError) {
	o, err := parseObject(b)
	if err != nil {
		return message{}, &rpcError{code: codeParse, message: "not one strict JSON object: " + err.Error()}
	}
	var m message
	if id, ok := o["id"]; ok {
		if k := id.Kind(); k != '"' && (k != '0' || bytes.ContainsAny(id, ".eE")) {
			return m, &rpcError{code: codeInvalidRequest, message: "the id is neither a string nor an integer"}
		}
		m.id = id
	}
	if v, ok := o.str("jsonrpc"); !ok || v != "2.0" {
		return m, &rpcError{code: codeInvalidRequest, message: "jsonrpc is not 2.0"}
	}
	if _, isResult := o["result"]; isResult || o["error"] != nil {
		return m, &rpcError{code: codeInvalidRequest, message: "a response to nothing that was asked", cause: errResponse}
	}
	method, ok := o.str("method")
	if !ok || method == "" {
		return m, &rpcError{code: codeInvalidRequest, message: "there is no method"}
	}
	m.method = method
	if raw, ok := o["params"]; ok {
		if m.params, err = parseObject(raw); err != nil {
			return m, &rpcError{code: codeInvalidRequest, message: "params is not an object"}
		}
	}
	return m, nil
}

func (m *message) meta() object { return m.params.object("_meta") }

// object returns a member that is an object; nil if it is not there or something else.
func (o object) object(name string) object {
	if v, ok := o[name]; ok && v.Kind() == '{' {
		if sub, err := parseObject(v); err == nil {
			return sub
		}
	}
	return nil
}

// str returns a member that is a string.
func (o object) str(name string) (string, bool) {
	v, ok := o[name]
	if !ok || v.Kind() != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, v)
	return string(b), err == nil
}

// integer returns a member that is written as an integer and lies between low and high; fallback if it is not there.
func (o object) integer(name string, fallback, low, high int) (int, *rpcError) {
	v, ok := o[name]
	if !ok {
		return fallback, nil
	}
	n, err := strconv.Atoi(string(v))
	if err != nil || n < low || n > high {
		return 0, invalidParams(fmt.Sprintf("%s: expected an integer from %d to %d", name, low, high))
	}
	return n, nil
}

func (o object) isTrue(name string) bool { return string(o[name]) == "true" }

// JSON-RPC and MCP error codes.
const (
	codeParse              = -32700
	codeInvalidRequest     = -32600
	codeMethodNotFound     = -32601
	codeInvalidParams      = -32602
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
	codeURLElicitation     = -32042 // 2025-11-25 only; sent on request, to see it pass through
)

// rpcError is an error response, not yet addressed to a request.
type rpcError struct {
	code    int
	message string
	data    []byte // raw JSON, nil: none
	cause   error
}

func invalidParams(msg string) *rpcError { return &rpcError{code: codeInvalidParams, message: msg} }

func (e *rpcError) append(b, id []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0"`...)
	if id != nil {
		b = append(append(b, `,"id":`...), id...)
	}
	b = append(b, `,"error":{"code":`...)
	b = strconv.AppendInt(b, int64(e.code), 10)
	b = append(append(b, `,"message":`...), quote(e.message)...)
	if e.data != nil {
		b = append(append(b, `,"data":`...), e.data...)
	}
	return append(b, `}}`...)
}

// quote writes a JSON string; invalid UTF-8 becomes the replacement character.
func quote(s string) []byte {
	b, _ := jsontext.AppendQuote(nil, s) // the error only says that something was replaced
	return b
}

// notification writes a notification with raw params.
func notification(method string, params []byte) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","method":`), quote(method)...)
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}
