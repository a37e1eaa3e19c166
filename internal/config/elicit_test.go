package config

import (
	"strings"
	"testing"
)

// R7.6: nobody behind a client decides unless the file says so, or the provider's policy, which counts more; the order in the
// file does not matter.
func TestR7_6_WhoMayBeAsked(t *testing.T) {
	for name, c := range map[string]struct {
		approval, policy string
		want             bool
	}{
		"nothing is said": {}, "off": {approval: "off"}, "on": {approval: "on", want: true}, "the policy says so": {policy: "on", want: true},
		"the policy says not": {approval: "on", policy: "off"}, "so in spite of the file": {approval: "off", policy: "on", want: true},
	} {
		line := func(word string) string {
			if word == "" {
				return ""
			}
			return "elicit = \"" + word + "\"\n"
		}
		text := strings.Replace(provided, "available = true\n", "available = true\n"+line(c.policy), 1) + "[approval]\n" + line(c.approval)
		p, ok := parse(t, text).Provider("p")
		if !ok || p.Policy.Elicit != c.want {
			t.Errorf("%s: %t, want %t", name, p.Policy.Elicit, c.want)
		}
	}
	if _, err := Parse("ostiary.toml", []byte(provided+"[approval]\nelicit = \"yes\"\n"), lookup); err == nil {
		t.Error("a word that does not exist is taken")
	}
}
