package world

import (
	"errors"
	"net/url"
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
	scope, err := url.PathUnescape(uri[len(uriPrefix):])
	if err != nil {
		return "", errURI
	}
	s := call.Scope(scope)
	if err := CheckScope(s); err != nil {
		return "", err
	}
	return s, nil
}
