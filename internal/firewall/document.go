package firewall

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// document is JSON read once: where each string stands in the raw bytes, and what contains it. The raw bytes are never
// changed.
type document struct {
	raw   []byte
	nodes []node // objects and arrays; 0 is the root if it is one of them
	texts []text // every string, names of members too, in order
}

// node is an object or an array.
type node struct {
	parent     int32 // -1: none
	name       int32 // the text that names it, -1: none
	index      int32 // its place in an array
	start, end int32 // in the raw bytes
	depth      int32
	array      bool
}

// text is a string.
type text struct {
	parent     int32 // node, -1: the string is the whole document
	name       int32 // the text that names it, -1: none
	index      int32 // its place in an array
	start, end int32 // of the literal, quotes included
	isName     bool
	value      []byte // decoded; shares the raw bytes if nothing was escaped
}

var errTooDeep = errors.New("nested too deep")

// parse reads one strict JSON value: no duplicate names, valid UTF-8, nothing after it.
func parse(raw []byte, depth int) (*document, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw))
	doc := &document{raw: raw}
	if n := len(raw) / 24; n > 0 {
		doc.texts = make([]text, 0, min(n, 1<<16))
	}
	type frame struct {
		node, name, index int32
	}
	var stack []frame
	top := func() *frame {
		if len(stack) == 0 {
			return nil
		}
		return &stack[len(stack)-1]
	}
	place := func() (parent, name, index int32) {
		f := top()
		if f == nil {
			return -1, -1, 0
		}
		parent, name, index = f.node, f.name, f.index
		f.index++
		f.name = -1
		return parent, name, index
	}
	for first := true; first || len(stack) > 0; first = false {
		switch d.PeekKind() {
		case '{', '[':
			t, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			if len(stack) >= depth {
				return nil, errTooDeep
			}
			parent, name, index := place()
			doc.nodes = append(doc.nodes, node{parent: parent, name: name, index: index, start: int32(d.InputOffset()) - 1,
				depth: int32(len(stack)), array: t.Kind() == '['})
			stack = append(stack, frame{node: int32(len(doc.nodes) - 1), name: -1})
		case '}', ']':
			if _, err := d.ReadToken(); err != nil {
				return nil, err
			}
			doc.nodes[top().node].end = int32(d.InputOffset())
			stack = stack[:len(stack)-1]
		case '"':
			v, err := d.ReadValue()
			if err != nil {
				return nil, err
			}
			end := int32(d.InputOffset())
			t := text{start: end - int32(len(v)), end: end, parent: -1, name: -1}
			if t.value, err = unquote(raw[t.start:t.end]); err != nil {
				return nil, err
			}
			if f := top(); f != nil && !doc.nodes[f.node].array && f.name < 0 {
				t.parent, t.isName = f.node, true
				f.name = int32(len(doc.texts))
			} else {
				t.parent, t.name, t.index = place()
			}
			doc.texts = append(doc.texts, t)
		default:
			if _, err := d.ReadValue(); err != nil {
				return nil, err
			}
			place()
		}
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, errors.New("something follows the value")
	}
	return doc, nil
}

func unquote(literal []byte) ([]byte, error) {
	if bytes.IndexByte(literal, '\\') < 0 {
		return literal[1 : len(literal)-1], nil
	}
	v, err := jsontext.AppendUnquote(nil, literal)
	if err != nil {
		return nil, fmt.Errorf("read string: %w", err)
	}
	return v, nil
}

// nameOf is the member name of a text or node whose name index is n, "" if it has none.
func (d *document) nameOf(n int32) string {
	if n < 0 {
		return ""
	}
	return string(d.texts[n].value)
}

// named is the nearest member name above t: its own, or that of the array that it stands in.
func (d *document) named(t *text) []byte {
	if t.name >= 0 {
		return d.texts[t.name].value
	}
	for n := t.parent; n >= 0; n = d.nodes[n].parent {
		if d.nodes[n].name >= 0 {
			return d.texts[d.nodes[n].name].value
		}
	}
	return nil
}

// pointer is the RFC 6901 pointer of text i. hide says which names must not be shown: their ordinal stands for them.
func (d *document) pointer(i int32, hide func(int32) bool) string {
	t := &d.texts[i]
	var parts []string
	switch {
	case t.parent < 0:
		return ""
	case t.isName:
		parts = append(parts, d.segment(i, hide))
	case t.name >= 0:
		parts = append(parts, d.segment(t.name, hide))
	default:
		parts = append(parts, strconv.Itoa(int(t.index)))
	}
	return d.pointerOf(t.parent, parts, hide)
}

// nodePointer is the pointer of node n.
func (d *document) nodePointer(n int32) string {
	return d.pointerOf(n, nil, func(int32) bool { return false })
}

func (d *document) pointerOf(n int32, parts []string, hide func(int32) bool) string {
	for ; n >= 0; n = d.nodes[n].parent {
		nd := &d.nodes[n]
		switch {
		case nd.parent < 0:
		case nd.name >= 0:
			parts = append(parts, d.segment(nd.name, hide))
		default:
			parts = append(parts, strconv.Itoa(int(nd.index)))
		}
	}
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteByte('/')
		b.WriteString(parts[i])
	}
	return b.String()
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// segment is a name in a pointer. A long name is cut, and what reads like encoded bytes is left out;
// the pointer then only tells where to look.
func (d *document) segment(i int32, hide func(int32) bool) string {
	if hide(i) {
		return "[redacted name " + strconv.Itoa(int(i)) + "]"
	}
	v := blurred(cut(d.texts[i].value, 512))
	if len(v) > 64 {
		return pointerEscapes.Replace(quote(cut(v, 48))) + "…"
	}
	return pointerEscapes.Replace(quote(v))
}

// cut is at most n bytes of v, never half a character.
func cut(v []byte, n int) []byte {
	if len(v) <= n {
		return v
	}
	for n > 0 && v[n]&0xc0 == 0x80 {
		n--
	}
	return v[:n]
}
