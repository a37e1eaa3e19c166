package world

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
)

// MaxFrontier bounds the scopes of a frontier.
const MaxFrontier = 256

// CheckFrontier reports what is wrong with a frontier: too many scopes, one that is none, a sequence below 0.
func CheckFrontier(f call.Frontier) error {
	if len(f) > MaxFrontier {
		return fmt.Errorf("frontier of %d scopes: at most %d are possible", len(f), MaxFrontier)
	}
	for s, seq := range f {
		if err := CheckScope(s); err != nil {
			return fmt.Errorf("frontier: %w", err)
		}
		if seq < 0 {
			return fmt.Errorf("frontier: scope %s has the sequence %d: it cannot be below 0", s, seq)
		}
	}
	return nil
}

// ReadFrontier reads a frontier from JSON: an object whose keys are scopes and whose values are integers from 0, written as
// such. The result is never nil without an error.
func ReadFrontier(raw []byte) (call.Frontier, error) {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, errors.New("frontier: it must be an object of scopes and sequences")
	}
	f := call.Frontier{}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, errors.New("frontier: a scope is there twice, or is no text")
		}
		s := call.Scope(name.String())
		if err := CheckScope(s); err != nil {
			return nil, fmt.Errorf("frontier: %w", err)
		}
		v, err := d.ReadValue()
		if err != nil {
			return nil, fmt.Errorf("frontier: the value of scope %s cannot be read", s)
		}
		if f[s], err = sequence(v); err != nil {
			return nil, fmt.Errorf("frontier: scope %s: %w", s, err)
		}
		if len(f) > MaxFrontier {
			return nil, fmt.Errorf("frontier: more than %d scopes", MaxFrontier)
		}
	}
	if _, err := d.ReadToken(); err != nil { // a name that is twice there is found here, too
		return nil, errors.New("frontier: it must be one object of scopes and sequences, each scope once")
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("frontier: something follows the object")
	}
	return f, nil
}

func sequence(v jsontext.Value) (int64, error) {
	if s := string(v); v.Kind() == '0' && strings.Trim(s, "0123456789") == "" {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, errors.New("its sequence must be an integer from 0")
}
