package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/world"
)

func (l *loader) provider(pkg string, t *node) {
	if inner, ok := unquotedPackage(pkg, t); ok {
		l.fault(t.line, joinKey("provider", pkg), "write ["+joinKey("provider", inner)+"]",
			"a package with dots is one quoted key")
		return
	}
	s := l.section(providerSection, t, "provider", pkg)
	if err := call.CheckPackage(pkg); err != nil {
		hint := ""
		if lower := strings.ToLower(pkg); lower != pkg && call.CheckPackage(lower) == nil {
			hint = "write " + joinKey("provider", lower)
		}
		l.fault(t.line, joinKey(s.path...), hint, "%v", err)
	}
	if pkg == call.WorldPackage {
		l.fault(t.line, joinKey("provider", pkg), "give the provider another name", "%s stands for the gateway's own tools", pkg)
		return
	}
	if len(t.keys) == 1 && t.keys[0] == "policy" {
		l.fault(t.line, joinKey("provider", pkg, "policy"), l.suggestProvider(pkg), "the policy of a provider that does not exist")
		return
	}
	s.unknown("policy", "firewall")
	p := Provider{Profile: provider.Profile{Package: pkg}}
	p.Profile.Trust, _ = provider.ParseTrustTier(s.str("trust_tier", nil))
	transport := s.str("transport", nil)
	s.foreignKeys(transport)
	switch transport {
	case transportStdio:
		p.Profile.Transport, p.Profile.Stdio = provider.StdioCommand, s.stdio(p.Profile.Trust != provider.Blocked)
	case transportHTTP:
		p.Profile.Transport = provider.StreamableHTTP
		p.Profile.HTTP, p.CredentialEnv, p.CredentialEntry = s.http(p.Profile.Trust != provider.Blocked)
	case transportSandbox:
		s.faultAt("transport", "use stdio, or wait for a version that has it", "sandbox_stdio is not available in this version")
	}
	p.Profile.Protocol = s.str("protocol", nil)
	p.Profile.AllowedTools = s.allowedTools()
	kinds, lines := s.strs("content", nil)
	s.distinct("content", kinds, lines)
	p.Profile.Content = kinds
	p.Profile.Required = s.boolean("required")
	p.Admission = Admission(s.str("admission", nil))
	if p.Admission == "" {
		p.Admission = AdmitExplicit
		if p.Profile.Trust == provider.ControlledLocal {
			p.Admission = AdmitFirstUse
		}
		s.derived("admission", string(p.Admission))
	}
	p.Restart = Restart(s.str("restart", nil))
	p.Events = s.events(transport, p.Profile.Protocol)
	p.Profile.WorldEvents, p.Profile.LegacyEvents = p.Events == EventsWorld, p.Events == EventsLegacy
	p.EventScopes = s.eventScopes(p.Events)
	p.Profile.NullIsAbsent = s.str("null_arguments", nil) == "absent"
	p.Interaction = Interaction(s.str("interaction", nil))
	p.Profile.RelaxedLedger = s.str("ledger", nil) == ledgerRelaxed
	p.Profile.Relist = s.seconds("relist_seconds")
	p.Profile.Limits = s.limits(transport)
	s.notYet("restart", string(RestartNever))
	s.notYet("interaction", string(InteractionRefuse))
	p.Policy = l.policy(pkg, t, &p.Profile)
	p.Firewall = l.firewall(pkg, t, &p.Profile)
	l.config.Providers = append(l.config.Providers, p)
}

// unquotedPackage recognises [provider.org.example.files]: TOML reads the dots as nested tables, of which only the last
// is a provider. It is refused because [provider.files.policy] could otherwise be meant for two things.
func unquotedPackage(first string, t *node) (pkg string, ok bool) {
	pkg = first
	for {
		var inner string
		tables := 0
		for _, k := range t.keys {
			if providerSection.key(k) != nil || t.table[k].kind != kindTable {
				return pkg, pkg != first
			}
			if k != "policy" && k != "firewall" {
				inner = k
				tables++
			}
		}
		if tables != 1 {
			return pkg, pkg != first
		}
		pkg, t = pkg+"."+inner, t.table[inner]
	}
}

func (l *loader) suggestProvider(pkg string) string {
	names := make([]string, len(l.config.Providers))
	for i, p := range l.config.Providers {
		names[i] = p.Profile.Package
	}
	if hint := didYouMean(pkg, names); hint != "" || len(names) == 0 {
		return hint
	}
	return "providers: " + strings.Join(names, ", ")
}

// foreignKeys reports keys that belong to another transport than the one that was chosen.
func (s *section) foreignKeys(transport string) {
	if transport != transportStdio && transport != transportHTTP {
		return
	}
	for _, k := range s.Keys {
		if k.Only != "" && k.Only != transport && s.has(k.Name) {
			s.faultAt(k.Name, "leave it out, or change the transport", "belongs to the transport %s, and this one is %s", k.Only, transport)
		}
	}
}

func (s *section) stdio(active bool) *provider.Stdio {
	p := &provider.Stdio{Command: s.str("command", nil)}
	switch {
	case !s.has("command"):
		s.faultAt("command", "name the program that is the server", "the key is missing")
	case !s.hasText("command"): // reported already
	case p.Command == "":
		s.faultAt("command", "name the program that is the server", "is empty")
	case strings.ContainsRune(p.Command, 0):
		s.faultAt("command", "", "has a zero byte in it")
	case strings.ContainsAny(p.Command, " \t") && !s.has("args"):
		s.warnAt("command", "put the arguments into args", "has blanks in it, and never passes through a shell")
	}
	if strings.ContainsRune(p.Command, '/') {
		p.Command = s.relative(p.Command)
	}
	var lines []int
	p.Args, lines = s.strs("args", func(before, arg string) string {
		if looksSecretArg(before, arg) {
			return redacted
		}
		return arg
	})
	for i, a := range p.Args {
		if strings.ContainsRune(a, 0) {
			s.fault(lines[i], s.item("args", i), "", "has a zero byte in it")
		}
		before := ""
		if i > 0 {
			before = p.Args[i-1]
		}
		if looksSecretArg(before, a) {
			s.warn(lines[i], s.item("args", i), "arguments show in process lists; hand the secret on with env_from", "looks like a secret")
		}
	}
	p.Dir = s.relative(s.str("dir", nil))
	p.Env = s.environment()
	p.EnvFrom, lines = s.strs("env_from", nil)
	s.distinct("env_from", p.EnvFrom, lines)
	for i, name := range p.EnvFrom {
		if !envName.MatchString(name) {
			s.fault(lines[i], s.item("env_from", i), "letters, digits and _ are possible", "expected the name of an environment variable")
			continue
		}
		if _, twice := p.Env[name]; twice {
			s.fault(lines[i], s.item("env_from", i), "leave one of them out", "%s is in env too", name)
		}
		if _, ok := s.env(name); !ok && active {
			s.fault(lines[i], s.item("env_from", i), "set it, or take it out of env_from", "the environment variable %s is not set", name)
		}
	}
	return p
}

func (s *section) environment() map[string]string {
	names, values, lines := s.pairs("env")
	for _, name := range names {
		key := s.keyOf("env") + "." + quoteKey(name)
		switch value := values[name]; {
		case !envName.MatchString(name):
			s.fault(lines[name], key, "letters, digits and _ are possible", "expected the name of an environment variable")
		case strings.ContainsRune(value, 0):
			s.fault(lines[name], key, "", "has a zero byte in it")
		case looksSecret(name, value):
			s.warn(lines[name], key, "set it in the gateway's environment and name it in env_from", "looks like a secret")
		case strings.Contains(value, "${"):
			s.warn(lines[name], key, "to copy a variable, name it in env_from", "is taken as it is: nothing is substituted")
		}
	}
	return values
}

func (s *section) allowedTools() []provider.AllowedTool {
	k, n := s.get("allowed_tools", kindArray)
	if n == nil {
		s.note(k, n, "")
		return nil
	}
	var tools []provider.AllowedTool
	var shown []string
	rawLine, nameLine := map[string]int{}, map[string]int{}
	for i, item := range n.items {
		key := s.element("allowed_tools", i)
		t, ok := s.allowedTool(key, item)
		if !ok {
			continue
		}
		if line, twice := rawLine[t.Raw]; twice {
			s.fault(item.line, key, "leave one of them out", "%s is allowed twice, first on line %d", shownText(t.Raw), line)
			continue
		}
		if line, twice := nameLine[t.Name()]; twice {
			s.fault(item.line, key, "choose another alias", "the name %s is taken, on line %d", shownText(t.Name()), line)
			continue
		}
		rawLine[t.Raw], nameLine[t.Name()] = item.line, item.line
		tools = append(tools, t)
		if t.Alias == "" {
			shown = append(shown, quote(t.Raw))
		} else {
			shown = append(shown, fmt.Sprintf("{ name = %s, as = %s }", quote(t.Raw), quote(t.Alias)))
		}
	}
	s.note(k, n, "["+strings.Join(shown, ", ")+"]")
	return tools
}

func (s *section) allowedTool(key string, item *node) (t provider.AllowedTool, ok bool) {
	switch item.kind {
	case kindString:
		t.Raw = item.str
		if err := call.CheckToolName(t.Raw); err != nil {
			hint := fmt.Sprintf("give it an alias: { name = %s, as = %q }", shownText(t.Raw), suggestAlias(t.Raw))
			if t.Raw == "*" || t.Raw == "" {
				hint = "name each tool: there is no way to allow all of them"
			}
			s.fault(item.line, key, hint, "%v", err)
			return t, false
		}
		return t, true
	case kindTable:
		for _, k := range item.keys {
			if k != "name" && k != "as" {
				s.fault(item.line, key, didYouMean(k, []string{"name", "as"}), "unknown key %s: expected { name, as }", shownText(k))
				return t, false
			}
			if item.table[k].kind != kindString {
				s.fault(item.line, key, "", "%s: expected a string, found %s", k, item.table[k].kind)
				return t, false
			}
		}
		name, as := item.child("name"), item.child("as")
		if name == nil || name.str == "" || as == nil {
			s.fault(item.line, key, "", `expected { name = "the server's name", as = "the_alias" }`)
			return t, false
		}
		t.Raw, t.Alias = name.str, as.str
		if err := call.CheckToolName(t.Alias); err != nil {
			s.fault(item.line, key, "", "alias: %v", err)
			return t, false
		}
		return t, true
	default:
		s.fault(item.line, key, "", "expected a string or { name, as }, found %s", item.kind)
		return t, false
	}
}

// suggestAlias makes a legal name of an illegal one, for a hint: nothing is renamed by itself (R2.3).
func suggestAlias(raw string) string {
	alias := strings.Map(func(r rune) rune {
		if r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, raw)
	if len(alias) > 60 {
		alias = alias[:60]
	}
	if call.CheckToolName(alias) != nil {
		alias = "t_" + strings.TrimLeft(alias, "_")
	}
	return alias
}

// notYet warns of a value that this version reads and does nothing with. harmless is the one that asks for nothing.
func (s *section) notYet(name, harmless string) {
	if n := s.table.child(name); n != nil && n.kind == kindString && n.str != harmless {
		s.warnAt(name, "docs/LIMITS.md says what this version does not do", "%s has no effect in this version", shownText(n.str))
	}
}

// events reads where the provider's events come from, which neither HTTP (R5.5) nor the wrong era has.
func (s *section) events(transport, protocol string) Events {
	e := Events(s.str("events", nil))
	if e != EventsOff && transport == transportHTTP {
		s.faultAt("events", `leave it "off", or reach the server over stdio`, "%s is not possible over http (R5.5)", e)
	}
	switch {
	case e == EventsWorld && protocol != "auto" && protocol != "2026-07-28" && protocol != "":
		s.faultAt("events", `leave protocol "auto"`, "%s needs the revision 2026-07-28, and protocol is %q", e, protocol)
	case e == EventsLegacy && protocol == "2026-07-28":
		s.faultAt("events", `use "world_events", or leave protocol "auto"`, "%s is for servers of older revisions, and protocol is %q", e, protocol)
	}
	return e
}

func (s *section) eventScopes(e Events) (out []world.ScopePattern) {
	patterns, lines := s.strs("event_scopes", nil)
	s.distinct("event_scopes", patterns, lines)
	for i, text := range patterns {
		p := world.ScopePattern(text)
		if err := p.Check(); err != nil {
			s.fault(lines[i], s.item("event_scopes", i), `such as "qq:group:42" or "qq:*"`, "%v", err)
		}
		out = append(out, p)
	}
	if s.has("event_scopes") && e == EventsOff {
		s.warnAt("event_scopes", `set events, or leave it out`, "has no effect while events is \"off\"")
	}
	if s.has("event_scopes") && len(patterns) == 0 {
		s.faultAt("event_scopes", "leave it out, or name a scope", "an empty list leaves its events no scope at all")
	}
	return out
}

func (s *section) limits(transport string) provider.Limits {
	limits := provider.Limits{
		Connect:        s.seconds("timeout_seconds"),
		Call:           s.seconds("call_timeout_seconds"),
		Close:          s.seconds("close_seconds"),
		Message:        s.integer("max_message_bytes"),
		Pages:          int(s.integer("max_pages")),
		Tools:          int(s.integer("max_tools")),
		ResponseHeader: provider.DefaultLimits.ResponseHeader,
		Concurrent:     int(s.integer("max_concurrent")),
	}
	if transport == transportHTTP {
		limits.ResponseHeader = s.integer("max_response_header_bytes")
	}
	return limits
}

// allowedNames lists what the allowed tools are called in tool ids.
func allowedNames(p *provider.Profile) []string {
	names := make([]string, len(p.AllowedTools))
	for i, t := range p.AllowedTools {
		names[i] = t.Name()
	}
	return names
}

func isAllowed(p *provider.Profile, name string) bool { return slices.Contains(allowedNames(p), name) }
