package config

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (l *loader) server(t *node) {
	s := l.section(serverSection, t, "server")
	s.unknown()
	l.config.Server = Server{
		Listen:         s.listen(),
		Data:           l.relative(s.str("data", nil)),
		AllowedHosts:   s.hosts(),
		AllowedOrigins: s.origins(),
		MaxBody:        s.integer("max_body_bytes"),
		MaxConcurrent:  int(s.integer("max_concurrent")),
		MaxSessions:    int(s.integer("max_sessions")),
		SessionIdle:    s.seconds("session_idle_seconds"),
		Drain:          s.seconds("drain_seconds"),
		Instructions:   s.str("instructions", nil),
	}
	if name := s.str("token_env", nil); s.hasText("token_env") {
		p := Principal{Name: defaultPrincipal, TokenEnv: name, line: s.lineOf("token_env")}
		p.token = s.token("token_env", name)
		l.config.Principals = append(l.config.Principals, p)
	}
}

// world is read before the providers, whose policies fall back to it.
func (l *loader) world(t *node) {
	s := l.section(worldSection, t, "world")
	s.unknown()
	l.config.World = World{FrontierRequired: s.str("frontier", nil) == frontierRequired}
}

func (l *loader) ledger(t *node) {
	s := l.section(ledgerSection, t, "ledger")
	s.unknown()
	l.config.Ledger = Ledger{RelaxedDelay: time.Duration(s.integer("relaxed_delay_ms")) * time.Millisecond,
		Keep: time.Duration(s.integer("keep_days")) * 24 * time.Hour}
}

func (s *section) listen() string {
	addr := s.str("listen", nil)
	if !s.hasText("listen") {
		return addr
	}
	host, port, err := net.SplitHostPort(addr)
	if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || n > 65535 {
		s.faultAt("listen", "", "%s: expected an address and a port, such as 127.0.0.1:7411", shownText(addr))
		return addr
	}
	if !loopbackHost(host) {
		s.warnAt("listen", "put a reverse proxy with TLS in front of it, and name its host in server.allowed_hosts",
			"the gateway listens on more than loopback, without TLS: tokens travel in the clear")
	}
	return addr
}

// loopbackHost says whether a host names this machine and cannot name another (R1.9, R10.5).
func loopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.Unmap().IsLoopback()
}

func (s *section) hosts() []string {
	hosts, lines := s.strs("allowed_hosts", nil)
	s.distinct("allowed_hosts", hosts, lines)
	for i, h := range hosts {
		if h == "" || strings.ContainsAny(h, "/:*@ ") || h != strings.ToLower(h) {
			s.fault(lines[i], s.item("allowed_hosts", i), "no scheme, no port, no wildcard", "%s: expected a host name in lower case", shownText(h))
		}
	}
	return hosts
}

func (s *section) origins() []string {
	origins, lines := s.strs("allowed_origins", nil)
	s.distinct("allowed_origins", origins, lines)
	for i, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || strings.ToLower(u.Scheme+"://"+u.Host) != o || strings.Contains(o, "*") {
			s.fault(lines[i], s.item("allowed_origins", i), "no path, no final slash, no wildcard", "%s: expected scheme://host or scheme://host:port in lower case", shownText(o))
		}
	}
	return origins
}

const (
	// defaultPrincipal is who server.token_env stands for.
	defaultPrincipal = "default"
	// minToken is the least number of characters that a token may have; they cannot be counted upon to be random.
	minToken = 16
)

var (
	principalName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$`)
	envName       = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (l *loader) principal(name string, t *node) {
	s := l.section(principalSection, t, "principal", name)
	s.unknown()
	if !principalName.MatchString(name) {
		l.fault(t.line, joinKey(s.path...), "letters, digits and _ . @ - are possible, at most 64", "illegal name of a principal")
	}
	if name == defaultPrincipal && len(l.config.Principals) > 0 && l.config.Principals[0].Name == name {
		l.fault(t.line, joinKey(s.path...), "leave out server.token_env or this table", `server.token_env is the principal "default" already`)
	}
	p := Principal{line: t.line, Name: name, TokenEnv: s.str("token_env", nil)}
	if s.hasText("token_env") {
		p.token = s.token("token_env", p.TokenEnv)
	}
	exports, lines := s.strs("exports", nil)
	s.distinct("exports", exports, lines)
	for i, e := range exports {
		if _, ok := l.config.Export(e); !ok {
			l.fault(lines[i], s.item("exports", i), l.suggestExport(e), "there is no export %s", shownText(e))
		}
	}
	if s.has("exports") && len(exports) == 0 {
		s.faultAt("exports", "name at least one, or leave the principal out", "the principal may use no export")
	}
	p.Exports = exports
	l.config.Principals = append(l.config.Principals, p)
}

func (l *loader) suggestExport(name string) string {
	names := make([]string, len(l.config.Exports))
	for i, e := range l.config.Exports {
		names[i] = e.Name
	}
	if hint := didYouMean(name, names); hint != "" || len(names) == 0 {
		return hint
	}
	return "exports: " + strings.Join(names, ", ")
}

// token reads a bearer token. A variable that is not set leaves the principal without one, so that commands that serve
// nobody need no token; one that is set must be fit for use.
func (s *section) token(key, name string) string {
	if !envName.MatchString(name) {
		s.faultAt(key, "the file names the variable; it never holds the token itself", "expected the name of an environment variable")
		return ""
	}
	value, ok := s.env(name)
	switch {
	case !ok:
		s.warnAt(key, "set it before the gateway is served", "the environment variable %s is not set: its principal cannot call", name)
		return ""
	case value == "":
		s.faultAt(key, "generate one, for example with: openssl rand -hex 32", "the environment variable %s is empty", name)
		return ""
	case len(value) < minToken:
		s.faultAt(key, "generate one, for example with: openssl rand -hex 32", "the token in %s is too short: expected at least %d characters", name, minToken)
		return ""
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
		s.faultAt(key, "look for a blank or a line end at its end", "the token in %s has blanks or other than visible ASCII characters in it", name)
		return ""
	}
	return value
}

// tokens refuses two principals with one token, and gives the default principal its exports.
func (l *loader) tokens() {
	owner := map[string]Principal{}
	for i := range l.config.Principals {
		p := &l.config.Principals[i]
		if p.Exports == nil && p.Name == defaultPrincipal {
			p.Exports = make([]string, 0, len(l.config.Exports))
			for _, e := range l.config.Exports {
				p.Exports = append(p.Exports, e.Name)
			}
		}
		if p.token == "" {
			continue
		}
		if other, ok := owner[p.token]; ok {
			l.fault(p.line, joinKey("principal", p.Name), "give each principal a token of its own", "%s has the same token as %s, so callers could not be told apart", p.TokenEnv, other.TokenEnv)
		}
		owner[p.token] = *p
	}
	if len(l.config.Principals) == 0 {
		return
	}
	for _, e := range l.config.Exports {
		if !slices.ContainsFunc(l.config.Principals, func(p Principal) bool { return slices.Contains(p.Exports, e.Name) }) {
			l.warn(e.line, joinKey("export", e.Name), "name it in the exports of a principal", "no principal may use the export")
		}
	}
}
