package content

import (
	"bytes"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Members reads a raw object that was parsed strictly before: decoded keys, raw values that alias obj. It yields nothing
// if obj is no object.
func Members(obj []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for c := (cursor{b: obj}); c.next(); {
			if !yield(string(c.name), c.value()) {
				return
			}
		}
	}
}

// Member is the raw value of one key of a raw object, or nil if there is none.
func Member(obj []byte, key string) []byte {
	for c := (cursor{b: obj}); c.next(); {
		if string(c.name) == key {
			return c.value()
		}
	}
	return nil
}

// Elements reads a raw array that was parsed strictly before. It yields nothing if arr is no array.
func Elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) { elements(arr, yield) }
}

// IsObject says whether a checked raw value is an object.
func IsObject(raw []byte) bool { return kind(raw) == '{' }

// IsArray says whether a checked raw value is an array.
func IsArray(raw []byte) bool { return kind(raw) == '[' }

// String decodes a raw JSON string; ok is false if raw is none.
func String(raw []byte) (s string, ok bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 && raw[len(raw)-1] == '"' {
		return string(raw[1 : len(raw)-1]), true
	}
	b, err := jsontext.AppendUnquote(nil, raw)
	return string(b), err == nil
}

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// Object appends a JSON object to a buffer, member by member.
type Object struct {
	buf  []byte
	open bool // a member has been written
}

// NewObject begins an object at the end of dst.
func NewObject(dst []byte) *Object { return &Object{buf: append(dst, '{')} }

func (o *Object) key(key string) {
	if o.open {
		o.buf = append(o.buf, ',')
	}
	o.open = true
	o.buf = append(AppendString(o.buf, key), ':')
}

// Raw adds a member with a checked raw value.
func (o *Object) Raw(key string, value []byte) *Object {
	o.key(key)
	o.buf = append(o.buf, value...)
	return o
}

// String adds a member with a string.
func (o *Object) String(key, value string) *Object {
	o.key(key)
	o.buf = AppendString(o.buf, value)
	return o
}

// Bool adds a member with a boolean.
func (o *Object) Bool(key string, value bool) *Object {
	if value {
		return o.Raw(key, []byte("true"))
	}
	return o.Raw(key, []byte("false"))
}

// End closes the object and returns the buffer.
func (o *Object) End() []byte {
	o.buf = append(o.buf, '}')
	return o.buf
}

// ReplaceMember appends obj with key set to a checked raw value: in its place if obj has the key, else at the end. Every
// other byte of obj stays as it is. A nil value removes the key.
func ReplaceMember(dst, obj []byte, key string, value []byte) []byte {
	c := cursor{b: obj}
	prevEnd := 0 // index after the member before this one
	for c.next() {
		if string(c.name) != key {
			prevEnd = c.valEnd
			continue
		}
		if value != nil {
			dst = append(dst, obj[:c.valStart]...)
			dst = append(dst, value...)
			return append(dst, obj[c.valEnd:]...)
		}
		if prevEnd > 0 { // take the comma before it along
			dst = append(dst, obj[:prevEnd]...)
			return append(dst, obj[c.valEnd:]...)
		}
		rest := skipSpace(obj, c.valEnd)
		if rest < len(obj) && obj[rest] == ',' {
			rest++
		}
		dst = append(dst, obj[:c.keyStart]...)
		return append(dst, obj[rest:]...)
	}
	if value == nil || c.bad {
		return append(dst, obj...)
	}
	dst = append(dst, obj[:c.end]...)
	if c.n > 0 {
		dst = append(dst, ',')
	}
	dst = append(AppendString(dst, key), ':')
	dst = append(dst, value...)
	return append(dst, obj[c.end:]...)
}
