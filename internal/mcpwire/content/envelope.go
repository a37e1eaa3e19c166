package content

import (
	"bytes"
	"strconv"

	"github.com/ostiary/ostiary/call"
)

// Envelopes are written anew from decided values, never copied from a peer. Values keep their bytes, except that line
// breaks between their tokens go: in valid JSON they can only be insignificant there, and a message is one line on stdio
// and one data field on an event stream (S-021).

// IDString decodes a raw id that is a string; our own ids all are. ok is false for integers and everything else.
func IDString(raw []byte) (string, bool) { return String(raw) }

// AppendRequest appends a request as one line, without a line break at its end. A nil params is left out.
func AppendRequest(dst []byte, id, method string, params []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = AppendString(dst, id)
	dst = append(dst, `,"method":`...)
	dst = AppendString(dst, method)
	return appendParams(dst, params)
}

// AppendRawRequest is [AppendRequest] with a raw id.
func AppendRawRequest(dst, id []byte, method string, params []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = appendLine(dst, id)
	dst = append(dst, `,"method":`...)
	dst = AppendString(dst, method)
	return appendParams(dst, params)
}

// AppendNotification appends a notification as one line. A nil params is left out.
func AppendNotification(dst []byte, method string, params []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":`...)
	dst = AppendString(dst, method)
	return appendParams(dst, params)
}

func appendParams(dst, params []byte) []byte {
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = appendLine(dst, params)
	}
	return append(dst, '}')
}

// AppendResult appends a response with a result as one line.
func AppendResult(dst, rawID, result []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = appendLine(dst, rawID)
	dst = append(dst, `,"result":`...)
	dst = appendLine(dst, result)
	return append(dst, '}')
}

// AppendError appends a response with an error as one line. Without an id, which means that the request's could not be
// read, the key is left out: MCP has no null ids.
func AppendError(dst, rawID []byte, e *call.ProviderError) []byte {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if rawID != nil {
		dst = append(dst, `"id":`...)
		dst = appendLine(dst, rawID)
		dst = append(dst, ',')
	}
	dst = append(dst, `"error":{"code":`...)
	dst = strconv.AppendInt(dst, e.Code, 10)
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, e.Message)
	if e.Data != nil {
		dst = append(dst, `,"data":`...)
		dst = appendLine(dst, e.Data)
	}
	return append(dst, "}}"...)
}

// AppendFrame appends a parsed message again.
func AppendFrame(dst []byte, f Frame) []byte {
	switch f.Kind {
	case Request:
		return AppendRawRequest(dst, f.ID, f.Method, f.Params)
	case Notification:
		return AppendNotification(dst, f.Method, f.Params)
	case Response:
		return AppendResult(dst, f.ID, f.Result)
	case ErrorResponse:
		return AppendError(dst, f.ID, f.Error)
	}
	return dst
}

func appendLine(dst, raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return append(dst, raw...)
	}
	for _, c := range raw {
		if c != '\n' && c != '\r' {
			dst = append(dst, c)
		}
	}
	return dst
}
