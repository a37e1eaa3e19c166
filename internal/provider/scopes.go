package provider

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/internal/world"
)

// contractKey is where a tool's definition says what it observes and publishes (R4.3).
const contractKey = "org.aurorabot/tool-contract"

// maxTemplates bounds each of the two lists.
const maxTemplates = 64

// ScopesOf reads what a tool observes and publishes out of its definition. Without the contract the definition says nothing
// of it, whatever is in there (R4.2). An error names the field that is wrong.
func ScopesOf(pkg string, definition []byte, contract bool) (world.Scopes, error) {
	scopes := world.DefaultScopes(pkg)
	if !contract {
		return scopes, nil
	}
	tool, err := objectOf(definition)
	if err != nil {
		return scopes, err
	}
	meta, err := objectOf(tool["_meta"])
	if err != nil { // no object, so the key is not in it
		return scopes, nil
	}
	said, ok := meta[contractKey]
	if !ok {
		return scopes, nil
	}
	fields, err := objectOf(said)
	if err != nil {
		return scopes, fmt.Errorf("_meta[%q] is not an object", contractKey)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var into *[]world.Template
		switch name {
		case "observe":
			into = &scopes.Observe
		case "publish":
			into = &scopes.Publish
		default:
			return scopes, fmt.Errorf("_meta[%q]: unknown field %q: expected observe and publish", contractKey, clip(name, 80))
		}
		if *into, err = templates(fields[name], tool["inputSchema"]); err != nil {
			return scopes, fmt.Errorf("_meta[%q].%s: %w", contractKey, name, err)
		}
	}
	if err := scopes.CheckPublish(); err != nil {
		return scopes, fmt.Errorf("_meta[%q].publish: %w", contractKey, err)
	}
	return scopes, nil
}

// templates reads one list.
func templates(raw, schema jsontext.Value) (out []world.Template, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '[' {
		return nil, errors.New("expected a list of scope templates")
	}
	for dec.PeekKind() != ']' {
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if v.Kind() != '"' {
			return nil, errors.New("expected a list of scope templates, each a string")
		}
		if len(out) == maxTemplates {
			return nil, fmt.Errorf("more than %d scope templates", maxTemplates)
		}
		t, err := world.ParseTemplate(unquote(v))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o world.Template) bool { return o.String() == t.String() }) {
			return nil, fmt.Errorf("%q is there twice", t)
		}
		for _, p := range t.Properties() {
			if err := canStand(schema, p); err != nil {
				return nil, fmt.Errorf("scope template %q: %w", t, err)
			}
		}
		out = append(out, t)
	}
	if len(out) == 0 {
		return nil, errors.New("the list is empty: leave the field out, or name a scope")
	}
	return out, nil
}

// canStand says why no value of a top-level property could ever stand in a scope (R4.4). What its schema leaves open is
// looked at with each call's own argument (R4.5).
func canStand(schema jsontext.Value, property string) error {
	top, err := objectOf(schema)
	if err != nil {
		return errors.New("the tool has no input schema")
	}
	properties, err := objectOf(top["properties"])
	declared, ok := properties[property]
	if err != nil || !ok {
		return fmt.Errorf("the input schema has no property %s at its top level", property)
	}
	if declared.Kind() == 'f' {
		return fmt.Errorf("the input schema admits no value for %s", property)
	}
	about, err := objectOf(declared)
	if err != nil {
		return nil // true, or none at all: everything may be there
	}
	if types, ok := about["type"]; ok && !slices.ContainsFunc(textsOf(types), func(t string) bool { return t == "string" || t == "integer" || t == "number" }) {
		return fmt.Errorf("the property %s is neither text nor an integer", property)
	}
	return nil
}

// textsOf are the strings of a list, or the one that stands for it.
func textsOf(raw jsontext.Value) (out []string) {
	if raw.Kind() == '"' {
		return []string{unquote(raw)}
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.ReadToken(); err != nil || raw.Kind() != '[' {
		return nil
	}
	for dec.PeekKind() != ']' {
		v, err := dec.ReadValue()
		if err != nil {
			return out
		}
		out = append(out, unquote(v))
	}
	return out
}

// objectOf reads the members of an object.
func objectOf(raw []byte) (map[string]jsontext.Value, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.ReadToken(); err != nil {
		return nil, err
	} else if t.Kind() != '{' {
		return nil, errors.New("not an object")
	}
	m := map[string]jsontext.Value{}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		m[key] = v.Clone()
	}
	_, err := dec.ReadToken()
	return m, err
}
