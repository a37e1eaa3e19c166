package world

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxTemplates bounds what one tool observes, and what it publishes.
const MaxTemplates = 64

// ParseTemplates reads what a tool declares to observe or to publish: templates, each there once, at most [MaxTemplates],
// whose properties stand in the top level of its input schema (R4.4).
func ParseTemplates(declared []string, inputSchema []byte) ([]Template, error) {
	if len(declared) > MaxTemplates {
		return nil, fmt.Errorf("%d templates: more than %d", len(declared), MaxTemplates)
	}
	out := make([]Template, len(declared))
	for i, s := range declared {
		t, err := ParseTemplate(s)
		if err != nil {
			return nil, err
		}
		if slices.Contains(declared[:i], s) {
			return nil, fmt.Errorf("%q is there twice", s)
		}
		for _, p := range t.Properties() {
			if err := canStand(inputSchema, p); err != nil {
				return nil, fmt.Errorf("scope template %q: %w", s, err)
			}
		}
		out[i] = t
	}
	return out, nil
}

// canStand says why no value of a top-level property could ever stand in a scope (R4.4). What its schema leaves open is
// looked at with each call's own argument (R4.5).
func canStand(inputSchema jsontext.Value, property string) error {
	top, err := members(inputSchema)
	if err != nil {
		return errors.New("the tool has no input schema")
	}
	properties, err := members(top["properties"])
	declared, ok := properties[property]
	if err != nil || !ok {
		return fmt.Errorf("the input schema has no property %s at its top level", property)
	}
	if declared.Kind() == 'f' {
		return fmt.Errorf("the input schema admits no value for %[1]s: the property %[1]s is neither text nor an integer", property)
	}
	about, err := members(declared)
	if err != nil {
		return nil // true, or none at all: everything may be there
	}
	if types, ok := about["type"]; ok && !slices.ContainsFunc(typesOf(types), func(t any) bool { return t == "string" || t == "integer" || t == "number" }) {
		return fmt.Errorf("the property %s is neither text nor an integer", property)
	}
	return nil
}

// typesOf lists what stands under "type" in a schema: one, or a list of them.
func typesOf(raw jsontext.Value) []any {
	var types any
	if json.Unmarshal(raw, &types) != nil { // it was read strictly
		return nil
	}
	if list, several := types.([]any); several {
		return list
	}
	return []any{types}
}
