package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestR2_3_SchemaMustBeOfAnObject(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"object":              {`{"type":"object"}`, ""},
		"missing":             {``, "missing"},
		"no type":             {`{}`, "type is missing"},
		"array":               {`{"type":"array"}`, `type is "array"`},
		"type list":           {`{"type":["object","null"]}`, "type is missing"},
		"null":                {`null`, "neither an object nor a boolean"},
		"duplicate key":       {`{"type":"object","type":"object"}`, "duplicate"},
		"S-012 dialect":       {`{"type":"object","$schema":"urn:x"}`, "unsupported dialect"},
		"S-012 draft-07":      {`{"type":"object","$schema":"http://json-schema.org/draft-07/schema#"}`, ""},
		"S-013 http ref":      {`{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:1/x"}}}`, "does not lead to a place in the schema"},
		"S-013 file ref":      {`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "does not lead to a place in the schema"},
		"S-014 dangling ref":  {`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}}}`, "does not lead to a place in the schema"},
		"local ref":           {`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"string"}}}`, ""},
		"escaped ref":         {`{"type":"object","properties":{"a":{"$ref":"#/$defs/b~1c%20d"}},"$defs":{"b/c d":{"type":"string"}}}`, ""},
		"anchor":              {`{"type":"object","properties":{"a":{"$ref":"#b"}},"$defs":{"x":{"$anchor":"b","type":"string"}}}`, ""},
		"refers to itself":    {`{"type":"object","$ref":"#"}`, "refers to itself"},
		"refers through any":  {`{"type":"object","anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{}]}}}`, "refers to itself"},
		"recursive but sound": {`{"type":"object","properties":{"next":{"$ref":"#"}}}`, ""},
		"pattern":             {`{"type":"object","properties":{"a":{"pattern":"` + strings.Repeat("a", 5000) + `"}}}`, "longer than"},
		"depth":               {strings.Repeat(`{"type":"object","not":`, 200) + `{}` + strings.Repeat(`}`, 200), "nested deeper"},
	} {
		_, err := CompileSchema([]byte(c.schema))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// F-23, S-016: schemas that double at each level are refused before anything is validated against them, whether they double in
// place or on the way down.
func TestS016_SchemaBombsAreRefused(t *testing.T) {
	bomb := func(link string) string {
		var b strings.Builder
		b.WriteString(`{"type":"object","$ref":"#/$defs/l0","$defs":{`)
		for i := range 24 {
			next := fmt.Sprintf(`{"$ref":"#/$defs/l%d"}`, i+1)
			fmt.Fprintf(&b, `"l%d":%s,`, i, fmt.Sprintf(link, next, next))
		}
		b.WriteString(`"l24":{}}}`)
		return b.String()
	}
	for _, link := range []string{`{"anyOf":[%s,%s]}`, `{"properties":{"x":{"anyOf":[%s,%s]}}}`} {
		if _, err := CompileSchema([]byte(bomb(link))); err == nil || !strings.Contains(err.Error(), "could visit more than") {
			t.Errorf("%s: got %v", link, err)
		}
	}
	s, err := CompileSchema([]byte(`{"type":"object","anyOf":[{"properties":{"x":{"$ref":"#"}}},{"properties":{"x":{"$ref":"#"}},"required":["y"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`{"x":`, 60) + `{}` + strings.Repeat(`}`, 60)
	if err := s.Validate([]byte(deep), false); err == nil || !strings.Contains(err.Error(), "levels deep") {
		t.Errorf("a doubling recursion was followed 60 levels down: %v", err)
	}
	if err := s.Validate([]byte(`{"x":{"x":{}}}`), false); err != nil {
		t.Errorf("two levels: %v", err)
	}
}

func TestR6_8_Validate(t *testing.T) {
	s, err := CompileSchema([]byte(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740991},"s":{"type":"string"}},"required":["n"],"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	for args, ok := range map[string]bool{
		`{"n":1}`:                true,
		`{"n":9007199254740991}`: true,
		`{"n":9007199254740994}`: false,
		`{"n":1.0}`:              true, // a number without a fraction is an integer
		`{"n":1.5}`:              false,
		`{"n":"1"}`:              false,
		`{"n":1,"s":""}`:         true,
		`{"n":1,"x":1}`:          false,
		``:                       false,
		`[]`:                     false,
		`{"n":1}{}`:              false,
	} {
		if err := s.Validate([]byte(args), false); (err == nil) != ok {
			t.Errorf("%s: %v, want valid = %v", args, err, ok)
		}
	}
	for args, ok := range map[string]bool{`{"n":1,"s":null}`: true, `{"n":null}`: false, `{"n":1,"x":null}`: true, `{"n":1,"s":1}`: false} {
		if err := s.Validate([]byte(args), true); (err == nil) != ok {
			t.Errorf("null is absent, %s: %v, want valid = %v", args, err, ok)
		}
	}
	if err := s.Validate([]byte(`{"n":1,"s":null}`), false); err == nil {
		t.Error("null was taken for a string")
	}
	open, err := CompileSchema([]byte(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	for args, ok := range map[string]bool{``: true, `{}`: true, ` {"a":[1]}`: true, `[]`: false} {
		if err := open.Validate([]byte(args), false); (err == nil) != ok {
			t.Errorf("open schema, %q: %v", args, err)
		}
	}
}

// Whatever a provider sends as a schema, reading it neither panics nor hangs, and what it accepts can be validated against.
func FuzzCompileSchema(f *testing.F) {
	for _, s := range []string{`{"type":"object"}`, `{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"type":"object","$defs":{"a":true},"allOf":[{"$ref":"#/$defs/a"}]}`,
		`{"type":"object","items":[{},false],"dependencies":{"a":["b"],"c":{}}}`} {
		f.Add([]byte(s), []byte(`{"a":{"a":{}},"b":[1,2.5e400]}`))
	}
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		s, err := CompileSchema(schema)
		if err != nil || !json.Valid(args) {
			return
		}
		_ = s.Validate(args, false)
	})
}

// The validator's own reader agrees with the standard library on everything that is valid JSON.
func FuzzInstance(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5,1e3,true,false,null,"x\"\\\u0041\\"],"":{}}`, ` [ ] `, `"\\"`, `"\\\""`, `18446744073709551615`, `{"a" : {"b":[ {} , 1 ]}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := instance(raw)
		if !jsontext.Value(raw).IsValid() {
			return
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var want any
		if e := d.Decode(&want); e != nil {
			t.Fatalf("%q is valid, and cannot be decoded: %v", raw, e)
		}
		if err != nil {
			if !strings.Contains(err.Error(), "too large") {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if !same(got, want) {
			t.Fatalf("%q: got %#v, want %#v", raw, got, want)
		}
	})
}

func same(got, want any) bool {
	switch w := want.(type) {
	case json.Number:
		if i, err := w.Int64(); err == nil {
			return got == i
		}
		if u, err := strconv.ParseUint(w.String(), 10, 64); err == nil {
			return got == u
		}
		f, err := w.Float64()
		return err == nil && got == f
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !same(g[i], w[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for k, v := range w {
			if x, ok := g[k]; !ok || !same(x, v) {
				return false
			}
		}
		return true
	default:
		return got == want
	}
}

func BenchmarkValidate(b *testing.B) {
	s, err := CompileSchema([]byte(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`))
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{100, 100_000} {
		args := []byte(`{"text":"` + strings.Repeat("a", n) + `"}`)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Validate(args, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
