package provider

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/internal/drift"
	"github.com/ostiary/ostiary/internal/world"
)

// contractKey is where a tool's definition says what it observes and publishes (R4.3).
const contractKey = "org.aurorabot/tool-contract"

// ScopesOf reads what a tool observes and publishes out of its definition. Without the contract the definition says nothing
// of it, whatever is in there (R4.2). An error names the field that is wrong.
func ScopesOf(pkg string, definition []byte, contract bool) (world.Scopes, error) {
	scopes := world.DefaultScopes(pkg)
	if !contract {
		return scopes, nil
	}
	tool, ok := drift.Members(definition)
	if !ok {
		return scopes, errors.New("not an object")
	}
	meta, _ := drift.Members(tool["_meta"]) // of no object, so the key is not in it
	said, ok := meta[contractKey]
	if !ok {
		return scopes, nil
	}
	fields, ok := drift.Members(said)
	if !ok {
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
		list, err := templates(fields[name], tool["inputSchema"])
		if err != nil {
			return scopes, fmt.Errorf("_meta[%q].%s: %w", contractKey, name, err)
		}
		*into = list
	}
	if err := scopes.CheckPublish(); err != nil {
		return scopes, fmt.Errorf("_meta[%q].publish: %w", contractKey, err)
	}
	return scopes, nil
}

// templates reads one list.
func templates(raw, schema jsontext.Value) ([]world.Template, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '[' {
		return nil, errors.New("expected a list of scope templates")
	}
	var declared []string
	for dec.PeekKind() != ']' {
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if v.Kind() != '"' {
			return nil, errors.New("expected a list of scope templates, each a string")
		}
		declared = append(declared, unquote(v))
	}
	if len(declared) == 0 {
		return nil, errors.New("the list is empty: leave the field out, or name a scope")
	}
	return world.ParseTemplates(declared, schema)
}
