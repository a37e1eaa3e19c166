package world

import (
	"fmt"
	"strings"

	"github.com/ostiary/ostiary/call"
)

// MaxScope bounds a scope, in bytes.
const MaxScope = 256

// CheckScope reports why s is no scope: segments divided by ':', the first one [a-z][a-z0-9_-]*, each further one at least
// one of A-Z a-z 0-9 . _ ~ @ + = - and no other character, at most [MaxScope] bytes. What looks alike or cannot be seen is
// so never two scopes.
func CheckScope(s call.Scope) error {
	if len(s) > MaxScope {
		return fmt.Errorf("scope of %d bytes: at most %d are possible", len(s), MaxScope)
	}
	first, rest, more := strings.Cut(string(s), ":")
	if first == "" || first[0] < 'a' || first[0] > 'z' {
		return fmt.Errorf("scope %q: the first segment starts with a lower-case letter", s)
	}
	for _, c := range []byte(first) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return fmt.Errorf("scope %q: only lower-case letters, digits, '_' and '-' in the first segment", s)
		}
	}
	for more {
		var segment string
		segment, rest, more = strings.Cut(rest, ":")
		if segment == "" {
			return fmt.Errorf("scope %q: a segment is empty", s)
		}
		for _, c := range segment {
			if !inSegment(c) {
				return fmt.Errorf("scope %q: %q cannot stand in a segment", s, c)
			}
		}
	}
	return nil
}

func inSegment(c rune) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return strings.ContainsRune("._~@+=-", c)
}

// appScope begins the scopes that stand for one provider each.
const appScope = "aurora:mcp:"

// ScopeOf is the scope that every tool of a provider observes and publishes unless it says otherwise (R4.3).
func ScopeOf(pkg string) call.Scope { return call.Scope(appScope + pkg) }

// foreign says whether a scope, or what begins it, stands for another provider than pkg.
func foreign(pkg string, s call.Scope) bool {
	owner, _, _ := strings.Cut(OwnerOf(s), ":")
	return owner != "" && owner != pkg
}

// OwnerOf is the provider that a scope stands for; "" if it stands for none.
func OwnerOf(s call.Scope) string {
	pkg, ok := strings.CutPrefix(string(s), appScope)
	if !ok {
		return ""
	}
	return pkg
}
