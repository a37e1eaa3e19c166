package drift

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
)

// Mismatch says that a tool's schema is not the one that was expected.
type Mismatch struct {
	Tool     call.ToolID
	Expected call.Digest
	Actual   call.Digest
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("tool %s: input schema is %s, expected %s", m.Tool, m.Actual, m.Expected)
}

// Compare holds a frozen tool against the digest that it must have (R6.6). A zero digest expects nothing.
func Compare(tool *call.Descriptor, expected call.Digest) error {
	if expected.IsZero() || expected == tool.SchemaDigest {
		return nil
	}
	return &Mismatch{Tool: tool.ID, Expected: expected, Actual: tool.SchemaDigest}
}

// ChangeKind says what happened to a tool between two listings.
type ChangeKind string

// The kinds of change.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed"
)

// Change is one tool that differs between two listings. Fields names the members of its definition that differ, as JSON
// pointers at most two levels deep ("/description", "/inputSchema/properties").
type Change struct {
	Kind   ChangeKind `json:"kind"`
	Tool   string     `json:"tool"` // the provider's raw name
	Fields []string   `json:"fields,omitempty"`
}

func (c Change) String() string {
	if len(c.Fields) == 0 {
		return fmt.Sprintf("%s %q", c.Kind, c.Tool)
	}
	return fmt.Sprintf("%s %q: %s", c.Kind, c.Tool, strings.Join(c.Fields, ", "))
}

// Diff compares two listings by raw name (definitions as JSON). Equal canonical forms are equal, whatever their order or
// white space. Definitions that cannot be read differ from everything but themselves.
func Diff(before, after map[string][]byte) []Change {
	var out []Change
	for _, name := range slices.Sorted(maps.Keys(before)) {
		now, ok := after[name]
		if !ok {
			out = append(out, Change{Kind: Removed, Tool: name})
		} else if fields := differing("", before[name], now, 2); len(fields) > 0 {
			out = append(out, Change{Kind: Changed, Tool: name, Fields: fields})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			out = append(out, Change{Kind: Added, Tool: name})
		}
	}
	return out
}

// differing lists the pointers below which a and b differ, going at most depth levels down.
func differing(at string, a, b []byte, depth int) []string {
	ca, errA := Canonical(a)
	cb, errB := Canonical(b)
	if errA == nil && errB == nil && bytes.Equal(ca, cb) || bytes.Equal(a, b) {
		return nil
	}
	ma, okA := Members(a)
	mb, okB := Members(b)
	if depth == 0 || !okA || !okB {
		if at == "" {
			at = "/"
		}
		return []string{at}
	}
	keys := maps.Clone(ma)
	maps.Copy(keys, mb)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		p := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
		va, inA := ma[k]
		vb, inB := mb[k]
		if inA != inB {
			out = append(out, p)
		} else {
			out = append(out, differing(p, va, vb, depth-1)...)
		}
	}
	return out
}

// Members reads the members of an object; ok is false for anything else.
func Members(raw []byte) (m map[string]jsontext.Value, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, false
	}
	m = map[string]jsontext.Value{}
	for d.PeekKind() == '"' {
		k, err := d.ReadToken()
		if err != nil {
			return nil, false
		}
		name := k.String()
		v, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		m[name] = v.Clone()
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, false
	}
	return m, true
}
