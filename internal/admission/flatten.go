package admission

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxLeaves bounds how many values of one definition are shown.
const maxLeaves = 5000

// leaf is one value of a definition at its JSON pointer: a string's text, or the raw bytes of any other.
type leaf struct {
	at   string
	text string
	kind jsontext.Kind
}

// flatten lists the leaves of a JSON value in their order; empty containers are leaves. A value that cannot be read is one
// leaf of its bytes, and what is beyond the bound is one leaf at the end, so that nothing is left out in silence.
func flatten(raw []byte) []leaf {
	if len(raw) == 0 {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	out, err := appendLeaves(nil, dec, "")
	if err != nil {
		return []leaf{{text: string(raw)}}
	}
	if len(out) > maxLeaves {
		out = append(out[:maxLeaves], leaf{at: "(beyond " + strconv.Itoa(maxLeaves) + " values)", text: string(raw)})
	}
	return out
}

func appendLeaves(out []leaf, dec *jsontext.Decoder, at string) ([]leaf, error) {
	if len(out) > maxLeaves {
		return out, dec.SkipValue()
	}
	kind := dec.PeekKind()
	if kind != '{' && kind != '[' {
		v, err := dec.ReadValue()
		if err != nil {
			return out, err
		}
		text := string(v)
		if kind == '"' {
			b, err := jsontext.AppendUnquote(nil, v)
			if err != nil {
				return out, err
			}
			text = string(b)
		}
		return append(out, leaf{at, text, kind}), nil
	}
	if _, err := dec.ReadToken(); err != nil {
		return out, err
	}
	n := 0
	for ; dec.PeekKind() != '}' && dec.PeekKind() != ']'; n++ {
		name := strconv.Itoa(n)
		if kind == '{' {
			t, err := dec.ReadToken()
			if err != nil {
				return out, err
			}
			name = strings.NewReplacer("~", "~0", "/", "~1").Replace(t.String())
		}
		var err error
		if out, err = appendLeaves(out, dec, at+"/"+name); err != nil {
			return out, err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return out, err
	}
	if n == 0 {
		out = append(out, leaf{at, map[jsontext.Kind]string{'{': "{}", '[': "[]"}[kind], kind})
	}
	return out, nil
}
