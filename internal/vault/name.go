package vault

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of what a vault keeps.
const (
	MaxName    = 128            // bytes of a name
	MaxSecret  = 64 << 10       // bytes of a secret
	MaxEntries = 4096           // secrets in a vault
	maxContent = 4 << 20        // bytes of the canonical JSON
	maxFile    = 4<<20 + 64<<10 // bytes of the file, which is a little more
)

// ErrInvalid says that a name or a secret cannot be kept.
var ErrInvalid = errors.New("not fit for the vault")

// CheckName reports why name cannot be the name of a secret: segments that begin with a letter or a digit and go on with
// letters, digits, '.', '_' or '-', divided by '/'. A ':' is never in one, so that "env:NAME" names no secret.
func CheckName(name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("name of a secret: %w: it has %d bytes, at most %d are possible", ErrInvalid, len(name), MaxName)
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "" || !isAlnum(segment[0]) {
			return fmt.Errorf("name of a secret %q: %w: each segment begins with a letter or a digit", name, ErrInvalid)
		}
		for _, c := range []byte(segment) {
			if !isAlnum(c) && c != '.' && c != '_' && c != '-' {
				return fmt.Errorf("name of a secret %q: %w: only letters, digits, '.', '_', '-' and '/' are possible", name, ErrInvalid)
			}
		}
	}
	return nil
}

func isAlnum(c byte) bool {
	lower := c | 0x20
	return lower >= 'a' && lower <= 'z' || c >= '0' && c <= '9'
}

// checkValue reports why a secret cannot be kept, without a word of it.
func checkValue(value string) error {
	switch {
	case value == "":
		return fmt.Errorf("%w: the secret is empty", ErrInvalid)
	case len(value) > MaxSecret:
		return fmt.Errorf("%w: the secret has %d bytes, at most %d are possible", ErrInvalid, len(value), MaxSecret)
	case !utf8.ValidString(value):
		return fmt.Errorf("%w: the secret is not UTF-8 text", ErrInvalid)
	}
	return nil
}
