package contract

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// The extensions, as they stand in capabilities.extensions. The settings of both are {"version": 1} and nothing else.
const (
	ToolContract = "org.aurorabot/tool-contract"
	WorldEvents  = "org.aurorabot/world-events"
)

func settingsV1() map[string]any { return map[string]any{"version": 1} }

// decodedV1 judges settings that a decoder has been at. It cannot tell 1.0 from 1: that is what [sanitise] is for.
func decodedV1(settings any) bool {
	m, ok := settings.(map[string]any)
	return ok && len(m) == 1 && (m["version"] == float64(1) || m["version"] == 1)
}

// isV1 judges settings by their own bytes: {"version": 1} is the only value that counts, however it is spaced.
func isV1(settings jsontext.Value) bool {
	n, one := 0, false
	members(settings, func(name string, value jsontext.Value, _ int) {
		n++
		one = name == "version" && string(value) == "1"
	})
	return n == 1 && one
}

// said is which extensions a client offers in one message.
type said struct{ contract, events bool }

// sanitise reads the client's settings of both extensions under the path, and puts null in the place of each that is not
// strictly version 1, so that whoever decodes the parameters later finds nothing there to misread.
func sanitise(params []byte, path ...string) ([]byte, said) {
	var s said
	for _, e := range []struct {
		name string
		ok   *bool
	}{{ToolContract, &s.contract}, {WorldEvents, &s.events}} {
		spans := find(params, 0, append(slices.Clone(path), "extensions", e.name))
		if len(spans) == 1 && isV1(params[spans[0].from:spans[0].to]) {
			*e.ok = true
			continue
		}
		for _, at := range slices.Backward(spans) {
			params = slices.Concat(params[:at.from], []byte("null"), params[at.to:])
		}
	}
	return params, s
}

// text is the string at a path; "" if there is none, or more than one.
func text(params []byte, path ...string) string {
	spans := find(params, 0, path)
	if len(spans) != 1 {
		return ""
	}
	v := jsontext.Value(params[spans[0].from:spans[0].to])
	if v.Kind() != '"' {
		return ""
	}
	s, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return ""
	}
	return string(s)
}

type span struct{ from, to int }

// find lists where the values at a path of member names are. A name that is there twice has two values.
func find(raw jsontext.Value, base int, path []string) (spans []span) {
	members(raw, func(name string, value jsontext.Value, at int) {
		switch {
		case name != path[0]:
		case len(path) == 1:
			spans = append(spans, span{base + at, base + at + len(value)})
		default:
			spans = append(spans, find(value, base+at, path[1:])...)
		}
	})
	return spans
}

// members yields the members of an object with the places of their values, as far as it can be read; of anything else none.
func members(raw jsontext.Value, yield func(name string, value jsontext.Value, at int)) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return
	}
	for dec.PeekKind() == '"' {
		t, err := dec.ReadToken()
		if err != nil {
			return
		}
		name := t.String()
		v, err := dec.ReadValue()
		if err != nil {
			return
		}
		yield(name, v, int(dec.InputOffset())-len(v))
	}
}
