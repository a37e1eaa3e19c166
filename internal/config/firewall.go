package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/provider"
)

var (
	firewallActions = []string{"accept", "redact", "ask", "quarantine", "reject"}

	// classMeanings says what each class of findings is about. A test holds it against the firewall's own list.
	classMeanings = map[firewall.Class]string{
		firewall.ClassHiddenText:   "Characters that a reader does not see.",
		firewall.ClassInstruction:  "Text that gives orders to its reader.",
		firewall.ClassCredential:   "Keys, tokens, passwords. To accept them takes `sensitivities` or `codes`.",
		firewall.ClassPersonalData: "Data about a person. To accept what is REGULATED takes `sensitivities` or `codes`.",
		firewall.ClassLink:         "Addresses that fetch, leak or point inwards.",
		firewall.ClassContentKind:  "Kinds, types and bytes of content blocks.",
		firewall.ClassShape:        "What is not the document that it should be.",
		firewall.ClassOutputSchema: "What is against the tool's own output schema.",
		firewall.ClassSize:         "What is over a bound.",
		firewall.ClassMismatch:     "Text and structured content that say different things.",
		firewall.ClassArgument:     "Arguments that mean more than they say.",
		firewall.ClassDefinition:   "Definitions that are more than a description.",
		firewall.ClassDetector:     "What the firewall could not finish. To accept it takes `sensitivities` or `codes`.",
	}
)

// firewallKeys are those of a provider's table, with defaults, or of a tool's.
func firewallKeys(defaults bool) []Key {
	var keys []Key
	note := "as docs/FIREWALL.md lists"
	if !defaults {
		note = "that of the provider"
	}
	for _, c := range firewall.Classes() {
		keys = append(keys, Key{Name: string(c), Type: typeString, Note: note, Enum: firewallActions, Meaning: classMeanings[c], Needs: "R8.4"})
	}
	keys = append(keys,
		Key{Name: "sensitivities", Type: typeStringTable, Note: note, Enum: firewallActions, Meaning: "What findings of a sensitivity do: `{ REGULATED = \"ask\" }`. It counts more than a class.", Needs: "R8.3, R8.4"},
		Key{Name: "codes", Type: typeStringTable, Note: note, Enum: firewallActions, Meaning: "What single codes do: `{ email = \"redact\" }`. It counts most.", Needs: "R8.4"})
	for _, k := range []Key{
		{Name: "max_result_bytes", Default: `8388608`, Min: 1024, Max: 1 << 30, Unit: "bytes", Meaning: "A whole result, or the arguments of a call."},
		{Name: "max_blocks", Default: `1000`, Min: 1, Max: 1_000_000, Unit: "blocks", Meaning: "Content blocks of a result."},
		{Name: "max_text_bytes", Default: `4194304`, Min: 1024, Max: 1 << 30, Unit: "bytes", Meaning: "One string."},
		{Name: "max_depth", Default: `128`, Min: 4, Max: 1000, Unit: "levels", Meaning: "Nesting of JSON."},
	} {
		k.Type, k.Needs = typeInteger, "R8.3"
		if !defaults {
			k.Default, k.Note = "", note
		}
		keys = append(keys, k)
	}
	return keys
}

// firewall reads a provider's table and those of its tools.
func (l *loader) firewall(pkg string, t *node, profile *provider.Profile) Firewall {
	table, before := t.child("firewall"), len(l.settings)
	s := l.section(firewallSection, table, "provider", pkg, "firewall")
	s.unknown("tools")
	f := Firewall{Tools: map[string]firewall.Rules{}, Rules: s.firewallRules(firewall.Rules{Content: profile.Content})}
	prefix := joinKey("provider", pkg, "firewall", "tools")
	for name, tt := range l.named(table.child("tools"), prefix) {
		if !l.isTool(profile, prefix, name, tt) {
			continue
		}
		s := l.section(firewallToolSection, tt, "provider", pkg, "firewall", "tools", name)
		s.unknown()
		f.Tools[name] = s.firewallRules(f.Rules)
	}
	// Most of the many keys are not set, and saying so for each of them would hide the rest of what holds.
	l.settings = append(l.settings[:before], slices.DeleteFunc(l.settings[before:], func(s Setting) bool { return s.Default && (s.Value == "" || s.Value == "{}") })...)
	return f
}

// firewallRules reads one table, over the rules that hold without it.
func (s *section) firewallRules(base firewall.Rules) firewall.Rules {
	r := firewall.Rules{Content: base.Content, Limits: base.Limits,
		Classes: maps.Clone(base.Classes), Sensitivities: maps.Clone(base.Sensitivities), Codes: maps.Clone(base.Codes)}
	byName := map[string]firewall.Sensitivity{}
	for _, c := range firewall.Codes() {
		byName[c.Sensitivity.String()] = c.Sensitivity
	}
	delete(byName, firewall.SensitivityNone.String())
	put(&r.Sensitivities, s.actions("sensitivities", slices.Sorted(maps.Keys(byName))), func(name string) firewall.Sensitivity { return byName[name] })
	put(&r.Codes, s.actions("codes", codeNames()), func(name string) firewall.Code { return firewall.Code(name) })
	for _, c := range firewall.Classes() {
		action, ok := firewall.ParseAction(s.str(string(c), nil))
		if !ok || !s.has(string(c)) {
			continue
		}
		if r.Classes == nil {
			r.Classes = map[firewall.Class]firewall.Action{}
		}
		r.Classes[c] = action
		if action == firewall.Accept {
			s.classAccepts(c, &r)
		}
	}
	for _, f := range []struct {
		name string
		v    *int
	}{{"max_result_bytes", &r.Limits.Bytes}, {"max_blocks", &r.Limits.Blocks}, {"max_text_bytes", &r.Limits.Text}, {"max_depth", &r.Limits.Depth}} {
		if v := s.integer(f.name); v > 0 {
			*f.v = int(v)
		}
	}
	return r
}

// classAccepts tells what a class that is accepted leaves withheld all the same (R8.4): who wrote it believes otherwise.
func (s *section) classAccepts(class firewall.Class, r *firewall.Rules) {
	var kept []string
	all := true
	for _, c := range firewall.Codes() {
		_, byCode := r.Codes[c.Code]
		_, bySensitivity := r.Sensitivities[c.Sensitivity]
		switch {
		case c.Class != class:
		case c.Sensitivity.Protected() && !byCode && !bySensitivity:
			kept = append(kept, string(c.Code))
		default:
			all = false
		}
	}
	const hint = "say so by sensitivities or codes if it is meant"
	switch {
	case len(kept) > 0 && all:
		s.faultAt(string(class), hint, "a class alone cannot accept what is of a protected sensitivity (R8.4)")
	case len(kept) > 0:
		s.warnAt(string(class), hint, "is not accepted by its class alone: %s", strings.Join(kept, ", "))
	}
}

// actions reads a table of names and actions.
func (s *section) actions(key string, known []string) map[string]firewall.Action {
	names, values, lines := s.pairs(key)
	out := map[string]firewall.Action{}
	for _, name := range names {
		at := s.keyOf(key) + "." + quoteKey(name)
		action, ok := firewall.ParseAction(values[name])
		switch {
		case !slices.Contains(known, name):
			hint := didYouMean(name, known)
			if hint == "" && len(known) < 10 {
				hint = "expected one of " + oneOf(known)
			}
			s.fault(lines[name], at, hint, "unknown key")
		case !ok:
			s.fault(lines[name], at, didYouMean(values[name], firewallActions), "%s: expected %s", shownText(values[name]), oneOf(firewallActions))
		default:
			out[name] = action
		}
	}
	return out
}

func codeNames() []string {
	var names []string
	for _, c := range firewall.Codes() {
		names = append(names, string(c.Code))
	}
	return names
}

// put adds what was read to a map that may be nil.
func put[K comparable](into *map[K]firewall.Action, from map[string]firewall.Action, key func(string) K) {
	if len(from) > 0 && *into == nil {
		*into = map[K]firewall.Action{}
	}
	for name, a := range from {
		(*into)[key(name)] = a
	}
}
