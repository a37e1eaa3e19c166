package world

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
)

// Template is a scope with placeholders for arguments: qq:group:{group_id} (R4.4).
type Template struct {
	source string
	// parts are literal text and names of properties in turn, text first.
	parts []string
}

// ParseTemplate reads a template. A placeholder is the name of one top-level property and nothing else: no dotted path,
// index, default or function. One without placeholders must be a legal scope as it stands.
func ParseTemplate(s string) (Template, error) {
	t := Template{source: s}
	if len(s) > MaxScope {
		return t, fmt.Errorf("scope template of %d bytes: at most %d are possible", len(s), MaxScope)
	}
	for rest := s; ; {
		text, after, found := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return t, fmt.Errorf("scope template %q: a '}' without its '{'", s)
		}
		t.parts = append(t.parts, text)
		if !found {
			break
		}
		name, after, found := strings.Cut(after, "}")
		if !found {
			return t, fmt.Errorf("scope template %q: a '{' without its '}'", s)
		}
		if err := checkProperty(name); err != nil {
			return t, fmt.Errorf("scope template %q: %w", s, err)
		}
		t.parts = append(t.parts, name)
		rest = after
	}
	// What stands around the placeholders can be judged now, with a value in their place that fits anywhere.
	sample := new(strings.Builder)
	for i, p := range t.parts {
		if i%2 == 1 {
			p = "x"
		}
		sample.WriteString(p)
	}
	if err := CheckScope(call.Scope(sample.String())); err != nil {
		if t.fixed() {
			return t, err
		}
		return t, fmt.Errorf("scope template %q: %w (with x for each placeholder)", s, err)
	}
	return t, nil
}

func checkProperty(name string) error {
	if name == "" {
		return errors.New("a placeholder without a name")
	}
	for i, c := range []byte(name) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '-') {
			return fmt.Errorf("placeholder {%s}: only the name of a top-level property is possible", name)
		}
	}
	return nil
}

// String is the template as it was written.
func (t Template) String() string { return t.source }

// fixed says that there are no placeholders.
func (t Template) fixed() bool { return len(t.parts) == 1 }

// Properties lists the properties that the template refers to.
func (t Template) Properties() []string {
	var names []string
	for i := 1; i < len(t.parts); i += 2 {
		names = append(names, t.parts[i])
	}
	return names
}

// Resolve puts the arguments of one call in place of the placeholders, and checks what that makes (R4.5). Only text and
// integers may stand in a scope, and neither may add a segment to it.
func (t Template) Resolve(arguments Arguments) (call.Scope, error) {
	if t.fixed() {
		return call.Scope(t.source), nil
	}
	b := new(strings.Builder)
	for i, p := range t.parts {
		if i%2 == 0 {
			b.WriteString(p)
			continue
		}
		raw, ok := arguments[p]
		if !ok {
			return "", fmt.Errorf("scope %s: the argument %s is missing", t.source, p)
		}
		v, err := scalar(raw)
		if err != nil {
			return "", fmt.Errorf("scope %s: the argument %s %w", t.source, p, err)
		}
		if v == "" || strings.Contains(v, ":") {
			return "", fmt.Errorf("scope %s: the argument %s is empty or has a ':' in it", t.source, p)
		}
		b.WriteString(v)
	}
	s := call.Scope(b.String())
	if err := CheckScope(s); err != nil {
		return "", fmt.Errorf("scope %s: with these arguments it is none: %w", t.source, err)
	}
	return s, nil
}

// scalar is the text of a string or of an integer. An integer is one that is written as one: 42, never 42.0 or 4.2e1.
func scalar(raw jsontext.Value) (string, error) {
	switch raw.Kind() {
	case '"':
		s, err := jsontext.AppendUnquote(nil, raw)
		return string(s), err
	case '0':
		digits := strings.TrimPrefix(string(raw), "-")
		if strings.Trim(digits, "0123456789") != "" || string(raw) == "-0" {
			return "", errors.New("is not an integer")
		}
		return string(raw), nil
	default:
		return "", errors.New("is neither text nor an integer")
	}
}

// Arguments are the top-level members of a call's arguments, raw.
type Arguments map[string]jsontext.Value

// readArguments takes the raw object of a call's arguments apart; nil is none.
func readArguments(raw []byte) (Arguments, error) {
	if raw == nil {
		return nil, nil
	}
	a, err := members(raw)
	if err != nil {
		return nil, fmt.Errorf("read arguments: %w", err)
	}
	return a, nil
}

// members reads the members of an object.
func members(raw []byte) (map[string]jsontext.Value, error) {
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

// Scopes are what one tool observes and publishes, as templates (R4.3).
type Scopes struct {
	Owner            string // the provider whose tool it is
	Observe, Publish []Template
}

// DefaultScopes are those of a tool that says nothing of its own.
func DefaultScopes(pkg string) Scopes {
	app := []Template{{source: string(ScopeOf(pkg)), parts: []string{string(ScopeOf(pkg))}}}
	return Scopes{Owner: pkg, Observe: app, Publish: app}
}

// Resolved are the scopes of one call. Each is there once, sorted.
type Resolved struct {
	Observe, Publish []call.Scope
}

// Resolve says which scopes a call with these arguments observes and publishes (R4.5).
func (s Scopes) Resolve(arguments []byte) (Resolved, error) {
	var a Arguments
	if !s.fixed() { // most tools are: nothing is looked up for them
		var err error
		if a, err = readArguments(arguments); err != nil {
			return Resolved{}, err
		}
	}
	observe, err := resolve(s.Observe, a)
	if err != nil {
		return Resolved{}, err
	}
	publish, err := resolve(s.Publish, a)
	if err != nil {
		return Resolved{}, err
	}
	for _, p := range publish {
		if foreign(s.Owner, p) {
			return Resolved{}, fmt.Errorf("scope %s: %w", p, ErrForeignPublish)
		}
	}
	return Resolved{Observe: observe, Publish: publish}, nil
}

// ErrForeignPublish is what is wrong with a tool that would publish what stands for another provider. To observe it is fine.
var ErrForeignPublish = errors.New("it stands for another provider, and only that one publishes it")

// CheckPublish reports which template of what is published stands for another provider whatever the arguments are. One that
// may come to do so is looked at with each call.
func (s Scopes) CheckPublish() error {
	for _, t := range s.Publish {
		if t.fixed() && foreign(s.Owner, call.Scope(t.source)) {
			return fmt.Errorf("scope %s: %w", t.source, ErrForeignPublish)
		}
	}
	return nil
}

// fixed says that the scopes are the same whatever the arguments are.
func (s Scopes) fixed() bool {
	open := func(t Template) bool { return !t.fixed() }
	return !slices.ContainsFunc(s.Observe, open) && !slices.ContainsFunc(s.Publish, open)
}

func resolve(templates []Template, a Arguments) ([]call.Scope, error) {
	scopes := make([]call.Scope, 0, len(templates))
	for _, t := range templates {
		s, err := t.Resolve(a)
		if err != nil {
			return nil, err
		}
		scopes = append(scopes, s)
	}
	slices.Sort(scopes)
	return slices.Compact(scopes), nil
}
