package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
)

// argumentSchema is what the command line needs to know of an input schema to type `k=v`.
type argumentSchema struct {
	types    map[string][]string // by property; an empty list: the schema does not say
	required []string
	closed   bool // no other properties are possible
}

// readSchema reads the top level of an input schema. What it cannot read it leaves out: the gateway validates.
func readSchema(schema []byte) argumentSchema {
	s := argumentSchema{types: map[string][]string{}}
	eachMember(schema, func(name string, value jsontext.Value) {
		switch name {
		case "properties":
			eachMember(value, func(property string, sub jsontext.Value) {
				s.types[property] = []string{}
				eachMember(sub, func(k string, v jsontext.Value) {
					if k == "type" {
						s.types[property] = words(v)
					}
				})
			})
		case "required":
			s.required = words(value)
		case "additionalProperties":
			s.closed = string(value) == "false"
		}
	})
	return s
}

// eachMember yields the members of a JSON object in order; nothing for any other value.
func eachMember(object []byte, yield func(name string, value jsontext.Value)) bool {
	d := jsontext.NewDecoder(bytes.NewReader(object))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return false
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return false
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return false
		}
		yield(key, slices.Clone(value))
	}
	return true
}

// words reads a string, or an array of strings.
func words(v jsontext.Value) []string {
	var out []string
	d := jsontext.NewDecoder(bytes.NewReader(v))
	for {
		t, err := d.ReadToken()
		if err != nil {
			return out
		}
		if t.Kind() == '"' {
			out = append(out, t.String())
		}
	}
}

// arguments builds the JSON object of a call, every value exactly as it was given:
//
//	k=v       typed by the tool's schema; text if that does not say
//	k:=json   JSON as it is
//	k=@file   the text of a file; k=@- reads stdin; k=@@v is the text "@v"
//	k:=@file  a file of JSON
//
// input is an object to begin with (nil: empty), whose members the pairs replace.
func (a *app) arguments(pairs []string, input []byte, schema argumentSchema) ([]byte, error) {
	var names []string
	values := map[string]jsontext.Value{}
	if input != nil {
		if !jsontext.Value(input).IsValid() || !eachMember(input, func(name string, v jsontext.Value) {
			names, values[name] = append(names, name), v
		}) {
			return nil, usage("give one JSON object, without duplicate keys", "the input is no valid JSON object")
		}
	}
	given := map[string]bool{}
	for _, pair := range pairs {
		name, value, err := a.argument(pair, schema)
		if err != nil {
			return nil, err
		}
		if given[name] {
			return nil, usage("for a list write "+shellWord(name)+":='[…]'", "the argument %q is given twice", name)
		}
		given[name] = true
		if _, ok := values[name]; !ok {
			names = append(names, name)
		}
		values[name] = value
	}
	b := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = jsontext.AppendQuote(b, name); err != nil {
			return nil, usage("", "argument %q: %v", name, err)
		}
		b = append(append(b, ':'), values[name]...)
	}
	return append(b, '}'), nil
}

func (a *app) argument(pair string, schema argumentSchema) (name string, value jsontext.Value, err error) {
	name, text, ok := strings.Cut(pair, "=")
	raw := strings.HasSuffix(name, ":")
	name = strings.TrimSuffix(name, ":")
	if !ok || name == "" {
		return "", nil, usage("write k=v, k:=json, k=@file or k:=@file", "%q is no argument", pair)
	}
	if !utf8.ValidString(pair) {
		return "", nil, usage("", "the argument %q is no valid UTF-8", name)
	}
	types, known := schema.types[name]
	if !known && schema.closed {
		names := make([]string, 0, len(schema.types))
		for n := range schema.types {
			names = append(names, n)
		}
		slices.Sort(names)
		hint := "the tool has no arguments"
		if len(names) > 0 {
			hint = "the tool's arguments: " + strings.Join(names, ", ")
		}
		return "", nil, usage(hint, "the tool has no argument %q", name)
	}
	fromFile := false
	switch {
	case !raw && strings.HasPrefix(text, "@@"):
		text = text[1:]
	case strings.HasPrefix(text, "@"):
		b, err := a.readInput(text[1:])
		if err != nil {
			return "", nil, err
		}
		text, fromFile = string(b), true
	}
	if raw {
		v := jsontext.Value(strings.TrimSpace(text))
		if !v.IsValid() {
			return "", nil, usage("quote it for the shell: "+shellWord(name)+":='{\"a\": 1}'", "the argument %q is no valid JSON", name)
		}
		return name, v, nil
	}
	if fromFile && !utf8.ValidString(text) {
		return "", nil, usage("encode it first, for example with base64", "the file for the argument %q is no text", name)
	}
	value, err = typed(name, text, types, fromFile)
	return name, value, err
}

// typed gives text the JSON type that the schema wants. Integers and decimals are kept digit for digit.
func typed(name, text string, types []string, fromFile bool) (jsontext.Value, error) {
	v := jsontext.Value(text)
	if !fromFile && strings.TrimSpace(text) == text && v.IsValid() {
		for _, t := range types {
			if fits(v, t) {
				return v, nil
			}
		}
	}
	if len(types) == 0 || fromFile || slices.Contains(types, "string") {
		quoted, err := jsontext.AppendQuote(nil, text)
		if err != nil {
			return nil, usage("", "argument %q: %v", name, err)
		}
		return quoted, nil
	}
	return nil, usage("to pass something else, write "+shellWord(name)+":=JSON", "the argument %q must be %s", name, strings.Join(types, " or "))
}

// fits says whether a JSON literal is of a schema's type. A string is never meant by its quotes: k="v" is text with quotes.
func fits(v jsontext.Value, typ string) bool {
	switch v.Kind() {
	case 'n':
		return typ == "null"
	case 't', 'f':
		return typ == "boolean"
	case '0':
		return typ == "number" || typ == "integer" && !bytes.ContainsAny(v, ".eE")
	case '{':
		return typ == "object"
	case '[':
		return typ == "array"
	}
	return false
}

// maxInput bounds a file that becomes an argument.
const maxInput = 64 << 20

// readInput reads a file, or stdin for "-".
func (a *app) readInput(path string) ([]byte, error) {
	var r io.Reader = a.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fail(call.ExitUsage, "", "read argument: %w", err)
		}
		defer f.Close()
		r = f
	} else if isTerminal(a.in) {
		a.say("reading stdin; end with Ctrl-D")
	}
	b, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, fail(call.ExitUsage, "", "read argument: %w", err)
	}
	if len(b) > maxInput {
		return nil, usage("", "read argument: %s", fmt.Sprintf("%s is larger than %d bytes", path, maxInput))
	}
	return b, nil
}
