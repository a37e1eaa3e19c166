package ostiary_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/internal/exampleserver"
)

// extended starts a gateway with one provider, the example server with its extensions, over a pipe or, if url is not empty,
// over HTTP. keys are further keys of the provider.
func extended(t testing.TB, url, keys string, args ...string) *gateway {
	t.Helper()
	dir := t.TempDir()
	reached := fmt.Sprintf("transport = \"stdio\"\ncommand = %q\nargs = [\"-extensions\"%s]\nenv = { %s = \"example-server\" }",
		self(t), strings.Join(append([]string{""}, quoted(args)...), ", "), roleEnv)
	if url != "" {
		reached = fmt.Sprintf("transport = \"http\"\nurl = %q", url)
	}
	text := fmt.Sprintf(`
[server]
listen    = "127.0.0.1:0"
token_env = "OSTIARY_TOKEN"

[provider.ex]
%s
trust_tier    = "CONTROLLED_LOCAL"
allowed_tools = ["echo", "fail", "count", "post", "maybe", "emit"]
close_seconds = 2
%s
[provider.ex.policy]
available = true
approval  = "never"

[export.default]
tools  = ["aur.mcp.ex.echo", "aur.mcp.ex.fail", "aur.mcp.ex.count", "aur.mcp.ex.post", "aur.mcp.ex.maybe", "aur.mcp.ex.emit"]
naming = "raw"
`, reached, keys)
	path := filepath.Join(dir, "ostiary.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return startOn(t, dir, path)
}

func quoted(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = fmt.Sprintf("%q", w)
	}
	return out
}

func (g *gateway) toolInfo(name string) ostiary.ToolInfo {
	g.t.Helper()
	tools, err := g.Tools(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	for _, tool := range tools {
		if tool.RawName == name {
			return tool
		}
	}
	g.t.Fatalf("there is no tool %s", name)
	return ostiary.ToolInfo{}
}

func (g *gateway) provider() ostiary.ProviderInfo {
	g.t.Helper()
	s, err := g.Status(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	return s.Providers[0]
}

// R4.1, R4.2, R4.3, R4.6, R3.4: the contract with a real server, in both eras and over both transports: what it declares is
// shown, what it says of a call holds, and a call is placed once. Where it is not agreed on, none of it means anything.
func TestR4_6_Contract(t *testing.T) {
	for _, era := range []string{"modern", "legacy"} {
		for _, over := range []string{"stdio", "http"} {
			for _, settings := range []string{`{"version":1}`, `{"version":1.0}`} {
				t.Run(era+" "+over+" "+settings, func(t *testing.T) {
					t.Parallel()
					agreed := settings == `{"version":1}`
					url, args := "", []string{"-era", era, "-contract-settings", filepath.Join(t.TempDir(), "settings")}
					if err := os.WriteFile(args[3], []byte(settings), 0o600); err != nil {
						t.Fatal(err)
					}
					if over == "http" {
						o := exampleserver.Options{Extensions: true, ContractSettings: settings}
						if err := o.Era.Set(era); err != nil {
							t.Fatal(err)
						}
						s := httptest.NewServer(exampleserver.Handler(o))
						t.Cleanup(s.Close)
						url = s.URL + "/mcp"
					}
					g := extended(t, url, "", args...)

					const own = "aurora:mcp:ex"
					room := own
					if agreed {
						room = "example:room:{room}"
					}
					if p := g.provider(); p.ToolContract != agreed {
						t.Errorf("status says %v", p.ToolContract)
					}
					for tool, want := range map[string]string{"post": room, "echo": own} {
						if i := g.toolInfo(tool); strings.Join(i.Observe, " ") != want || strings.Join(i.Publish, " ") != want || i.ToolContract != agreed {
							t.Errorf("%s observes %v and publishes %v", tool, i.Observe, i.Publish)
						}
						if a := g.standing(tool); strings.Join(a.Observe, " ") != want || strings.Join(a.Publish, " ") != want || a.ScopesFault != "" {
							t.Errorf("%s is shown with %v and %v, %s", tool, a.Observe, a.Publish, a.ScopesFault)
						}
					}

					unknown, invalid, effect := []string{`"status":"succeeded"`, `"isError":false`}, []string{`"status":"succeeded"`}, `"effect":"unconfirmed"`
					if agreed {
						unknown = []string{`"status":"unknown"`, `"code":"contract_unknown"`, `"isError":true`, "perhaps it was posted", `!"isError":false`}
						invalid = []string{`"status":"unknown"`, `"code":"contract_invalid"`, `"isError":true`}
						effect = `"effect":"none"`
					}
					must(t, g.ask("maybe", `{}`), unknown...)
					must(t, g.ask("maybe", `{"meta":{"status":"perhaps"}}`), invalid...)
					must(t, g.ask("maybe", `{"meta":null}`), invalid...)
					failed := g.ask("maybe", `{"error":true}`)
					if agreed {
						must(t, failed, unknown...)
					} else {
						must(t, failed, `"code":"tool_error"`, effect)
					}
					must(t, g.ask("fail", `{}`), `"status":"failed"`, `"code":"tool_error"`, effect)
					must(t, g.ask("count", `{}`), `"count":1`)
				})
			}
		}
	}
}

// R4.2, A-04: the same definitions mean other scopes when the contract holds and when it does not. A server that is admitted
// with the one and comes back with the other is out of use until somebody has looked; one that was admitted when nobody
// asked for the contract counts as one without.
func TestR4_2_AnotherContractIsDrift(t *testing.T) {
	settings := filepath.Join(t.TempDir(), "settings")
	g := extended(t, "", "", "-contract-settings", settings)
	held := func(quarantined bool) {
		t.Helper()
		p := g.provider()
		if got := p.State.String() == "QUARANTINED"; got != quarantined || quarantined && (p.Reason == nil || p.Reason.Code != "contract_changed") {
			t.Fatalf("%v, %+v", p.State, p.Reason)
		}
		if quarantined {
			must(t, g.ask("post", `{"room":"a"}`), `"code":"provider_unavailable"`, `"delivery":"not_sent"`)
		} else {
			must(t, g.ask("post", `{"room":"a"}`), `"status":"succeeded"`)
		}
	}
	held(false)
	lock, err := g.Lock(t.Context())
	if err != nil || strings.Contains(string(lock), "tool_contract") {
		t.Errorf("lock file: %s, %v", lock, err)
	}
	for _, now := range []string{`{"version":1}`, `{"version":2}`} {
		g.stop()
		if err := os.WriteFile(settings, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
		g.start()
		held(true)
		g.restart()
		held(true)
		itself := g.standing("")
		if itself.Class != "authority" || strings.Join(itself.Fields, " ") != "/tool_contract" {
			t.Errorf("shown as %+v", itself)
		}
		if _, err := g.Admit(t.Context(), ostiary.AdmissionDecision{Provider: "ex", Tools: map[string]string{"": itself.Digest}}); err != nil {
			t.Fatal(err)
		}
		held(false)
		lock, err := g.Lock(t.Context())
		if has := strings.Contains(string(lock), "tool_contract = true"); err != nil || has != (now == `{"version":1}`) {
			t.Errorf("lock file: %s, %v", lock, err)
		}
	}
}
