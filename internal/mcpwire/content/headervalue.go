package content

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"
)

const (
	sentinelPrefix = "=?base64?"
	sentinelSuffix = "?="
)

// ErrHeaderValue says that a header value is not what the specification's encoding can produce.
var ErrHeaderValue = errors.New("header value is not validly encoded")

// EncodeHeaderValue makes s safe as a header value (S-040): unchanged if it is plain ASCII, else Base64 between the
// sentinels. Outer blanks, control characters and values that look encoded are encoded, and so is the empty string, because
// an empty field is taken for an absent one by too many.
func EncodeHeaderValue(s string) string {
	if s != "" && plainHeaderValue(s) && !(strings.HasPrefix(s, sentinelPrefix) && strings.HasSuffix(s, sentinelSuffix)) {
		return s
	}
	return sentinelPrefix + base64.StdEncoding.EncodeToString([]byte(s)) + sentinelSuffix
}

func plainHeaderValue(s string) bool {
	if s != strings.Trim(s, " \t") {
		return false
	}
	return ValidHeaderValue(s)
}

// ValidHeaderValue says whether s holds only visible ASCII, blanks and tabs.
func ValidHeaderValue(s string) bool {
	for _, c := range []byte(s) {
		if (c < 0x20 || c > 0x7e) && c != '\t' {
			return false
		}
	}
	return true
}

// DecodeHeaderValue is the inverse of [EncodeHeaderValue]. A value between the sentinels must be strict Base64 of valid
// UTF-8; characters that cannot stand in a header are an error.
func DecodeHeaderValue(v string) (string, error) {
	if !ValidHeaderValue(v) {
		return "", ErrHeaderValue
	}
	if !strings.HasPrefix(v, sentinelPrefix) || !strings.HasSuffix(v, sentinelSuffix) {
		return v, nil
	}
	if len(v) < len(sentinelPrefix)+len(sentinelSuffix) {
		return "", ErrHeaderValue
	}
	b, err := base64.StdEncoding.Strict().DecodeString(v[len(sentinelPrefix) : len(v)-len(sentinelSuffix)])
	if err != nil || !utf8.Valid(b) {
		return "", ErrHeaderValue
	}
	return string(b), nil
}

// IsToken says whether s is an HTTP token (RFC 9110, 1*tchar): what a field name must be.
func IsToken(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
