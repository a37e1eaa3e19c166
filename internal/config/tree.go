package config

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// kind is the type of a TOML value.
type kind uint8

const (
	kindTable kind = iota
	kindArray
	kindString
	kindInteger
	kindFloat
	kindBool
	kindTime
)

var kindNames = [...]string{"a table", "an array", "a string", "an integer", "a decimal number", "a boolean", "a date or time"}

func (k kind) String() string { return kindNames[k] }

// node is one value of the file with the line it stands on. Decoding by way of structs would lose the lines.
type node struct {
	kind kind
	line int

	str     string
	integer int64
	float   float64
	boolean bool

	items []*node          // of an array
	keys  []string         // of a table, in the file's order
	table map[string]*node // of a table

	header bool // a table that a [header] has opened

	// verbatim says of a string that it has several lines, which stand in the file from textLine on as they are here.
	verbatim bool
	textLine int
}

func newTable(line int) *node { return &node{kind: kindTable, line: line, table: map[string]*node{}} }

// child gives the value of a key; nil if there is none, or if n itself is nil or no table.
func (n *node) child(key string) *node {
	if n == nil {
		return nil
	}
	return n.table[key]
}

func (n *node) add(key string, c *node) {
	n.keys = append(n.keys, key)
	n.table[key] = c
}

// treeBuilder reads one file. It goes on after a duplicate key, so that all duplicates are reported at once, and stops
// at the first fault of syntax.
type treeBuilder struct {
	file   string
	parser unstable.Parser
	lines  []int // offsets at which lines begin
	faults Faults
}

// parseTree reads a TOML document. Beside the tree, which is nil after a fault of syntax, it returns the faults.
func parseTree(file string, data []byte) (*node, Faults) {
	b := &treeBuilder{file: file, lines: []int{0}}
	for i, c := range data {
		if c == '\n' {
			b.lines = append(b.lines, i+1)
		}
	}
	b.parser.Reset(data)
	root := newTable(1)
	at, path := root, []string(nil)
	for b.parser.NextExpression() {
		e := b.parser.Expression()
		switch e.Kind {
		case unstable.Table:
			at, path = b.open(root, e, false)
		case unstable.ArrayTable:
			at, path = b.open(root, e, true)
		case unstable.KeyValue:
			b.keyValue(at, path, e)
		}
	}
	if err := b.parser.Error(); err != nil {
		return nil, Faults{b.syntax(err)}
	}
	if len(b.faults) > 0 {
		return root, b.faults
	}
	// The parser reads syntax alone; the decoder knows the rest of TOML's rules, such as closed inline tables.
	var all map[string]any
	if err := toml.Unmarshal(data, &all); err != nil {
		return nil, Faults{b.syntax(err)}
	}
	return root, nil
}

func (b *treeBuilder) syntax(err error) *Fault {
	f := &Fault{File: b.file, Problem: strings.TrimPrefix(err.Error(), "toml: "), Hint: "the file must be valid TOML 1.0"}
	if de, ok := errors.AsType[*toml.DecodeError](err); ok {
		f.Line, _ = de.Position()
		return f
	}
	if pe, ok := errors.AsType[*unstable.ParserError](err); ok {
		f.Line = b.line(b.parser.Range(pe.Highlight))
	}
	return f
}

func (b *treeBuilder) line(r unstable.Range) int {
	return sort.SearchInts(b.lines, int(r.Offset)+1)
}

func (b *treeBuilder) fault(line int, path []string, format string, args ...any) {
	b.faults = append(b.faults, &Fault{File: b.file, Line: line, Key: joinKey(path...), Problem: fmt.Sprintf(format, args...)})
}

// key reads a dotted key and the line it begins on.
func (b *treeBuilder) key(it unstable.Iterator) (parts []string, line int) {
	for it.Next() {
		if parts == nil {
			line = b.line(it.Node().Raw)
		}
		parts = append(parts, string(it.Node().Data))
	}
	return parts, line
}

// descend walks to the table that holds the last part of key, making what is missing. It returns nil if something else
// stands in the way, which is then reported.
func (b *treeBuilder) descend(from *node, path, key []string, line int) *node {
	at := from
	for i, k := range key {
		next := at.child(k)
		if next == nil {
			next = newTable(line)
			at.add(k, next)
		}
		if next.kind == kindArray && len(next.items) > 0 {
			next = next.items[len(next.items)-1]
		}
		if next.kind != kindTable {
			b.fault(line, append(slices.Clone(path), key[:i+1]...), "is a table here, but %s on line %d", next.kind, next.line)
			return nil
		}
		at = next
	}
	return at
}

// open handles a [table] or [[table]] header. After a fault the table is still read, but is not part of the tree.
func (b *treeBuilder) open(root *node, e *unstable.Node, array bool) (*node, []string) {
	path, line := b.key(e.Key())
	parent := b.descend(root, nil, path[:len(path)-1], line)
	if parent == nil {
		return newTable(line), path
	}
	name := path[len(path)-1]
	old := parent.child(name)
	if array {
		t := newTable(line)
		t.header = true
		if old == nil {
			parent.add(name, &node{kind: kindArray, line: line, items: []*node{t}})
		} else if old.kind == kindArray {
			old.items = append(old.items, t)
		}
		return t, path // whatever stands in the way is found by the decoder
	}
	switch {
	case old == nil:
		t := newTable(line)
		t.header = true
		parent.add(name, t)
		return t, path
	case old.kind == kindTable && !old.header:
		old.header, old.line = true, line
		return old, path
	case old.kind == kindTable:
		b.fault(line, path, "the table exists already, on line %d", old.line)
		return newTable(line), path
	default:
		b.fault(line, path, "is a table here, but %s on line %d", old.kind, old.line)
		return newTable(line), path
	}
}

func (b *treeBuilder) keyValue(at *node, path []string, e *unstable.Node) {
	key, line := b.key(e.Key())
	parent := b.descend(at, path, key[:len(key)-1], line)
	if parent == nil {
		return
	}
	full := append(slices.Clone(path), key...)
	name := key[len(key)-1]
	if old := parent.child(name); old != nil {
		b.fault(line, full, "the key exists already, on line %d", old.line)
		return
	}
	parent.add(name, b.value(e.Value(), line, full))
}

// value reads a value. Arrays carry no position of their own; they stand where their key stands.
func (b *treeBuilder) value(v *unstable.Node, line int, path []string) *node {
	if v.Raw.Length > 0 {
		line = b.line(v.Raw)
	}
	n := &node{line: line}
	switch v.Kind {
	case unstable.String:
		n.kind, n.str = kindString, string(v.Data)
		b.textLines(n, v)
	case unstable.Bool:
		n.kind, n.boolean = kindBool, string(v.Data) == "true"
	case unstable.Integer:
		n.kind, n.str = kindInteger, string(v.Data)
		i, err := strconv.ParseInt(n.str, 0, 64)
		if err != nil {
			b.fault(line, path, "the number %s does not fit in 64 bits", n.str)
		}
		n.integer = i
	case unstable.Float:
		n.kind, n.str = kindFloat, string(v.Data)
		f, err := strconv.ParseFloat(strings.ReplaceAll(n.str, "_", ""), 64)
		if err != nil {
			b.fault(line, path, "the number %s is out of range", n.str)
		}
		n.float = f
	case unstable.Array:
		n.kind = kindArray
		for it := v.Children(); it.Next(); {
			n.items = append(n.items, b.value(it.Node(), line, path))
		}
	case unstable.InlineTable:
		n.kind, n.table, n.header = kindTable, map[string]*node{}, true
		for it := v.Children(); it.Next(); {
			b.keyValue(n, path, it.Node())
		}
	default:
		n.kind, n.str = kindTime, string(v.Data)
	}
	return n
}

// textLines finds where the lines of a multi-line string stand.
func (b *treeBuilder) textLines(n *node, v *unstable.Node) {
	if v.Raw.Length < 6 {
		return
	}
	raw := string(b.parser.Raw(v.Raw))
	if !strings.HasPrefix(raw, `"""`) && !strings.HasPrefix(raw, "'''") {
		return
	}
	body := raw[3:]
	n.textLine = n.line
	if cut, ok := strings.CutPrefix(strings.TrimPrefix(body, "\r"), "\n"); ok { // the first line end is no part of the text
		body = cut
		n.textLine++
	}
	n.verbatim = strings.Count(body, "\n") == strings.Count(n.str, "\n")
}

// joinKey writes a dotted key as TOML does.
func joinKey(parts ...string) string {
	quoted := make([]string, len(parts))
	for i, p := range parts {
		quoted[i] = quoteKey(p)
	}
	return strings.Join(quoted, ".")
}

func quoteKey(k string) string {
	bare := k != ""
	for _, c := range []byte(k) {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			bare = false
		}
	}
	if bare {
		return k
	}
	return quote(k)
}
