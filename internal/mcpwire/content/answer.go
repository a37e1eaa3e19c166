package content

import "github.com/ostiary/ostiary/call"

// Result types that the core protocol knows.
const (
	resultComplete      = "complete"
	resultInputRequired = "input_required"
)

// CallAnswer reads the answer to a tools/call: a result object or an error of a parsed message. An answer came, so its
// delivery is confirmed, whatever it is worth. A result that is of no known and negotiated shape is no result: its fault is
// result_invalid (S-002, S-055, R3.8). Nothing is decoded or copied but the few fields that decide.
//
// In the handshake era (modern is false) a result has no type: one that claims another than "complete" was not negotiated.
func CallAnswer(result []byte, rpcErr *call.ProviderError, modern bool) call.Answer {
	a := call.Answer{Delivery: call.Confirmed}
	if rpcErr != nil {
		a.Error = rpcErr
		return a
	}
	a.ResultType = resultComplete
	var inputRequests, requestState []byte
	detail := ""
	c := cursor{b: result}
	for c.next() {
		v := c.value()
		k := kind(v)
		switch string(c.name) {
		case "resultType":
			t, ok := String(v)
			if !ok || t != resultComplete && (t != resultInputRequired || !modern) {
				detail = "a resultType that was not negotiated"
			}
			a.ResultType = t
		case "isError":
			if k != 't' && k != 'f' {
				detail = "isError is no boolean"
			}
			a.IsError = k == 't'
		case "content":
			if !elements(v, isContentBlock) {
				detail = "content is no list of blocks with a type"
			}
		case "_meta":
			if k != '{' {
				detail = "_meta is no object"
			}
		case "inputRequests":
			inputRequests = v
		case "requestState":
			requestState = v
		case "task":
			if k == '{' && Member(v, "taskId") != nil {
				detail = "a task handle that was not negotiated"
			}
		}
	}
	if detail == "" && a.ResultType == resultInputRequired {
		detail = inputRequiredFault(inputRequests, requestState)
	}
	if c.bad {
		detail = "the result is no object"
	}
	if detail != "" {
		return call.Answer{Delivery: call.Confirmed, Fault: call.CodeResultInvalid, Detail: detail}
	}
	a.Result = result
	return a
}

func isContentBlock(raw []byte) bool {
	t := Member(raw, "type")
	return t != nil && kind(t) == '"'
}

// inputRequiredFault says what is wrong with an input_required result; "" if nothing is: it must carry requests or state.
func inputRequiredFault(requests, state []byte) string {
	if requests != nil && kind(requests) != '{' {
		return "inputRequests is no object"
	}
	if state != nil && kind(state) != '"' {
		return "requestState is no string"
	}
	if state == nil {
		if c := (cursor{b: requests}); requests == nil || !c.next() {
			return "input_required without inputRequests or requestState"
		}
	}
	return ""
}
