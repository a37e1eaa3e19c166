package config

import (
	"log/slog"
	"net/url"
	"regexp"
	"strings"
)

// Secret holds a credential so that no printing, logging or encoding shows it by accident.
type Secret struct{ value string }

// NewSecret wraps a credential.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal gives the credential to the one place that needs it.
func (s Secret) Reveal() string { return s.value }

const redacted = "[redacted]"

func (Secret) String() string { return redacted }

// GoString keeps %#v from showing the credential.
func (Secret) GoString() string { return redacted }

// LogValue keeps it out of logs.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText keeps it out of encodings.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

var (
	// Beginnings that issuers give their tokens, and the shape of a JSON Web Token.
	secretValue = regexp.MustCompile(`(?i)^(bearer |basic )?(gh[opusr]_|github_pat_|glpat-|sk-|sk_live_|sk_test_|rk_live_|xox[abprs]-|AKIA|ASIA|AIza|ya29\.|npm_|pypi-|hf_|dop_v1_|SG\.|eyJ[A-Za-z0-9_-]+\.eyJ)[A-Za-z0-9_.\-]{8,}|-----BEGIN [A-Z ]*PRIVATE KEY`)
	// Names that say that the value is a secret.
	secretName = regexp.MustCompile(`(?i)(^|[_.-])(token|secret|passw(or)?d|api[_-]?key|private[_-]?key|access[_-]?key|credentials?|authorization|cookie)$`)
)

// looksSecret says whether a literal is probably a credential. It only ever leads to a warning, and to hiding the value.
func looksSecret(name, value string) bool {
	if value == "" {
		return false
	}
	return secretName.MatchString(name) || secretValue.MatchString(value)
}

// looksSecretArg says the same of a command-line argument, --token=… included.
func looksSecretArg(before, arg string) bool {
	if name, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(name, "-") {
		return looksSecret(strings.TrimLeft(name, "-"), value)
	}
	flag := ""
	if strings.HasPrefix(before, "-") && !strings.HasPrefix(arg, "-") && !strings.Contains(before, "=") {
		flag = strings.TrimLeft(before, "-")
	}
	return looksSecret(flag, arg)
}

// shownURL is a URL without what may be secret in it.
func shownURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return redacted
	}
	u.User, u.Fragment = nil, ""
	if u.RawQuery != "" {
		u.RawQuery = redacted
	}
	return u.String()
}
