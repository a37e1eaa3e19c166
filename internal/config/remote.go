package config

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/vault"
)

func (s *section) http(active bool) (p *provider.HTTP, credentialEnv, entry string) {
	p = &provider.HTTP{URL: s.str("url", shownURL)}
	s.checkURL(p.URL)
	p.AllowRedirects = s.boolean("allow_redirects")
	p.AllowPrivateNet = s.boolean("allow_private_network")
	s.checkPrivate(p)
	credentialEnv, entry = s.credential(active)
	if credentialEnv != "" {
		env := s.env
		p.Credential = func() (string, error) {
			if v, ok := env(credentialEnv); ok && v != "" {
				return v, nil
			}
			return "", fmt.Errorf("credential: the environment variable %s is not set", credentialEnv)
		}
	}
	p.Headers = s.headers(credentialEnv != "" || entry != "")
	return p, credentialEnv, entry
}

// checkURL holds R1.9 against the address. The value is not repeated in messages: it may have a password in it.
func (s *section) checkURL(raw string) {
	if !s.has("url") {
		s.faultAt("url", "give the server's address", "the key is missing")
		return
	}
	if !s.hasText("url") {
		return // reported already
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		s.faultAt("url", "", "expected an address such as https://server.example/mcp")
		return
	case u.Scheme == "http" && !loopbackHost(u.Hostname()):
		s.faultAt("url", "use https", "http is for loopback alone (R1.9)")
	case u.Scheme != "http" && u.Scheme != "https":
		s.faultAt("url", "use https", "the scheme %s is not possible: expected https, or http for loopback (R1.9)", shownText(u.Scheme))
	}
	if u.User != nil {
		s.faultAt("url", "take the user name and password out and use credential", "has userinfo in it (R1.9)")
	}
	if u.Fragment != "" || strings.Contains(raw, "#") {
		s.faultAt("url", "take out all from the # on", "has a fragment (R1.9)")
	}
	for name, values := range u.Query() {
		for _, v := range values {
			if looksSecret(name, v) {
				s.warnAt("url", "use credential", "the parameter %s looks like a secret", shownText(name))
			}
		}
	}
	if strings.Contains(raw, "${") {
		s.warnAt("url", "", "is taken as it is: nothing is substituted")
	}
}

// checkPrivate refuses at once what the dialer would refuse later: an address in a private network, unless that is meant.
func (s *section) checkPrivate(p *provider.HTTP) {
	u, err := url.Parse(p.URL)
	if err != nil || p.AllowPrivateNet || loopbackHost(u.Hostname()) {
		return
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err == nil && (!ip.Unmap().IsGlobalUnicast() || ip.Unmap().IsPrivate()) {
		s.faultAt("url", "set allow_private_network = true if that is meant", "the address is not a public one")
	}
}

// credential reads where the bearer token is: an environment variable, or an entry of the vault. Whether the vault has the
// entry is found out when the token is needed.
func (s *section) credential(active bool) (env, entry string) {
	value := s.str("credential", func(v string) string {
		if looksSecret("", v) {
			return redacted
		}
		return v
	})
	if !s.hasText("credential") {
		return "", ""
	}
	name, ok := strings.CutPrefix(value, "env:")
	switch {
	case !ok && looksSecret("", value):
		s.faultAt("credential", `put the token into the vault (ostiary vault set NAME) and write its name here, or into an environment variable and write "env:NAME"`, "looks like the secret itself")
		return "", ""
	case !ok:
		if err := vault.CheckName(value); err != nil {
			s.faultAt("credential", `write the name of a vault entry, or "env:NAME"`, "%v", err)
			return "", ""
		}
		return "", value
	case !envName.MatchString(name):
		s.faultAt("credential", "", "expected env: and the name of an environment variable")
		return "", ""
	}
	v, set := s.env(name)
	switch {
	case !active:
	case !set:
		s.faultAt("credential", "set it to the bearer token for the server", "the environment variable %s is not set", name)
	case v == "":
		s.faultAt("credential", "set it to the bearer token for the server", "the environment variable %s is empty", name)
	case strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }):
		s.faultAt("credential", "look for a blank or a line end at its end", "the token in %s has blanks or other than visible ASCII characters in it", name)
	}
	return name, ""
}

// managedHeaders are set by MCP, by HTTP itself or by the credential; a user's value would break them (R1.10).
var managedHeaders = map[string]string{
	"Mcp-Session-Id": "MCP", "Mcp-Protocol-Version": "MCP", "Mcp-Method": "MCP", "Mcp-Name": "MCP", "Last-Event-Id": "MCP",
	"Content-Type": "MCP", "Accept": "MCP", "Content-Length": "HTTP", "Host": "HTTP", "Connection": "HTTP", "Upgrade": "HTTP",
	"Te": "HTTP", "Trailer": "HTTP", "Transfer-Encoding": "HTTP", "Keep-Alive": "HTTP", "Proxy-Authorization": "HTTP",
	"Proxy-Connection": "HTTP", "Accept-Encoding": "HTTP", "Content-Encoding": "HTTP",
}

func (s *section) headers(bound bool) map[string]string {
	names, values, lines := s.pairs("headers")
	seen := map[string]string{}
	for _, name := range names {
		key := s.keyOf("headers") + "." + quoteKey(name)
		value, canonical := values[name], http.CanonicalHeaderKey(name)
		if other, twice := seen[canonical]; twice {
			s.fault(lines[name], key, "leave one of them out", "is the same header as %s", other)
		}
		seen[canonical] = name
		manager, managed := managedHeaders[canonical]
		if strings.HasPrefix(canonical, "Mcp-Param-") {
			manager, managed = "MCP", true
		}
		switch {
		case !headerName(name):
			s.fault(lines[name], key, "", "is no name of a header")
		case managed:
			s.fault(lines[name], key, "leave it out", "is managed by %s (R1.10)", manager)
		case canonical == "Authorization" && bound:
			s.fault(lines[name], key, "leave out this or credential", "is set by credential (R1.10)")
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r > '~' }):
			s.fault(lines[name], key, "", "expected visible ASCII characters, blanks and tabs")
		case looksSecret(name, value):
			s.warn(lines[name], key, "use credential for a bearer token", "looks like a secret")
		}
	}
	return values
}

// headerName says whether name is a token of RFC 9110.
func headerName(name string) bool {
	for _, c := range []byte(name) {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}
