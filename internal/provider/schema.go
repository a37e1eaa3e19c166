package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

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
	resolved, err := resolve(raw)
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	return &Schema{resolved: resolved, budget: budget, anything: budget.nodes == 1 && budget.plain}, nil
}

// CompileOutputSchema reads an output schema, within the same bounds as an input schema. It may be of any type.
func CompileOutputSchema(raw []byte) (*Schema, error) {
	budget, err := measureSchema(raw)
	if err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	resolved, err := resolve(raw)
	if err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	return &Schema{resolved: resolved, budget: budget}, nil
}

func resolve(raw []byte) (*jsonschema.Resolved, error) {
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, err
	}
	switch s.Schema { // the library knows one spelling of each
	case "https://json-schema.org/draft/2020-12/schema#":
		s.Schema = "https://json-schema.org/draft/2020-12/schema"
	case "http://json-schema.org/draft-07/schema":
		s.Schema = "http://json-schema.org/draft-07/schema#"
	}
	return s.Resolve(&jsonschema.ResolveOptions{Loader: nil}) // no loader: nothing is ever fetched
}

// ValidateValue says why any JSON value, strictly parsed before, does not satisfy the schema.
func (s *Schema) ValidateValue(raw []byte) error {
	if err := s.affordable(raw); err != nil {
		return err
	}
	v, err := instance(raw)
	if err != nil {
		return err
	}
	return s.resolved.Validate(v)
}

func (s *Schema) affordable(raw []byte) error {
	if s.budget.branching <= 1 {
		return nil
	}
	if depth := nesting(raw); math.Pow(float64(s.budget.branching), float64(depth)) > maxExpansion {
		return fmt.Errorf("nested %d levels deep, more than this recursive schema can be checked for", depth)
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "missing"
	}
	return fmt.Sprintf("%q", s)
}

// Validate says why arguments, a strictly parsed JSON object or nil, do not satisfy the schema. With nullIsAbsent, what is
// null at the top may also be left out. The error may quote the arguments: it is for the caller alone.
func (s *Schema) Validate(arguments []byte, nullIsAbsent bool) error {
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	if s.anything {
		if b := bytes.TrimLeft(arguments, " \t\r\n"); len(b) == 0 || b[0] != '{' {
			return errNotObject
		}
		return nil
	}
	if err := s.affordable(arguments); err != nil {
		return fmt.Errorf("arguments are %w", err)
	}
	v, err := instance(arguments)
	if err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return errNotObject
	}
	err = inWords(s.resolved.Validate(m))
	if err == nil || !nullIsAbsent {
		return err
	}
	before := len(m)
	maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil })
	if len(m) == before {
		return err
	}
	return inWords(s.resolved.Validate(m))
}

// inWords takes out of the library's error where in the schema it began, which is always the same place.
func inWords(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), "validating root: "))
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
