package config

import (
	"encoding/hex"
	"strings"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/provider"
)

// policy reads the one policy of a provider, and hands what belongs to its profile to it.
func (l *loader) policy(pkg string, t *node, profile *provider.Profile) Policy {
	table := t.child("policy")
	if table == nil {
		l.fault(t.line, joinKey("provider", pkg, "policy"), "say whether its tools are available and whether calls need approval",
			"the policy is missing: each provider has exactly one (R7.1)")
		return Policy{}
	}
	s := l.section(policySection, table, "provider", pkg, "policy")
	s.unknown("tools")
	p := Policy{Available: s.boolean("available"), Approval: approvalRule(s.str("approval", nil)), Tools: map[string]ToolPolicy{}}
	if p.Frontier = l.config.World.FrontierRequired; s.has("frontier") {
		p.Frontier = s.str("frontier", nil) == frontierRequired
	}
	if p.Elicit = l.config.Approval.Elicit; s.has("elicit") {
		p.Elicit = s.str("elicit", nil) == elicitOn
	}
	profile.Effects, profile.ExpectedDigests = map[string]call.EffectClass{}, map[string]call.Digest{}
	prefix := joinKey("provider", pkg, "policy", "tools")
	for name, tt := range l.named(table.child("tools"), prefix) {
		if !l.isTool(profile, prefix, name, tt) {
			continue
		}
		l.toolPolicy(&p, profile, name, l.section(toolSection, tt, "provider", pkg, "policy", "tools", name))
	}
	return p
}

func (l *loader) toolPolicy(p *Policy, profile *provider.Profile, name string, s *section) {
	s.unknown()
	tool := ToolPolicy{Available: p.Available, Approval: p.Approval, Frontier: p.Frontier}
	if effect := s.str("effect", nil); effect != "" {
		tool.Effect, _ = call.ParseEffectClass(effect)
	}
	if available := s.boolean("available"); s.has("available") {
		if available && !p.Available {
			s.faultAt("available", "make the tools available in the policy and take single ones out",
				"widens the policy, which has available = false: an override may only narrow (R7.1)")
		}
		tool.Available = available
	}
	if rule := s.str("approval", nil); s.has("approval") {
		tool.Approval = approvalRule(rule)
		// A tool that is declared READ_ONLY needs no approval by its class (R7.2), so that the policy's caution, which is
		// for tools of any effect, may be dropped for it in so many words.
		if tool.Approval == policy.ApprovalNever && p.Approval == policy.ApprovalRequired && tool.Effect != call.ReadOnly {
			s.faultAt("approval", `declare effect = "READ_ONLY" if it is, or ask for approval tool by tool`,
				"widens the policy, which asks for approval: an override may only narrow (R7.1)")
		}
	}
	if word := s.str("frontier", nil); s.has("frontier") {
		tool.Frontier = word == frontierRequired
		if p.Frontier && word == frontierOptional {
			s.faultAt("frontier", "require it tool by tool",
				"widens the policy, whose calls must state a frontier: an override may only narrow (R7.1)")
		}
	}
	labels, lines := s.strs("labels", nil)
	s.distinct("labels", labels, lines)
	if s.has("labels") {
		if set, err := policy.ParseLabels(labels); err == nil { // else it is reported already
			tool.Labels = &set
		}
	}
	if digest := s.str("schema_digest", nil); s.has("schema_digest") {
		d, ok := parseDigest(digest)
		if !ok || d.IsZero() {
			s.faultAt("schema_digest", "", "expected sha256: and 64 hexadecimal digits")
		}
		tool.SchemaDigest = d
	}
	p.Tools[name] = tool
	if s.has("effect") {
		profile.Effects[name] = tool.Effect
	}
	if !tool.SchemaDigest.IsZero() {
		profile.ExpectedDigests[name] = tool.SchemaDigest
	}
}

// isTool says whether the table of a tool is that of an allowed one, and reports it if not.
func (l *loader) isTool(profile *provider.Profile, prefix, name string, t *node) bool {
	if isAllowed(profile, name) {
		return true
	}
	hint := didYouMean(name, allowedNames(profile))
	if hint == "" {
		hint = "add it to allowed_tools, or leave the table out"
	}
	l.fault(t.line, prefix+"."+quoteKey(name), hint, "is not in allowed_tools of %s", profile.Package)
	return false
}

// approvalRule reads the word; where there is none, the effect class decides.
func approvalRule(word string) policy.Approval {
	switch word {
	case "never":
		return policy.ApprovalNever
	case "":
		return policy.ApprovalByEffect
	default:
		return policy.ApprovalRequired
	}
}

func parseDigest(text string) (d call.Digest, ok bool) {
	digits, ok := strings.CutPrefix(text, "sha256:")
	if !ok || len(digits) != hex.EncodedLen(len(d)) {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(digits))
	return d, err == nil
}
