package provider

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of one schema (S-016). Measured real servers stay below a tenth of each.
const (
	maxSchemaBytes   = 1 << 20
	maxSchemaDepth   = 128
	maxSchemaNodes   = 20_000
	maxPatternLength = 4 << 10
	maxExpansion     = 1 << 20 // subschemas that one validation may have to visit
)

// schemaBudget is what validating against a schema can cost.
type schemaBudget struct {
	rootType  string
	dialect   string
	nodes     int
	plain     bool // the root constrains nothing beyond its type
	branching int  // recursive schemas: ways back into itself that one value may open; 0 or 1 is linear
}

// schemaNode is one subschema. Children that look at the same value ("in place": anyOf, $ref, …) multiply the work at one
// value; children that look at a part of it ("below": properties, items, …) cost only as deep as a value goes.
type schemaNode struct {
	inPlace, below []*schemaNode
	ref            string

	state    uint8 // of the walk: 0 new, 1 open, 2 done
	cost     int   // of all expansion below, saturating; recursion counts once
	cyclic   bool  // it can come back to itself
	loops    int   // ways back into an open schema that one value opens
	pointers string
}

var inPlaceOne = map[string]bool{"not": true, "if": true, "then": true, "else": true}
var inPlaceMany = map[string]bool{"allOf": true, "anyOf": true, "oneOf": true}
var belowOne = map[string]bool{"additionalProperties": true, "items": true, "contains": true, "propertyNames": true,
	"unevaluatedItems": true, "unevaluatedProperties": true, "additionalItems": true, "contentSchema": true}
var belowMap = map[string]bool{"properties": true, "patternProperties": true}

// measureSchema reads a schema once and bounds what it can cost, before any library looks at it. A schema that refers to
// itself without going down into the value would recurse for ever; one that doubles at each level would take minutes.
func measureSchema(raw []byte) (schemaBudget, error) {
	if len(raw) == 0 {
		return schemaBudget{}, fatalSchema{errors.New("input schema: missing")}
	}
	if len(raw) > maxSchemaBytes {
		return schemaBudget{}, fmt.Errorf("input schema: %d bytes, more than %d", len(raw), maxSchemaBytes)
	}
	r := &schemaReader{d: jsontext.NewDecoder(bytes.NewReader(raw)), at: map[string]*schemaNode{}}
	root, err := r.schema("", 0)
	if err != nil {
		return schemaBudget{}, fmt.Errorf("input schema: %w", err)
	}
	for _, n := range r.all {
		if n.ref == "" {
			continue
		}
		target, err := r.resolve(n.ref)
		if err != nil {
			return schemaBudget{}, fmt.Errorf("input schema: %w", err)
		}
		n.inPlace = append(n.inPlace, target)
	}
	for _, n := range r.all {
		if err := n.checkInPlace(); err != nil {
			return schemaBudget{}, fmt.Errorf("input schema: %w", err)
		}
	}
	for _, n := range r.all {
		n.state = 0
	}
	cost, branching := root.measure()
	if cost > maxExpansion {
		return schemaBudget{}, fmt.Errorf("input schema: validating could visit more than %d subschemas", maxExpansion)
	}
	return schemaBudget{rootType: r.rootType, dialect: r.dialect, nodes: len(r.all), plain: r.plain, branching: branching}, nil
}

// checkInPlace refuses a schema that comes back to itself without going below the value.
func (n *schemaNode) checkInPlace() error {
	switch n.state {
	case 1:
		return fmt.Errorf("the schema at %s refers to itself", orRoot(n.pointers))
	case 2:
		return nil
	}
	n.state = 1
	for _, c := range n.inPlace {
		if err := c.checkInPlace(); err != nil {
			return err
		}
	}
	n.state = 2
	return nil
}

// measure gives the cost of expanding n, and the largest number of ways back into a recursion that one value opens.
func (n *schemaNode) measure() (cost, branching int) {
	switch n.state {
	case 1: // recursion: depth is the value's affair, the number of ways is the schema's
		n.cyclic = true
		return 1, 0
	case 2:
		return n.cost, n.loops
	}
	n.state = 1
	cost = 1
	for _, c := range n.inPlace {
		cc, b := c.measure()
		cost = min(cost+cc, maxExpansion+1)
		branching += b
	}
	deeper := 0
	for _, c := range n.below {
		open := c.opens()
		cc, b := c.measure()
		cost = min(cost+cc, maxExpansion+1)
		deeper = max(deeper, b)
		if open {
			branching++
		}
	}
	n.state = 2
	n.cost, n.loops = cost, max(branching, deeper)
	return n.cost, n.loops
}

// opens says whether looking at n, in place, leads back to a schema that is being expanded.
func (n *schemaNode) opens() bool {
	if n.state == 1 {
		return true
	}
	for _, c := range n.inPlace {
		if c.opens() {
			return true
		}
	}
	return false
}

// schemaReader reads the schema's tree, and remembers where each subschema stands so that references can be resolved.
type schemaReader struct {
	d   *jsontext.Decoder
	all []*schemaNode
	at  map[string]*schemaNode // by "#" + JSON pointer, "#anchor", or $id

	rootType, dialect string
	plain             bool
}

func orRoot(pointer string) string {
	if pointer == "" {
		return "its root"
	}
	return pointer
}

func (r *schemaReader) schema(at string, depth int) (*schemaNode, error) {
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxSchemaDepth)
	}
	if len(r.all) >= maxSchemaNodes {
		return nil, fmt.Errorf("more than %d subschemas", maxSchemaNodes)
	}
	n := &schemaNode{pointers: at}
	r.all = append(r.all, n)
	r.at["#"+at] = n
	switch r.d.PeekKind() {
	case 't', 'f':
		_, err := r.d.ReadToken()
		return n, err
	case '{':
	default:
		if _, err := r.d.ReadToken(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s is neither an object nor a boolean", orRoot(at))
	}
	if _, err := r.d.ReadToken(); err != nil {
		return nil, err
	}
	plain := true
	for r.d.PeekKind() == '"' {
		t, err := r.d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := t.String()
		here := at + "/" + escapePointer(key)
		switch {
		case inPlaceOne[key]:
			err = r.child(&n.inPlace, here, depth)
		case belowOne[key]:
			if r.d.PeekKind() == '[' { // draft-07 items
				err = r.list(&n.below, here, depth)
			} else {
				err = r.child(&n.below, here, depth)
			}
		case inPlaceMany[key]:
			err = r.list(&n.inPlace, here, depth)
		case key == "prefixItems":
			err = r.list(&n.below, here, depth)
		case belowMap[key]:
			err = r.mapped(&n.below, here, depth, key == "patternProperties")
		case key == "dependentSchemas" || key == "dependencies":
			err = r.mapped(&n.inPlace, here, depth, false)
		case key == "$defs" || key == "definitions":
			var none []*schemaNode
			err = r.mapped(&none, here, depth, false)
		default:
			err = r.keyword(n, at, key, &plain)
		}
		if err != nil {
			return nil, err
		}
		if key != "type" && key != "$schema" && key != "title" && key != "description" {
			plain = plain && key == "properties" && len(n.below) == 0
		}
	}
	_, err := r.d.ReadToken()
	if at == "" {
		r.plain = plain
	}
	return n, err
}

// keyword reads a keyword that holds no subschema.
func (r *schemaReader) keyword(n *schemaNode, at, key string, plain *bool) error {
	v, err := r.d.ReadValue()
	if err != nil {
		return err
	}
	if v.Kind() != '"' {
		return nil
	}
	t, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return err
	}
	s := string(t)
	switch key {
	case "$ref", "$dynamicRef", "$recursiveRef":
		if n.ref != "" {
			return fmt.Errorf("%s has two references", orRoot(at))
		}
		n.ref = s
	case "$id", "id":
		r.at[strings.TrimSuffix(s, "#")] = n
	case "$anchor", "$dynamicAnchor":
		r.at["#"+s] = n
	case "pattern":
		if len(s) > maxPatternLength {
			return fmt.Errorf("the pattern at %s is longer than %d bytes", orRoot(at), maxPatternLength)
		}
	case "type":
		if at == "" {
			r.rootType = s
		}
	case "$schema":
		if at == "" {
			r.dialect = s
		}
	}
	return nil
}

func (r *schemaReader) child(to *[]*schemaNode, at string, depth int) error {
	c, err := r.schema(at, depth+1)
	if err == nil {
		*to = append(*to, c)
	}
	return err
}

func (r *schemaReader) list(to *[]*schemaNode, at string, depth int) error {
	if r.d.PeekKind() != '[' {
		return fmt.Errorf("%s is not an array", at)
	}
	if _, err := r.d.ReadToken(); err != nil {
		return err
	}
	for i := 0; r.d.PeekKind() != ']'; i++ {
		if err := r.child(to, at+"/"+strconv.Itoa(i), depth); err != nil {
			return err
		}
	}
	_, err := r.d.ReadToken()
	return err
}

func (r *schemaReader) mapped(to *[]*schemaNode, at string, depth int, patterns bool) error {
	if r.d.PeekKind() != '{' {
		return fmt.Errorf("%s is not an object", at)
	}
	if _, err := r.d.ReadToken(); err != nil {
		return err
	}
	for r.d.PeekKind() == '"' {
		t, err := r.d.ReadToken()
		if err != nil {
			return err
		}
		name := t.String()
		if patterns && len(name) > maxPatternLength {
			return fmt.Errorf("a pattern at %s is longer than %d bytes", at, maxPatternLength)
		}
		if r.d.PeekKind() == '[' { // draft-07 dependencies may list property names
			if _, err := r.d.ReadValue(); err != nil {
				return err
			}
			continue
		}
		if err := r.child(to, at+"/"+escapePointer(name), depth); err != nil {
			return err
		}
	}
	_, err := r.d.ReadToken()
	return err
}

// resolve finds a reference inside the schema. It never looks anywhere else (S-013).
func (r *schemaReader) resolve(ref string) (*schemaNode, error) {
	if n, ok := r.at[strings.TrimSuffix(ref, "#")]; ok && ref != "#" {
		return n, nil
	}
	if ref == "#" || ref == "#/" {
		return r.at["#"], nil
	}
	if frag, ok := strings.CutPrefix(ref, "#"); ok {
		if dec, err := url.PathUnescape(frag); err == nil {
			if n, ok := r.at["#"+dec]; ok {
				return n, nil
			}
		}
	}
	return nil, fmt.Errorf("the reference %q does not lead to a place in the schema; nothing outside it is ever loaded", clip(ref, 120))
}

func escapePointer(s string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(s) }

// clip shortens text of a provider for a message.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
