package provider

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// instance reads a JSON value for the validator; nothing of it is ever sent on. An integer stays exact as far as 64 bits
// go; what is larger is compared as a float, and what no float can hold is refused.
//
// raw must be valid JSON: the edge has parsed it strictly already, and this reader is the second to look at every byte of
// large arguments. Invalid JSON gives an error or a wrong instance, never a panic. Strings without an escape are raw's own
// bytes: raw must not change while the instance is in use.
func instance(raw []byte) (any, error) {
	r := instanceReader{raw: raw}
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if r.space(); r.at != len(raw) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// maxInstanceDepth keeps the reader's stack bounded whatever it is given.
const maxInstanceDepth = 10_000

var errCut = errors.New("the JSON is cut short or malformed")

type instanceReader struct {
	raw []byte
	at  int
}

func (r *instanceReader) space() {
	for r.at < len(r.raw) {
		switch r.raw[r.at] {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return
		}
	}
}

// next skips space and says what comes; 0 at the end.
func (r *instanceReader) next() byte {
	if r.space(); r.at < len(r.raw) {
		return r.raw[r.at]
	}
	return 0
}

func (r *instanceReader) value(depth int) (any, error) {
	if depth > maxInstanceDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxInstanceDepth)
	}
	switch c := r.next(); {
	case c == '"':
		return r.text()
	case c == '{':
		return r.object(depth)
	case c == '[':
		return r.array(depth)
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	}
	for literal, v := range literals {
		if bytes.HasPrefix(r.raw[r.at:], []byte(literal)) {
			r.at += len(literal)
			return v, nil
		}
	}
	return nil, errCut
}

var literals = map[string]any{"true": true, "false": false, "null": nil}

func (r *instanceReader) text() (string, error) {
	begin := r.at
	escaped := false
	for i := begin + 1; ; {
		end := bytes.IndexByte(r.raw[i:], '"')
		if end < 0 {
			return "", errCut
		}
		end += i
		if bytes.IndexByte(r.raw[i:end], '\\') >= 0 {
			escaped = true
			slashes := 0
			for end-slashes > begin+1 && r.raw[end-slashes-1] == '\\' {
				slashes++
			}
			if slashes%2 == 1 { // the quote is escaped
				i = end + 1
				continue
			}
		}
		r.at = end + 1
		if !escaped {
			return unsafe.String(unsafe.SliceData(r.raw[begin+1:end]), end-begin-1), nil
		}
		s, err := jsontext.AppendUnquote(nil, r.raw[begin:end+1])
		return string(s), err
	}
}

func (r *instanceReader) number() (any, error) {
	begin := r.at
	for r.at < len(r.raw) && bytes.IndexByte([]byte("+-.0123456789Ee"), r.raw[r.at]) >= 0 {
		r.at++
	}
	s := string(r.raw[begin:r.at])
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		return u, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s is too large", clip(s, 40))
	}
	return f, nil
}

func (r *instanceReader) array(depth int) (any, error) {
	r.at++
	list := []any{}
	if r.next() == ']' {
		r.at++
		return list, nil
	}
	for {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		switch r.next() {
		case ',':
			r.at++
		case ']':
			r.at++
			return list, nil
		default:
			return nil, errCut
		}
	}
}

func (r *instanceReader) object(depth int) (any, error) {
	r.at++
	m := map[string]any{}
	if r.next() == '}' {
		r.at++
		return m, nil
	}
	for {
		if r.next() != '"' {
			return nil, errCut
		}
		name, err := r.text()
		if err != nil {
			return nil, err
		}
		if r.next() != ':' {
			return nil, errCut
		}
		r.at++
		if m[name], err = r.value(depth + 1); err != nil {
			return nil, err
		}
		switch r.next() {
		case ',':
			r.at++
		case '}':
			r.at++
			return m, nil
		default:
			return nil, errCut
		}
	}
}
