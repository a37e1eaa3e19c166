package content

import "errors"

// CallParams are the params of a tools/call, as a caller sent them. The raw fields alias the message.
type CallParams struct {
	Name           string
	Arguments      []byte // a JSON object, or nil: absent
	Meta           []byte // _meta, a JSON object, or nil: absent
	ProgressToken  []byte // from _meta: a JSON string or number, or nil
	Frontier       []byte // from _meta: any JSON value, or nil (R5.6)
	InputResponses []byte // a JSON object, or nil: the answers of a multi round-trip retry
	RequestState   []byte // a JSON string, or nil: to be echoed byte for byte
}

// The faults of tools/call params. They are fit for a caller.
var (
	ErrParams         = errors.New("params must be an object")
	ErrToolName       = errors.New("params.name must be a string that is not empty")
	ErrArguments      = errors.New("params.arguments must be an object")
	ErrMeta           = errors.New("params._meta must be an object")
	ErrProgressToken  = errors.New("params._meta.progressToken must be a string or a number")
	ErrInputResponses = errors.New("params.inputResponses must be an object")
	ErrRequestState   = errors.New("params.requestState must be a string")
)

// ParseCallParams reads the params of a tools/call out of a parsed message. Members that MCP does not define are dropped,
// so that what the decision is made on is all that is sent on.
func ParseCallParams(params []byte) (CallParams, error) {
	var p CallParams
	var nameOK bool
	c := cursor{b: params}
	for c.next() {
		v := c.value()
		k := kind(v)
		switch string(c.name) {
		case "name":
			p.Name, nameOK = String(v)
		case "arguments":
			if k != '{' {
				return CallParams{}, ErrArguments
			}
			p.Arguments = v
		case "_meta":
			if k != '{' {
				return CallParams{}, ErrMeta
			}
			p.Meta = v
		case "inputResponses":
			if k != '{' {
				return CallParams{}, ErrInputResponses
			}
			p.InputResponses = v
		case "requestState":
			if k != '"' {
				return CallParams{}, ErrRequestState
			}
			p.RequestState = v
		}
	}
	if c.bad {
		return CallParams{}, ErrParams
	}
	if !nameOK || p.Name == "" {
		return CallParams{}, ErrToolName
	}
	if p.Meta != nil {
		p.Frontier = Member(p.Meta, keyFrontier)
		if p.ProgressToken = Member(p.Meta, keyProgressToken); p.ProgressToken != nil {
			if k := kind(p.ProgressToken); k != '"' && k != '0' {
				return CallParams{}, ErrProgressToken
			}
		}
	}
	return p, nil
}
