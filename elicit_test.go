package ostiary_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
)

// asks needs approval for every tool, and puts calls that wait to the client.
func asks(hold int, elicit string) string {
	return strings.Replace(needsApproval(hold), "[approval]\n", fmt.Sprintf("[approval]\nelicit = %q\n", elicit), 1)
}

// clientOf is the official client, over HTTP or a pipe, in one revision, with somebody who answers forms.
func (g *gateway) clientOf(revision string, pipe bool, handler func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)) *mcp.ClientSession {
	g.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: handler})
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: "http://" + g.Addr() + "/v1/mcp", HTTPClient: &http.Client{Transport: withBearer{}}}
	if pipe {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = g.ServeStdio(context.Background(), "default", inR, outW) // what comes of it, the client sees
			outW.Close()
		}()
		g.t.Cleanup(func() { inW.Close(); <-done })
		transport = &mcp.IOTransport{Reader: outR, Writer: inW}
	}
	cs, err := client.Connect(g.t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = cs.Close() })
	return cs
}

type withBearer struct{}

func (withBearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+testToken)
	return http.DefaultTransport.RoundTrip(r)
}

// callText calls a tool and gives all that came as one text.
func callText(t testing.TB, cs *mcp.ClientSession, tool string, arguments map[string]any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return "error: " + err.Error()
	}
	b, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// R7.6, R7.4, F-53: a call that waits is put to the person behind the client, in both eras and on both wires, in our own words.
// A call with a secret in it, which the form could not show, is not. A yes lets exactly this call through, once, and is on record under that person's name; a no ends
// it; neither leaves it to the operator.
func TestR7_6_TheClientIsAsked(t *testing.T) {
	for _, wire := range []struct {
		revision string
		pipe     bool
		who      string
	}{{"2026-07-28", false, "default"}, {"2025-11-25", false, "default"}, {"2025-06-18", false, "default"}, {"2026-07-28", true, "local:stdio"}, {"2025-11-25", true, "local:stdio"}} {
		t.Run(fmt.Sprintf("%s pipe %t", wire.revision, wire.pipe), func(t *testing.T) {
			t.Parallel()
			ran := filepath.Join(t.TempDir(), "ran")
			g := startGateway(t, asks(1, "on")+"[provider.ex.firewall.tools.write_note]\ncodes = { provider_token = \"accept\", known_secret = \"accept\" }\n", "-counter", ran)
			var asked []*mcp.ElicitParams
			answer := &mcp.ElicitResult{}
			cs := g.clientOf(wire.revision, wire.pipe, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked = append(asked, r.Params)
				return answer, nil
			})
			n := 0
			place := func(action, decision string, words ...string) {
				t.Helper()
				n++
				asked, answer.Action, answer.Content = nil, action, nil
				if decision != "" {
					answer.Content = map[string]any{"decision": decision}
				}
				before := count(t, ran)
				text := fmt.Sprintf("%s %t %d, with words", wire.revision, wire.pipe, n)
				must(t, callText(t, cs, "write_note", map[string]any{"text": text}), words...)
				if len(asked) == 0 || !strings.Contains(asked[0].Message, "Tool: aur.mcp.ex.write_note\nEffect: EXTERNAL_SIDE_EFFECT\n") ||
					!strings.Contains(asked[0].Message, fmt.Sprintf("%t %d, with ", wire.pipe, n)) {
					t.Errorf("%s %s: asked %d times: %+v", action, decision, len(asked), asked)
				}
				went := 0
				if action == "accept" && decision == "approve once" {
					went = 1
				}
				if got := count(t, ran) - before; got != went {
					t.Errorf("%s %s: %d calls were sent", action, decision, got)
				}
			}
			place("accept", "approve once", `"status":"succeeded"`)
			place("accept", "decline", `"code":"approval_declined"`)
			place("decline", "", `"code":"approval_declined"`)
			place("cancel", "", `"code":"approval_pending"`, "request ap-")
			if len(asked) != 1 {
				t.Errorf("somebody who did not want to decide was asked %d times", len(asked))
			}
			request := g.wait()
			if request.State != "WAITING" || request.Principal != wire.who {
				t.Errorf("after a cancel: %+v", request)
			}
			if _, err := g.Decide(t.Context(), ostiary.ApprovalDecision{ID: request.ID, Grant: true}); err != nil {
				t.Fatal(err)
			}
			must(t, callText(t, cs, "write_note", map[string]any{"text": fmt.Sprintf("%s %t %d, with words", wire.revision, wire.pipe, n)}), `"status":"succeeded"`)
			asked = nil
			must(t, callText(t, cs, "write_note", map[string]any{"text": "a note with " + aSecret}), `"code":"approval_pending"`, "!"+aSecret)
			if len(asked) != 0 {
				t.Errorf("somebody was asked to agree to what is not shown: %s", asked[0].Message)
			}
			by := `"decider":"elicitation:` + wire.who + `","decision":`
			must(t, g.records(), by+`"APPROVED_ONCE"`, by+`"REJECTED"`, "!"+aSecret)
		})
	}
}

// R7.6: where policy does not say so, or says so for another provider alone, no client is asked, and nothing that a client
// sends makes it a decider.
func TestR7_6_OffUnlessPolicySaysSo(t *testing.T) {
	for name, tables := range map[string]string{"default": needsApproval(0), "off": asks(0, "off"), "off for the provider": asks(0, "on")} {
		g := startGateway(t, tables)
		if name == "off for the provider" {
			g.stop()
			file, err := os.ReadFile(g.path)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(file), "[provider.ex.policy]\n", "[provider.ex.policy]\nelicit = \"off\"\n", 1)
			if err := os.WriteFile(g.path, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			g.start()
		}
		for _, revision := range []string{"2026-07-28", "2025-11-25"} {
			cs := g.clientOf(revision, false, func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				t.Errorf("%s, %s: the client was asked", name, revision)
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve once"}}, nil
			})
			must(t, callText(t, cs, "write_note", map[string]any{"text": revision}), `"code":"approval_pending"`)
		}
	}
}

// R7.6: while somebody looks at the form the operator can decide, and the first decision holds; the form is taken back.
func TestR7_6_TheOperatorWasFirst(t *testing.T) {
	g := startGateway(t, asks(20, "on"))
	taken := make(chan struct{})
	cs := g.clientOf("2025-11-25", false, func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		<-ctx.Done()
		close(taken)
		return nil, ctx.Err()
	})
	answer := make(chan string, 1)
	go func() { answer <- callText(t, cs, "write_note", map[string]any{"text": "x"}) }()
	if _, err := g.Decide(t.Context(), ostiary.ApprovalDecision{ID: g.wait().ID, Grant: true}); err != nil {
		t.Fatal(err)
	}
	must(t, <-answer, `"status":"succeeded"`)
	select {
	case <-taken:
	case <-time.After(10 * time.Second):
		t.Error("the form is still shown")
	}
}

// S-052, S-053, S-054: the state of a question opens for the same call of the same caller, once; a replay, another call and
// made-up states are refused before anything is sent, whatever they say was decided.
func TestS054_ModernStates(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	g := startGateway(t, asks(0, "on"), "-counter", ran)
	ask := func(text, more string) string {
		t.Helper()
		status, body, err := postModern(t.Context(), g.Addr(), "write_note", fmt.Sprintf(`{"name":"write_note","arguments":{"text":%q}%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}`, text, more))
		if err != nil || status != http.StatusOK {
			t.Fatalf("status %d, %v: %s", status, err, body)
		}
		return string(body)
	}
	stateOf := func(body string) string {
		t.Helper()
		var m struct {
			Result struct {
				ResultType    string `json:"resultType"`
				RequestState  string `json:"requestState"`
				InputRequests map[string]struct {
					Method string
					Params struct {
						Message         string
						RequestedSchema json.RawMessage `json:"requestedSchema"`
					}
				} `json:"inputRequests"`
			}
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil || m.Result.ResultType != "input_required" || m.Result.RequestState == "" {
			t.Fatalf("%v: %s", err, body)
		}
		q := m.Result.InputRequests["org.ostiary.approval"]
		if q.Method != "elicitation/create" || !strings.Contains(q.Params.Message, "write_note") || !strings.Contains(string(q.Params.RequestedSchema), "approve once") {
			t.Errorf("the question is %+v", q)
		}
		return m.Result.RequestState
	}
	with := func(state, response string) string {
		return fmt.Sprintf(`,"requestState":%q,"inputResponses":{"org.ostiary.approval":%s}`, state, response)
	}
	const yes, no = `{"action":"accept","content":{"decision":"approve once"}}`, `{"action":"decline"}`

	body := ask("one", "")
	must(t, body, `"status":"input_required"`, `"delivery":"not_sent"`, `"code":"approval_pending"`, `"completed":false`)
	state := stateOf(body)
	must(t, ask("two", with(state, yes)), `"code":"invalid_request"`, `"delivery":"not_sent"`)             // for another call
	must(t, ask("one", with(state[:len(state)-2]+"AA", yes)), `"code":"invalid_request"`)                  // changed
	must(t, ask("one", with("made up", yes)), `"code":"invalid_request"`)                                  // never given
	must(t, ask("one", `,"inputResponses":{"org.ostiary.approval":`+yes+`}`), `"status":"input_required"`) // an answer to nothing: asked anew, and the older state is void
	must(t, ask("one", with(state, yes)), `"code":"invalid_request"`)
	if n := count(t, ran); n != 0 {
		t.Fatalf("%d calls were sent", n)
	}

	state = stateOf(ask("one", ""))
	must(t, ask("one", with(state, yes)), `"status":"succeeded"`)
	must(t, ask("one", with(state, yes)), `"code":"invalid_request"`) // S-054
	if n := count(t, ran); n != 1 {
		t.Errorf("%d calls were sent", n)
	}

	// A clear no is a no although the operator has agreed meanwhile; what is not clear decides nothing.
	state = stateOf(ask("three", ""))
	if _, err := g.Decide(t.Context(), ostiary.ApprovalDecision{ID: g.wait().ID, Grant: true}); err != nil {
		t.Fatal(err)
	}
	must(t, ask("three", with(state, no)), `"code":"approval_declined"`)
	if n := count(t, ran); n != 1 {
		t.Errorf("%d calls were sent", n)
	}
	for i, unclear := range []string{`{"action":"accept"}`, `{"action":"accept","content":{}}`, `{"action":"accept","content":{"decision":"Approve once"}}`, `{"action":"yes"}`, `{}`, `true`, `[]`} {
		text := fmt.Sprint("unclear ", i)
		must(t, ask(text, with(stateOf(ask(text, "")), unclear)), `"code":"approval_pending"`)
	}
	if n := count(t, ran); n != 1 {
		t.Errorf("%d calls were sent", n)
	}

	// A restart makes every state void.
	state = stateOf(ask("four", ""))
	g.restart()
	must(t, ask("four", with(state, yes)), `"code":"invalid_request"`)
	if n := count(t, ran); n != 1 {
		t.Errorf("%d calls were sent", n)
	}
}

// R7.6: a client that has not said that it can ask is not asked.
func TestR7_6_OnlyDeclaredClients(t *testing.T) {
	g := startGateway(t, asks(0, "on"))
	for _, capabilities := range []string{`{}`, `{"elicitation":{"url":{}}}`, `{"elicitation":true}`, `{"sampling":{}}`} {
		_, body, err := postModern(t.Context(), g.Addr(), "write_note", `{"name":"write_note","arguments":{"text":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+capabilities+`}}`)
		if err != nil {
			t.Fatal(err)
		}
		must(t, string(body), `"code":"approval_pending"`, `"resultType":"complete"`)
	}
	must(t, callText(t, g.clientOf("2025-11-25", false, nil), "write_note", map[string]any{"text": "x"}), `"code":"`+string(call.CodeApprovalPending)+`"`)
}
