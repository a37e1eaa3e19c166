package world

import (
	"errors"
	"strings"

	"github.com/ostiary/ostiary/call"
)

// The address of a scope as a resource (R5.7).
const (
	uriPrefix   = "ostiary://world/"
	URITemplate = uriPrefix + "{scope}"
)

// maxURI bounds an address: each byte of a scope may be written as three.
const maxURI = len(uriPrefix) + 3*MaxScope

var errURI = errors.New("no address of a scope: expected " + URITemplate)

// URI is the address of a scope. No character of a scope has to be escaped in it.
func URI(s call.Scope) string { return uriPrefix + string(s) }

// ParseURI reads the address of a scope. Whoever fills in [URITemplate] escapes what a path may hold unescaped, so both are
// understood; nothing else may be in the address: no query, no fragment, no further segment, nothing escaped twice.
func ParseURI(uri string) (call.Scope, error) {
	if len(uri) > maxURI || len(uri) < len(uriPrefix) || !strings.EqualFold(uri[:len(uriPrefix)], uriPrefix) {
		return "", errURI
	}
	rest := uri[len(uriPrefix):]
	scope := make([]byte, 0, len(rest))
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		if c == '%' {
			if i+2 >= len(rest) {
				return "", errURI
			}
			high, low := unhex(rest[i+1]), unhex(rest[i+2])
			if high < 0 || low < 0 {
				return "", errURI
			}
			c = byte(high<<4 | low)
			i += 2
		}
		scope = append(scope, c)
	}
	s := call.Scope(scope)
	if err := CheckScope(s); err != nil {
		return "", err
	}
	return s, nil
}

// unhex is the value of a hexadecimal digit, -1 if c is none.
func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
