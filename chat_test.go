package ostiary_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// chatting starts a gateway in front of the chat server, which is made with the package contract. keys are further keys of
// the provider.
func chatting(t *testing.T, keys string, args ...string) *gateway {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(`
[server]
listen    = "127.0.0.1:0"
token_env = "OSTIARY_TOKEN"
[provider.chat]
transport     = "stdio"
command       = %q
args          = [%s]
env           = { %s = "chat" }
trust_tier    = "CONTROLLED_LOCAL"
allowed_tools = ["read_messages", "send_message", "simulate_message"]
%s
[provider.chat.policy]
available = true
approval  = "never"
[provider.chat.policy.tools.read_messages]
effect    = "READ_ONLY"
[provider.chat.policy.tools.send_message]
labels    = []
[provider.chat.policy.tools.simulate_message]
labels    = []
[export.default]
tools  = ["aur.mcp.chat.read_messages", "aur.mcp.chat.send_message", "aur.mcp.chat.simulate_message"]
naming = "raw"
world  = ["chat:*"]
`, self(t), strings.Join(quoted(args), ", "), roleEnv, keys)
	path := filepath.Join(dir, "ostiary.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return startOn(t, dir, path)
}

// R4.8, R4.6, R5.1, R5.4: what a server says that is made with the package contract is what the gateway makes of it, in both
// eras: scopes, an effect that nobody knows, an error that changed nothing, and events that become facts.
func TestR4_8_ChatThroughTheGateway(t *testing.T) {
	for revision, keys := range map[string]string{
		"2026-07-28": "events = \"world_events\"",
		"2025-11-25": "events = \"legacy_aurora\"\nprotocol = \"2025-11-25\"",
	} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			g := chatting(t, keys, "--legacy-events", "--lose-receipts")
			if p := g.provider(); p.Revision != revision {
				t.Fatalf("the server speaks %s", p.Revision)
			}
			if tool := g.toolInfo("send_message"); fmt.Sprint(tool.Observe, tool.Publish) != "[chat:group:{group_id}] [chat:group:{group_id}]" {
				t.Errorf("scopes %v %v", tool.Observe, tool.Publish)
			}
			c := &client{t: t, url: "http://" + g.Addr() + "/v1/mcp", modern: true}
			must(t, string(c.call("send_message", `{"group_id":"42","text":"hello"}`, "").Result),
				`"status":"unknown"`, `"code":"contract_unknown"`, "the message was handed over, and no receipt came", "!aurorabot")
			must(t, string(c.call("send_message", `{"group_id":"42","text":""}`, "").Result), `"status":"failed"`, `"effect":"none"`, "a message without text is not sent")
			must(t, string(c.call("send_message", `{"group_id":"4 2","text":"hello"}`, "").Result), `"code":"scope_invalid"`, `"delivery":"not_sent"`)
			must(t, string(c.call("simulate_message", `{"group_id":"42","author":"ann","text":"hi"}`, "").Result), `{"attempted":1}`)
			must(t, string(c.call("read_messages", `{"group_id":"42"}`, "").Result), `"text":"hello"`, `"text":"hi"`)
			g.settled()
			said := g.commits("chat:group:42")
			if len(said) != 2 || said[0].Kind != "tool.unknown" || said[1].Kind != "message.received" || said[1].Summary != "ann: hi" || said[1].Source != "group 42" ||
				said[1].Provider != "chat" || string(said[1].Data) != `{"author":"ann","group_id":"42","n":2}` || said[1].Occurred.IsZero() {
				t.Errorf("%+v", said)
			}
		})
	}
}

// R4.8, R5.6: two agents, each a client of /v1/mcp with what it has seen. A reply that does not know of the newest message is
// refused before it is sent, with the message; who has caught up gets through; and that makes what the other knows stale.
func TestR5_6_TwoAgentsInOneChat(t *testing.T) {
	t.Parallel()
	g := chatting(t, "events = \"world_events\"")
	type agent struct {
		*client
		seen string
	}
	act := func(a *agent, tool, arguments string, words ...string) {
		t.Helper()
		f := a.call(tool, arguments, `"org.ostiary/frontier":`+a.seen)
		must(t, string(f.Result), words...)
		a.seen = string(content.Member(content.Member(f.Result, "_meta"), "org.ostiary/frontier"))
	}
	url := "http://" + g.Addr() + "/v1/mcp"
	a := &agent{&client{t: t, url: url, modern: true}, "{}"}
	b := &agent{&client{t: t, url: url}, "{}"}
	b.do("initialize", "", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"},`, "")

	act(a, "read_messages", `{"group_id":"42"}`, `"messages":[]`, `"chat:group:42":0`)
	act(b, "read_messages", `{"group_id":"42"}`, `"messages":[]`)
	must(t, string(a.call("simulate_message", `{"group_id":"42","author":"ann","text":"wait"}`, "").Result), `{"attempted":1}`)
	g.settled()
	act(a, "send_message", `{"group_id":"42","text":"we go ahead"}`, `"code":"stale_frontier"`, `"delivery":"not_sent"`, "message.received", "ann: wait", `"chat:group:42":1`)
	act(a, "read_messages", `{"group_id":"42"}`, `"text":"wait"`, "!we go ahead")
	act(a, "send_message", `{"group_id":"42","text":"we wait"}`, `"status":"succeeded"`, `"chat:group:42":2`)
	act(b, "send_message", `{"group_id":"42","text":"hello?"}`, `"code":"stale_frontier"`, "ann: wait", "aur.mcp.chat.send_message succeeded", `"chat:group:42":2`)
	act(b, "read_messages", `{"group_id":"42"}`, `"text":"we wait"`, "!hello?")
	act(b, "send_message", `{"group_id":"42","text":"fine"}`, `"status":"succeeded"`, `"chat:group:42":3`)
}
