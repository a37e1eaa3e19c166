package config

import (
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

func TestConfigDocument(t *testing.T) { golden(t, "../../docs/CONFIG.md", Markdown()) }

func TestEveryKeyIsDescribed(t *testing.T) {
	for _, s := range Sections() {
		for _, k := range s.Keys {
			if k.Meaning == "" || !strings.HasSuffix(strings.TrimSuffix(k.Meaning, "\""), ".") {
				t.Errorf("%s.%s: the meaning is no sentence: %q", s.Name, k.Name, k.Meaning)
			}
			if k.Default == "" && k.Note == "" && !k.Required && k.Name != "command" && k.Name != "url" {
				t.Errorf("%s.%s has neither a default nor a note", s.Name, k.Name)
			}
			if (k.Type == typeInteger || k.Type == typeSeconds) && k.Max <= k.Min {
				t.Errorf("%s.%s has no bounds", s.Name, k.Name)
			}
		}
	}
}

func TestSchemaIsASchema(t *testing.T) {
	b, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	server := map[string]any{"listen": "127.0.0.1:7411"}
	if err := resolved.Validate(map[string]any{"server": server}); err != nil {
		t.Errorf("a valid file: %v", err)
	}
	server["listne"] = "x"
	if err := resolved.Validate(map[string]any{"server": server}); err == nil {
		t.Error("an unknown key passes the schema")
	}
}
