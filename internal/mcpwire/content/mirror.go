package content

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/ostiary/ostiary/call"
)

// ParamHeaderPrefix begins the name of every header that mirrors an argument.
const ParamHeaderPrefix = "Mcp-Param-"

// maxSafeInteger is 2^53-1, the largest integer that may be mirrored, in either sign.
const maxSafeInteger = 1<<53 - 1

// MirrorHeaders sets the headers that mirror arguments (S-041). A value that is null or not there is left out; 0, false and
// the empty string are values. What cannot be mirrored exactly is an error, which names the parameter: an integer beyond
// 2^53-1, a fraction, an object or a list. arguments may be nil.
func MirrorHeaders(h http.Header, params []call.ParamHeader, arguments []byte) error {
	for _, p := range params {
		raw := argumentAt(arguments, p.Path)
		if raw == nil {
			continue
		}
		s, _, err := mirrored(raw)
		if err != nil {
			return fmt.Errorf("mirror argument %q: %w", strings.Join(p.Path, "."), err)
		}
		h[textproto.CanonicalMIMEHeaderKey(ParamHeaderPrefix+p.Name)] = []string{EncodeHeaderValue(s)}
	}
	return nil
}

// CheckMirrored compares the mirroring headers of an inbound request with its arguments (S-044): each must be there exactly
// when its argument has a value, once, validly encoded and equal; integers are compared as numbers. The error is fit for
// the caller and quotes no value.
func CheckMirrored(h http.Header, params []call.ParamHeader, arguments []byte) error {
	for _, p := range params {
		name := ParamHeaderPrefix + p.Name
		values := h.Values(name)
		raw := argumentAt(arguments, p.Path)
		switch {
		case raw == nil && len(values) == 0:
			continue
		case raw == nil:
			return fmt.Errorf("header %s is set, but the argument has no value", name)
		case len(values) == 0:
			return fmt.Errorf("header %s is missing", name)
		case len(values) > 1:
			return fmt.Errorf("header %s is set more than once", name)
		}
		got, err := DecodeHeaderValue(values[0])
		if err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
		want, number, err := mirrored(raw)
		if err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
		if number {
			if n, err := decimalInteger(got); err == nil {
				got = n
			}
		}
		if got != want {
			return fmt.Errorf("header %s does not match the argument", name)
		}
	}
	return nil
}

// argumentAt is the raw value at a path of keys, or nil if there is none or it is null.
func argumentAt(arguments []byte, path []string) []byte {
	for _, key := range path {
		if arguments = Member(arguments, key); arguments == nil {
			return nil
		}
	}
	if kind(arguments) == 'n' {
		return nil
	}
	return arguments
}

// mirrored is an argument's value as its header says it, before it is encoded.
func mirrored(raw []byte) (s string, number bool, err error) {
	switch kind(raw) {
	case '"':
		s, ok := String(raw)
		if !ok {
			return "", false, errors.New("no valid string")
		}
		return s, false, nil
	case 't':
		return "true", false, nil
	case 'f':
		return "false", false, nil
	case '0':
		s, err = decimalInteger(string(raw))
		return s, true, err
	default:
		return "", false, errors.New("only integers, strings and booleans can be mirrored")
	}
}

// decimalInteger writes a JSON number that is an integer by value (42, 42.0, 4.2e1) in decimal. It works on the digits, so
// that no exponent costs memory and no digit is lost.
func decimalInteger(s string) (string, error) {
	errNone := errors.New("no integer")
	digits, negative := strings.CutPrefix(s, "-")
	exp := 0
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		n, err := strconv.Atoi(digits[i+1:])
		if err != nil {
			return "", errNone
		}
		exp, digits = n, digits[:i]
	}
	whole, fraction, dot := strings.Cut(digits, ".")
	if whole == "" || dot && fraction == "" {
		return "", errNone
	}
	for _, c := range []byte(whole + fraction) {
		if c < '0' || c > '9' {
			return "", errNone
		}
	}
	digits = strings.TrimLeft(whole+fraction, "0")
	exp -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	exp += len(digits) - len(trimmed)
	switch {
	case trimmed == "":
		return "0", nil
	case exp < 0:
		return "", errNone
	case exp > 16 || len(trimmed)+exp > 16:
		return "", errors.New("integer beyond 2^53-1")
	}
	n, err := strconv.ParseInt(trimmed+strings.Repeat("0", exp), 10, 64)
	if err != nil || n > maxSafeInteger {
		return "", errors.New("integer beyond 2^53-1")
	}
	if negative {
		n = -n
	}
	return strconv.FormatInt(n, 10), nil
}
