package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/policy"
)

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("/etc/ostiary/ostiary.toml", []byte(text), lookup)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const provided = `
[provider.p]
transport = "stdio"
command = "x"
trust_tier = "ORG_MANAGED"
allowed_tools = ["read", "write"]
content = ["text"]
[provider.p.policy]
available = true
[provider.p.policy.tools.read]
effect = "READ_ONLY"
labels = []
`

// R7.2, R7.3: the policy that the configuration makes is the one that is asked, rules and labels included.
func TestR7_2_PolicyOfAFile(t *testing.T) {
	c := parse(t, provided+`
[rule.small]
effect = "allow"
when = "args.size < 1000"
classes = ["EXTERNAL_SIDE_EFFECT"]
`)
	write := &call.Descriptor{Package: "p", Name: "write", ID: call.NewToolID("p", "write")}
	for args, want := range map[string]policy.Verdict{`{"size":10}`: policy.Allow, `{"size":5000}`: policy.Ask, `{}`: policy.Deny} {
		d := c.Policy.Judge(policy.Question{Principal: call.Principal{ID: "x"}, Tool: write, Arguments: []byte(args)})
		if d.Verdict != want {
			t.Errorf("%s: got %s by %s, want %s", args, d.Verdict, d.Rule, want)
		}
	}
	read := &call.Descriptor{Package: "p", Name: "read", ID: call.NewToolID("p", "read"), Effect: call.ReadOnly}
	if l := c.Policy.Labels(read); l != 0 {
		t.Errorf("labels of a tool that has none: %s", l)
	}
}

// R8.4: a tool's rules are its provider's, and its own over them.
func TestR8_4_FirewallRules(t *testing.T) {
	c := parse(t, provided+`
[provider.p.firewall]
link = "reject"
codes = { email = "redact" }
max_result_bytes = 65536
[provider.p.firewall.tools.read]
link = "accept"
sensitivities = { REGULATED = "ask" }
max_depth = 16
`)
	base := firewall.Rules{
		Classes: map[firewall.Class]firewall.Action{firewall.ClassLink: firewall.Reject},
		Codes:   map[firewall.Code]firewall.Action{firewall.CodeEmail: firewall.Redact},
		Limits:  firewall.Limits{Bytes: 65536, Blocks: 1000, Text: 4 << 20, Depth: 128}, Content: []string{"text"},
	}
	if diff := cmp.Diff(base, c.Providers[0].Firewall.Tool("write")); diff != "" {
		t.Errorf("write (-want +got):\n%s", diff)
	}
	own := base
	own.Classes = map[firewall.Class]firewall.Action{firewall.ClassLink: firewall.Accept}
	own.Sensitivities = map[firewall.Sensitivity]firewall.Action{firewall.Regulated: firewall.Ask}
	own.Limits.Depth = 16
	if diff := cmp.Diff(own, c.Providers[0].Firewall.Tool("read")); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

func TestEveryFirewallClassHasAKey(t *testing.T) {
	for _, c := range firewall.Classes() {
		if classMeanings[c] == "" {
			t.Errorf("the class %s has no key", c)
		}
	}
	if len(classMeanings) != len(firewall.Classes()) {
		t.Error("there are keys for classes that do not exist")
	}
}

// An empty file has the bounds that the packages document.
func TestDefaultsAreThoseOfThePackages(t *testing.T) {
	c := parse(t, "")
	if c.Budget.Principal != policy.DefaultLimits || c.Budget.Session != policy.DefaultLimits {
		t.Errorf("budget: %+v", c.Budget)
	}
	if d := evidence.DefaultLimits(); c.Evidence != (Evidence{Retention: d.Retention, MaxBytes: d.MaxTotal, MaxPayload: d.MaxPayload}) {
		t.Errorf("evidence: %+v", c.Evidence)
	}
	if c.Approval != (Approval{Hold: 30 * time.Second, Expiry: time.Hour, Session: approval.DefaultRules().SessionLife}) {
		t.Errorf("approval: %+v", c.Approval)
	}
	if c.Vault != (Vault{KeyEnv: "OSTIARY_VAULT_KEY", Keyring: true}) {
		t.Errorf("vault: %+v", c.Vault)
	}
}

// A bound of 0 takes its period along, as policy wants it.
func TestA30_NoBudget(t *testing.T) {
	c := parse(t, "[budget.session]\ncalls = 0\nidentical = 0\n")
	if c.Budget.Session != (policy.Limits{}) {
		t.Errorf("got %+v", c.Budget.Session)
	}
	if _, err := policy.NewBudgets(c.Budget.Principal, c.Budget.Session); err != nil {
		t.Error(err)
	}
}

// R12.3: where the key of the vault is looked for.
func TestR12_3_VaultOptions(t *testing.T) {
	o := parse(t, "[vault]\nkey_env = \"K\"\nkey_file = \"keys/v\"\nkeyring = false\n").VaultOptions("data", lookup)
	if o.Dir != "data" || o.KeyVariable != "K" || o.KeyFile != "/etc/ostiary/keys/v" || len(o.Keys) != 2 {
		t.Errorf("got %+v", o)
	}
}
