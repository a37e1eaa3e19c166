package firewall

import (
	"regexp"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"github.com/zricethezav/gitleaks/v8/config"
)

// gitleaksRule is one of the rules that gitleaks ships. Only its data is used: the expression is tried around the rule's
// keywords alone, because over whole texts it costs more than a result may. The mark with which a text asks gitleaks to look
// away has no meaning here.
type gitleaksRule struct {
	id       string
	keywords []string
	entropy  float64
	group    int
	pattern  func() *regexp.Regexp
	allow    func() []allowance
}

// allowance is what a rule does not count as a secret.
type allowance struct {
	all      bool // every condition must hold
	match    bool // the expressions are for the whole match
	patterns []*regexp.Regexp
	words    []string
}

// ownRules are gitleaks' rules that inspectors here replace: those without a form of their own, and those that stand for what
// is found better otherwise.
var ownRules = map[string]bool{"generic-api-key": true, "jwt": true, "jwt-base64": true, "private-key": true, "curl-auth-header": true, "curl-auth-user": true}

// gitleaksRules reads the rules once. Expressions are compiled when they are first needed.
var gitleaksRules = sync.OnceValue(func() []gitleaksRule {
	type list struct {
		Condition   string
		RegexTarget string
		Regexes     []string
		StopWords   []string
	}
	var file struct {
		Rules []struct {
			ID          string
			Regex       string
			SecretGroup int
			Entropy     float64
			Keywords    []string
			Allowlists  []list
		}
	}
	if err := toml.Unmarshal([]byte(config.DefaultConfig), &file); err != nil {
		panic("firewall: read gitleaks' rules: " + err.Error())
	}
	var rules []gitleaksRule
	for _, r := range file.Rules {
		if r.Regex == "" || len(r.Keywords) == 0 || ownRules[r.ID] {
			continue
		}
		rules = append(rules, gitleaksRule{
			id: r.ID, keywords: r.Keywords, entropy: r.Entropy, group: r.SecretGroup,
			pattern: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(r.Regex) }),
			allow: sync.OnceValue(func() []allowance {
				var all []allowance
				for _, l := range r.Allowlists {
					a := allowance{all: strings.EqualFold(l.Condition, "AND"), match: l.RegexTarget == "match"}
					if l.RegexTarget == "line" {
						continue
					}
					for _, p := range l.Regexes {
						a.patterns = append(a.patterns, regexp.MustCompile(p))
					}
					for _, w := range l.StopWords {
						a.words = append(a.words, strings.ToLower(w))
					}
					all = append(all, a)
				}
				return all
			}),
		})
	}
	return rules
})

// gitleaks tries r on [from, to) of v.
func (s *scan) gitleaks(v *view, r *gitleaksRule, from, to int) {
	s.spend(2 * (to - from))
	t := v.text[from:to]
	for _, m := range r.pattern().FindAllSubmatchIndex(t, 16) {
		a, b := m[0], m[1]
		if r.group > 0 && len(m) > 2*r.group && m[2*r.group] >= 0 {
			a, b = m[2*r.group], m[2*r.group+1]
		} else if r.group == 0 {
			for g := 2; g+1 < len(m); g += 2 {
				if m[g] >= 0 && m[g+1] > m[g] {
					a, b = m[g], m[g+1]
					break
				}
			}
		}
		secret := t[a:b]
		if r.entropy != 0 && entropy(secret) <= r.entropy || r.allowed(string(secret), string(t[m[0]:m[1]])) || dull(secret) {
			continue
		}
		s.find(v, CodeKnownRule, from+a, from+b)
	}
}

func (r *gitleaksRule) allowed(secret, match string) bool {
	for _, a := range r.allow() {
		target := secret
		if a.match {
			target = match
		}
		matched, worded := false, false
		for _, p := range a.patterns {
			matched = matched || p.MatchString(target)
		}
		low := strings.ToLower(secret)
		for _, w := range a.words {
			worded = worded || strings.Contains(low, w)
		}
		if a.all && (matched || len(a.patterns) == 0) && (worded || len(a.words) == 0) || !a.all && (matched || worded) {
			return true
		}
	}
	return false
}
