package drift

import (
	"crypto/sha256"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
)

// Canonical is the RFC 8785 form of a JSON value, but with integers as they are: RFC 8785 alone would round
// 9007199254740993, and two definitions that differ would look the same. raw is not changed.
func Canonical(raw []byte) ([]byte, error) {
	v := jsontext.Value(append([]byte(nil), raw...))
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return nil, fmt.Errorf("canonicalize: %w", err)
	}
	return v, nil
}

// Digest is the digest of a JSON value.
func Digest(raw []byte) (call.Digest, error) {
	c, err := Canonical(raw)
	if err != nil {
		return call.Digest{}, err
	}
	return sha256.Sum256(c), nil
}
