package firewall

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// CheckKinds says which content kind of a tool's result is not among the admitted ones (R3.7). nil admits every kind,
// those that a later revision adds too. A result that cannot be read has no admitted kind.
func CheckKinds(result []byte, admitted []string) error {
	if admitted == nil {
		return nil
	}
	kinds, err := Kinds(result)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		if !slices.Contains(admitted, k) {
			return fmt.Errorf("content of kind %q is not admitted", k)
		}
	}
	return nil
}

// Kinds lists the content kinds of a tool's result, in order, with repetitions.
func Kinds(result []byte) ([]string, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(result))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, errors.New("the result is not an object")
	}
	var kinds []string
	for d.PeekKind() == '"' {
		key, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		if key.String() != "content" || d.PeekKind() != '[' {
			if err := d.SkipValue(); err != nil {
				return nil, err
			}
			continue
		}
		if _, err := d.ReadToken(); err != nil {
			return nil, err
		}
		for d.PeekKind() != ']' {
			k, err := kind(d)
			if err != nil {
				return nil, err
			}
			kinds = append(kinds, k)
		}
		if _, err := d.ReadToken(); err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return kinds, err
}

// kind reads one content block and returns its type.
func kind(d *jsontext.Decoder) (string, error) {
	if t, err := d.ReadToken(); err != nil {
		return "", err
	} else if t.Kind() != '{' {
		return "", errors.New("a content block is not an object")
	}
	found := ""
	for d.PeekKind() == '"' {
		key, err := d.ReadToken()
		if err != nil {
			return "", err
		}
		if key.String() == "type" && d.PeekKind() == '"' {
			v, err := d.ReadToken()
			if err != nil {
				return "", err
			}
			found = v.String()
		} else if err := d.SkipValue(); err != nil {
			return "", err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return "", err
	}
	if found == "" {
		return "", errors.New("a content block has no type")
	}
	return found, nil
}
