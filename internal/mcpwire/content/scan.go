package content

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// The scanner walks JSON that has already been parsed strictly, by [ParseFrame] or [CheckValue]. It finds where values
// begin and end and decides nothing else, so a message is parsed once however many readers look into it. On bytes that
// were not checked it may find nonsense, but it never panics and never leaves the slice.

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index after the string that opens at i, or -1.
func skipString(b []byte, i int) int {
	i++
	quote := -1
	for i <= len(b) {
		if quote < i {
			n := bytes.IndexByte(b[i:], '"')
			if n < 0 {
				return -1
			}
			quote = i + n
		}
		slash := bytes.IndexByte(b[i:quote], '\\')
		if slash < 0 {
			return quote + 1
		}
		i += slash + 2
	}
	return -1
}

// skipValue returns the index after the value that begins at i, or -1.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		for depth := 0; i < len(b); {
			switch b[i] {
			case '"':
				if i = skipString(b, i); i < 0 {
					return -1
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return -1
	case ',', ':', '}', ']':
		return -1
	default:
		for i < len(b) {
			switch b[i] {
			case ',', ':', '}', ']', ' ', '\n', '\r', '\t':
				return i
			}
			i++
		}
		return i
	}
}

// cursor reads the members of a raw object one by one.
type cursor struct {
	b    []byte
	i    int
	n    int    // members read so far
	bad  bool   // b is no object
	name []byte // decoded; aliases b unless the key has escapes

	keyStart, valStart, valEnd int
	end                        int // index of the closing brace, once next has returned false
}

func (c *cursor) value() []byte { return c.b[c.valStart:c.valEnd:c.valEnd] }

func (c *cursor) fail() bool {
	c.bad = true
	return false
}

func (c *cursor) next() bool {
	i := skipSpace(c.b, c.i)
	if c.bad || i >= len(c.b) {
		return c.fail()
	}
	switch {
	case c.n == 0:
		if c.b[i] != '{' {
			return c.fail()
		}
		i = skipSpace(c.b, i+1)
	case c.b[i] == ',':
		i = skipSpace(c.b, i+1)
	case c.b[i] != '}':
		return c.fail()
	}
	if i >= len(c.b) {
		return c.fail()
	}
	if c.b[i] == '}' {
		c.i, c.end = i, i
		return false
	}
	if c.b[i] != '"' {
		return c.fail()
	}
	c.keyStart = i
	if i = skipString(c.b, i); i < 0 {
		return c.fail()
	}
	c.name = unquoteName(c.b[c.keyStart:i])
	if i = skipSpace(c.b, i); i >= len(c.b) || c.b[i] != ':' {
		return c.fail()
	}
	c.valStart = skipSpace(c.b, i+1)
	if c.valEnd = skipValue(c.b, c.valStart); c.valEnd < 0 {
		return c.fail()
	}
	c.i = c.valEnd
	c.n++
	return true
}

func unquoteName(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	name, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return raw[1 : len(raw)-1]
	}
	return name
}

// elements calls yield with each element of a raw array until yield says no. It reports whether arr was an array and
// yield never said no.
func elements(arr []byte, yield func(raw []byte) bool) bool {
	i := skipSpace(arr, 0)
	if i >= len(arr) || arr[i] != '[' {
		return false
	}
	if i = skipSpace(arr, i+1); i < len(arr) && arr[i] == ']' {
		return true
	}
	for {
		end := skipValue(arr, i)
		if end < 0 || !yield(arr[i:end:end]) {
			return false
		}
		if i = skipSpace(arr, end); i >= len(arr) {
			return false
		}
		switch arr[i] {
		case ']':
			return true
		case ',':
			i = skipSpace(arr, i+1)
		default:
			return false
		}
	}
}

// kind is the first byte of a raw value: one of { [ " t f n, or 0 for a number, or ? for none.
func kind(raw []byte) byte {
	i := skipSpace(raw, 0)
	if i >= len(raw) {
		return '?'
	}
	if c := raw[i]; c != '-' && (c < '0' || c > '9') {
		return c
	}
	return '0'
}
