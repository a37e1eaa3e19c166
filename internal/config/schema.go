package config

import (
	"encoding/json"
	"fmt"
	"strings"
)

// object is a JSON object that keeps the order of its keys, so that the schema reads as the documentation does.
type object []member

type member struct {
	key   string
	value any
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		k, err := json.Marshal(m.key)
		if err != nil {
			return nil, err
		}
		v, err := json.Marshal(m.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.key, err)
		}
		b = append(append(append(b, k...), ':'), v...)
	}
	return append(b, '}'), nil
}

// The patterns of names, as ECMA regular expressions.
const (
	packagePattern = `^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*$`
	rulePattern    = `^[a-z][a-z0-9_-]{0,63}$`
	toolPattern    = `^[A-Za-z][A-Za-z0-9_-]*$`
)

// Schema is a JSON Schema (2020-12) of the file, for editors. It says less than [Load] checks: a schema cannot follow
// references or look into the environment.
func Schema() ([]byte, error) {
	policy := tableSchema(policySection, member{"tools", mapSchema(toolSection.Meaning, toolPattern, tableSchema(toolSection))})
	firewall := tableSchema(firewallSection, member{"tools", mapSchema(firewallToolSection.Meaning, toolPattern, tableSchema(firewallToolSection))})
	schema := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "ostiary.toml"},
		{"type", "object"},
		{"additionalProperties", false},
		{"properties", object{
			{"server", tableSchema(serverSection)},
			{"principal", mapSchema(principalSection.Meaning, principalName.String(), tableSchema(principalSection))},
			{"provider", mapSchema(providerSection.Meaning, packagePattern, tableSchema(providerSection, member{"policy", policy}, member{"firewall", firewall}))},
			{"export", mapSchema(exportSection.Meaning, exportName.String(), tableSchema(exportSection))},
			{"rule", mapSchema(ruleSection.Meaning, rulePattern, tableSchema(ruleSection))},
			{"approval", tableSchema(approvalSection)},
			{"budget", object{{"type", "object"}, {"additionalProperties", false}, {"properties", object{
				{"principal", tableSchema(budgetPrincipalSection)},
				{"session", tableSchema(budgetSessionSection)},
			}}}},
			{"evidence", tableSchema(evidenceSection)},
			{"vault", tableSchema(vaultSection)},
			{"world", tableSchema(worldSection)},
			{"ledger", tableSchema(ledgerSection)},
		}},
	}
	b, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("render schema: %w", err)
	}
	return append(b, '\n'), nil
}

func mapSchema(meaning, pattern string, of object) object {
	return object{{"description", meaning}, {"type", "object"}, {"propertyNames", object{{"pattern", pattern}}}, {"additionalProperties", of}}
}

func tableSchema(s Section, more ...member) object {
	var properties object
	var required []string
	for _, k := range s.Keys {
		properties = append(properties, member{k.Name, keySchema(k)})
		if k.Required {
			required = append(required, k.Name)
		}
	}
	o := object{{"description", s.Meaning}, {"type", "object"}, {"additionalProperties", false}}
	for _, m := range more {
		properties = append(properties, m)
		if m.key == "policy" {
			required = append(required, m.key)
		}
	}
	if required != nil {
		o = append(o, member{"required", required})
	}
	return append(o, member{"properties", properties})
}

func keySchema(k Key) object {
	o := object{{"description", strings.ReplaceAll(k.Meaning, "`", "")}}
	text := object{{"type", "string"}}
	if k.Enum != nil {
		text = append(text, member{"enum", k.Enum})
	}
	switch k.Type {
	case typeString:
		o = append(o, text...)
	case typeBool:
		o = append(o, member{"type", "boolean"})
	case typeInteger:
		o = append(o, member{"type", "integer"}, member{"minimum", k.Min}, member{"maximum", k.Max})
	case typeSeconds:
		o = append(o, member{"type", "number"}, member{"minimum", k.Min}, member{"maximum", k.Max})
	case typeStrings:
		o = append(o, member{"type", "array"}, member{"items", text})
	case typeStringTable:
		o = append(o, member{"type", "object"}, member{"additionalProperties", text})
	case typeTools:
		alias := object{{"type", "object"}, {"additionalProperties", false}, {"required", []string{"name", "as"}},
			{"properties", object{{"name", text}, {"as", object{{"type", "string"}, {"pattern", toolPattern}}}}}}
		o = append(o, member{"type", "array"}, member{"items", object{{"anyOf", []object{
			{{"type", "string"}, {"pattern", toolPattern}}, alias,
		}}}})
	}
	// Plain defaults of TOML are JSON too.
	if k.Default != "" && json.Valid([]byte(k.Default)) {
		o = append(o, member{"default", json.RawMessage(k.Default)})
	}
	return o
}
