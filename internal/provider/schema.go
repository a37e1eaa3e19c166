package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is a tool's frozen input schema, ready to validate arguments against (R6.8).
type Schema struct {
	resolved *jsonschema.Resolved
	budget   schemaBudget
	anything bool // the schema admits every object: nothing to look at
}

var errNotObject = errors.New("arguments are not a JSON object")

// CompileSchema reads an input schema. Its type must be object (R2.3), its dialect 2020-12 or draft-07 (S-012), every
// reference must lead to a place inside it (S-013, S-014), and validating against it must be cheap enough (S-016).
func CompileSchema(raw []byte) (*Schema, error) {
	budget, err := measureSchema(raw)
	if err != nil {
		return nil, err
	}
	if budget.rootType != "object" {
		return nil, fatalSchema{fmt.Errorf("input schema: type is %s, it must be object", orNone(budget.rootType))}
	}
	switch budget.dialect {
	case "", "https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2020-12/schema#",
		"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-07/schema":
	default:
		return nil, fmt.Errorf("input schema: unsupported dialect %q", budget.dialect)
	}
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	switch s.Schema { // the library knows one spelling of each
	case "https://json-schema.org/draft/2020-12/schema#":
		s.Schema = "https://json-schema.org/draft/2020-12/schema"
	case "http://json-schema.org/draft-07/schema":
		s.Schema = "http://json-schema.org/draft-07/schema#"
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{Loader: nil}) // no loader: nothing is ever fetched
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	return &Schema{resolved: resolved, budget: budget, anything: budget.nodes == 1 && budget.plain}, nil
}

func orNone(s string) string {
	if s == "" {
		return "missing"
	}
	return fmt.Sprintf("%q", s)
}

// Validate says why arguments, a syntactically valid JSON object or nil, do not satisfy the schema. The error may quote the
// arguments: it is for the caller alone.
func (s *Schema) Validate(arguments []byte) error {
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	if s.anything {
		if b := bytes.TrimLeft(arguments, " \t\r\n"); len(b) == 0 || b[0] != '{' {
			return errNotObject
		}
		return nil
	}
	if s.budget.branching > 1 {
		if depth := nesting(arguments); math.Pow(float64(s.budget.branching), float64(depth)) > maxExpansion {
			return fmt.Errorf("arguments are nested %d levels deep, more than this recursive schema can be checked for", depth)
		}
	}
	v, err := instance(arguments)
	if err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return errNotObject
	}
	return s.resolved.Validate(m)
}

// nesting is the depth of the deepest array or object in valid JSON.
func nesting(raw []byte) (deepest int) {
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// instance reads a JSON value for the validator. An integer stays exact as far as 64 bits go; what is larger is compared as
// a float, and what no float can hold is refused. Nothing of it is ever sent on.
func instance(raw []byte) (any, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw))
	v, err := instanceValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

func instanceValue(d *jsontext.Decoder) (any, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return t.Bool(), nil
	case '"':
		return t.String(), nil
	case '0':
		s := t.String()
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
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			v, err := instanceValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.ReadToken()
		return list, err
	default: // '{'
		m := map[string]any{}
		for d.PeekKind() != '}' {
			k, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			name := k.String()
			if m[name], err = instanceValue(d); err != nil {
				return nil, err
			}
		}
		_, err := d.ReadToken()
		return m, err
	}
}
