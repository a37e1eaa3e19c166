package identity

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"unicode"
	"unicode/utf8"

	"github.com/ostiary/ostiary/call"
)

// MinTokenLength is the least number of characters of a token: enough for 64 random bits even if it is hexadecimal.
const MinTokenLength = 16

// maxTokenLength bounds what is hashed for a stranger. It is far above any real token.
const maxTokenLength = 8 << 10

const redacted = "[redacted]"

// Token is a bearer token. It prints, logs and marshals as "[redacted]" (R6.9).
type Token string

// String is for whoever prints a token by mistake.
func (Token) String() string { return redacted }

// GoString is String for %#v.
func (Token) GoString() string { return redacted }

// LogValue is String for log/slog.
func (Token) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText is String for encoders.
func (Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Credential says which principal a token stands for.
type Credential struct {
	Principal string
	Token     Token
}

// Tokens knows the principals of a fixed set of tokens. It keeps hashes, not tokens. It is safe for concurrent use; its
// zero value knows nobody.
type Tokens struct{ entries []entry }

type entry struct {
	hash      [sha256.Size]byte
	principal call.Principal
}

// NewTokens takes credentials in. It refuses all of them, naming principals and never tokens, if one is too short, holds
// characters that a header cannot carry, or is given to two principals. A principal may have several tokens.
func NewTokens(credentials []Credential) (*Tokens, error) {
	t := &Tokens{entries: make([]entry, 0, len(credentials))}
	owner := make(map[[sha256.Size]byte]string, len(credentials))
	var errs []error
	for _, c := range credentials {
		if err := checkCredential(c); err != nil {
			errs = append(errs, err)
			continue
		}
		h := sha256.Sum256([]byte(c.Token))
		if other, taken := owner[h]; taken {
			errs = append(errs, fmt.Errorf("token of principal %q: the same token is given to principal %q", c.Principal, other))
			continue
		}
		owner[h] = c.Principal
		t.entries = append(t.entries, entry{hash: h, principal: call.Principal{ID: c.Principal}})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return t, nil
}

func checkCredential(c Credential) error {
	if c.Principal == "" {
		return errors.New("token without a principal")
	}
	if len(c.Principal) > 128 || !utf8.ValidString(c.Principal) {
		return fmt.Errorf("principal %.40q: at most 128 bytes of UTF-8", c.Principal)
	}
	for _, r := range c.Principal {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("principal %q: only printable characters", c.Principal)
		}
	}
	if len(c.Token) < MinTokenLength {
		return fmt.Errorf("token of principal %q: at least %d characters are needed, it has %d", c.Principal, MinTokenLength, len(c.Token))
	}
	if len(c.Token) > maxTokenLength {
		return fmt.Errorf("token of principal %q: more than %d characters", c.Principal, maxTokenLength)
	}
	for _, b := range []byte(c.Token) {
		if b <= ' ' || b > '~' {
			return fmt.Errorf("token of principal %q: only visible ASCII characters fit into a header", c.Principal)
		}
	}
	return nil
}

// Len is the number of tokens.
func (t *Tokens) Len() int { return len(t.entries) }

// Authenticate says whose token bearer is. The time it takes depends on the length of bearer and the number of tokens
// alone: hashes are compared, all of them, without an early exit (R10.1, F-47).
func (t *Tokens) Authenticate(_ context.Context, bearer string) (call.Principal, bool) {
	if len(bearer) > maxTokenLength {
		return call.Principal{}, false
	}
	h := sha256.Sum256([]byte(bearer))
	found := 0 // index + 1
	for i := range t.entries {
		same := subtle.ConstantTimeCompare(h[:], t.entries[i].hash[:])
		found = subtle.ConstantTimeSelect(same, i+1, found)
	}
	if found == 0 {
		return call.Principal{}, false
	}
	return t.entries[found-1].principal, true
}
