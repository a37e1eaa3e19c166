package vault

import (
	"fmt"
	"log/slog"
)

// Secret holds a credential so that no printing, logging or encoding shows it by accident. The zero value is empty.
type Secret struct {
	// A pointer, because package fmt cannot call methods on a Secret in an unexported field of something else, and prints
	// what it finds there: an address.
	value *string
}

// NewSecret wraps a credential.
func NewSecret(value string) Secret { return Secret{&value} }

// Reveal gives the credential to the one place that needs it.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

const redacted = "[redacted]"

func (Secret) String() string { return redacted }

// GoString keeps %#v from showing the credential.
func (Secret) GoString() string { return redacted }

// Format keeps the other verbs from showing it.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue keeps it out of logs.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText keeps it out of encodings.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
