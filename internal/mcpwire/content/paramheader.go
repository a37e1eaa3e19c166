package content

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ostiary/ostiary/call"
)

const (
	annotation = "x-mcp-header"
	// schemaDepth bounds the schema levels that are searched for annotations.
	schemaDepth = 128
	// maxParamHeaders bounds the annotations of one tool, maxHeaderName the length of a name.
	maxParamHeaders = 128
	maxHeaderName   = 128
)

// Keywords whose value is data, not a schema: an annotation cannot stand in there.
var dataKeywords = []string{"const", "enum", "default", "examples", "example", "required"}

// Keywords whose value maps names to schemas, so that its keys are no keywords.
var namedSchemas = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}

// ParamHeaders reads the x-mcp-header annotations of an input schema (R1.7). Any illegal one makes the whole tool illegal
// (S-042), and the error says why: a name that is empty, no token or not unique; a parameter that is not an integer, a
// string or a boolean; a place that cannot be reached from the root through "properties" alone.
//
// A type list of one of these types and "null" is allowed: the specification asks for a primitive type, and says of a null
// value only that its header is left out.
func ParamHeaders(inputSchema []byte) ([]call.ParamHeader, error) {
	if !bytes.Contains(inputSchema, []byte(annotation)) && !bytes.Contains(inputSchema, []byte(`\u`)) {
		return nil, nil
	}
	w := headerWalk{seen: map[string]bool{}}
	if err := w.schema(inputSchema, nil, true, 0); err != nil {
		return nil, err
	}
	return w.found, nil
}

type headerWalk struct {
	found []call.ParamHeader
	seen  map[string]bool // lower-case names
}

func (w *headerWalk) schema(raw []byte, path []string, reachable bool, depth int) error {
	if depth > schemaDepth {
		return fmt.Errorf("%s: the schema nests deeper than %d levels", annotation, schemaDepth)
	}
	switch kind(raw) {
	case '[':
		for e := range Elements(raw) {
			if err := w.schema(e, path, false, depth+1); err != nil {
				return err
			}
		}
		return nil
	case '{':
	default:
		return nil
	}
	var name, typ []byte
	for c := (cursor{b: raw}); c.next(); {
		key := string(c.name)
		switch {
		case key == annotation:
			name = c.value()
		case key == "type":
			typ = c.value()
		case slices.Contains(dataKeywords, key):
		case slices.Contains(namedSchemas, key) && kind(c.value()) == '{':
			for prop, sub := range Members(c.value()) {
				err := w.schema(sub, append(slices.Clip(path), prop), reachable && key == "properties", depth+1)
				if err != nil {
					return err
				}
			}
		default:
			if err := w.schema(c.value(), path, false, depth+1); err != nil {
				return err
			}
		}
	}
	if name == nil {
		return nil
	}
	return w.add(name, typ, path, reachable)
}

func (w *headerWalk) add(rawName, rawType []byte, path []string, reachable bool) error {
	name, ok := String(rawName)
	where := strings.Join(path, ".")
	fail := func(reason string) error { return fmt.Errorf("%s at %q: %s", annotation, where, reason) }
	switch {
	case !reachable || len(path) == 0:
		return fail("not reachable through properties alone")
	case !ok:
		return fail("the name is no string")
	case name == "":
		return fail("the name is empty")
	case len(name) > maxHeaderName:
		return fail(fmt.Sprintf("the name is longer than %d bytes", maxHeaderName))
	case !IsToken(name):
		return fail("the name is no HTTP token")
	case w.seen[strings.ToLower(name)]:
		return fail("the name is used twice")
	case len(w.found) == maxParamHeaders:
		return fail(fmt.Sprintf("more than %d annotations", maxParamHeaders))
	}
	typ, err := primitiveType(rawType)
	if err != nil {
		return fail(err.Error())
	}
	w.seen[strings.ToLower(name)] = true
	w.found = append(w.found, call.ParamHeader{Name: name, Path: slices.Clone(path), Type: typ})
	return nil
}

// primitiveType reads the type of an annotated parameter: integer, string or boolean, alone or beside null.
func primitiveType(raw []byte) (string, error) {
	if raw == nil {
		return "", errors.New("the parameter has no type")
	}
	var types []string
	if kind(raw) == '[' {
		for e := range Elements(raw) {
			if t, _ := String(e); t != "null" {
				types = append(types, t)
			}
		}
	} else {
		t, _ := String(raw)
		types = []string{t}
	}
	if len(types) == 1 {
		switch types[0] {
		case "integer", "string", "boolean":
			return types[0], nil
		}
	}
	return "", errors.New("the parameter is no integer, string or boolean")
}
