package ostiary_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ostiary/ostiary"
)

// F-56: a policy that is wrong, too large or too dear lets nothing start, and says where it is; one whose rules cannot be
// evaluated for a call, or cost too much, denies that call and no other. Nothing is let through because a judge has failed.
func TestF56_PolicyThatFails(t *testing.T) {
	t.Parallel()
	h := &hostile{tools: always(says("read", "Reads.", ""), says("plain", "Is not judged by arguments.", ""))}
	g := besiege(t, "", h)
	good := g.config()
	g.stop()
	for what, rule := range map[string]string{
		"no expression":  "effect = \"deny\"\nwhen = 'args.x ='",
		"another type":   "effect = \"deny\"\nwhen = '1 + 1'",
		"unknown name":   "effect = \"deny\"\nwhen = 'tenant.id == \"x\"'",
		"unknown effect": "effect = \"permit\"",
		"no effect":      "when = 'true'",
		"too large":      "effect = \"deny\"\nwhen = '" + strings.Repeat("true || ", 5000) + "true'",
		"too deep":       "effect = \"deny\"\nwhen = 'args.l.all(a, args.l.all(b, args.l.all(c, args.l.all(d, a + b + c + d < 0))))'",
		"unknown key":    "effect = \"deny\"\nunless = 'true'",
	} {
		g.rewrite(good + "[rule.bad]\n" + rule + "\n")
		if _, err := ostiary.New(g.options()); err == nil || !strings.Contains(err.Error(), "rule.bad") {
			t.Errorf("%s: %v", what, err)
		}
	}
	g.rewrite(good + "[policy") // not even TOML
	if _, err := ostiary.New(g.options()); err == nil {
		t.Error("a file that cannot be read was taken")
	}

	tools := "tools = [\"aur.mcp.bad.read\"]\n"
	g.rewrite(good + "[rule.type]\neffect = \"deny\"\n" + tools + "when = 'args.limit > 10'\n" +
		"[rule.dear]\neffect = \"deny\"\n" + tools + "when = 'args.limit == 3 && args.list.all(a, args.list.all(b, a + b < 0))'\n")
	g.start()
	must(t, g.ask("read", `{"limit":1}`), `"status":"succeeded"`)
	var list []string
	for i := range 3000 {
		list = append(list, fmt.Sprint(-i-1))
	}
	for _, arguments := range []string{`{"limit":"11"}`, `{"limit":{}}`, `{}`, `{"limit":11}`, `{"limit":3,"list":[` + strings.Join(list, ",") + `]}`, `{"limit":3,"list":7}`} {
		must(t, g.ask("read", arguments), `"code":"denied"`, `"delivery":"not_sent"`)
	}
	must(t, g.ask("plain", `{}`), `"status":"succeeded"`)
	if n := len(h.calls(t)); n != 2 {
		t.Errorf("%d calls came through", n)
	}
	g.stop()
	must(t, g.records(), `"rule":"rule.type"`, `"rule":"rule.dear"`)
}

// F-58, F-57, L-5: a result that is made to keep the inspectors busy ends within its budget and is held; calls of others go
// on meanwhile.
func TestF58_ResultsThatKeepTheInspectorsBusy(t *testing.T) {
	t.Parallel()
	h := &hostile{tools: always(says("busy", "Answers at length.", ""), says("plain", "Answers.", "")), call: func(a asked) string {
		if a.tool == "plain" {
			return text("done")
		}
		return text(strings.Repeat("ghp_ token: key=a1b2c3d4e5f6a7b8 datadog okta sk_live_ password AKIA xoxb- -----BEGIN ", 1<<14)) // 1.4 MiB of beginnings
	}}
	g := besiege(t, "", h)
	var wg sync.WaitGroup
	wg.Go(func() {
		must(t, g.ask("busy", `{}`), `"code":"withheld"`, "!AKIA")
	})
	for range 4 {
		wg.Go(func() {
			for range 5 {
				must(t, g.ask("plain", `{}`), `"status":"succeeded"`)
			}
		})
	}
	wg.Wait()
	held, err := g.Evidence(t.Context(), ostiary.EvidenceFilter{})
	if err != nil || len(held) != 1 || held[0].Tool != "aur.mcp.bad.busy" {
		t.Errorf("held: %+v, %v", held, err)
	}
}
