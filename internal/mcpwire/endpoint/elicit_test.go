package endpoint

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// What a client may declare, and what of it is a form.
func TestR7_6_WhoCanBeShownAForm(t *testing.T) {
	for capabilities, want := range map[string]bool{
		`{"elicitation":{}}`: true, `{"elicitation":{"form":{}}}`: true, `{"elicitation":{"form":{},"url":{}}}`: true, `{"elicitation":{"other":1}}`: true,
		`{}`: false, `{"elicitation":{"url":{}}}`: false, `{"elicitation":true}`: false, `{"elicitation":null}`: false, `{"elicitation":{"form":1,"url":{}}}`: false, ``: false,
	} {
		if got := elicits([]byte(capabilities)); got != want {
			t.Errorf("%s: %t", capabilities, got)
		}
	}
}

// Only a clear yes is one.
func FuzzConsent(f *testing.F) {
	for _, s := range []string{`{"action":"accept","content":{"decision":"approve once"}}`, `{"action":"accept","content":{"decision":"decline"}}`, `{"action":"accept"}`,
		`{"action":"decline"}`, `{"action":"cancel"}`, `{"content":{"decision":"approve once"}}`, `{"action":"accept","content":"approve once"}`, `null`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if content.CheckValue(b, content.FrameLimits{}) != nil { // such bytes never get here
			return
		}
		action, _ := content.String(content.Member(b, "action"))
		decision, _ := content.String(content.Member(content.Member(b, "content"), "decision"))
		if got := consentOf(b); (got == call.Agreed) != (action == "accept" && decision == approveOnce) {
			t.Fatalf("%s is %d", b, got)
		}
	})
}

// asking is a path that puts one question to the client, and says in the outcome's id what came of it.
func asking(ctx context.Context, r call.Request) call.Reply {
	said := "cannot be asked"
	if r.Ask != nil {
		said = []string{"nothing", "agreed", "disagreed", "dismissed"}[r.Ask(ctx, call.Question{Message: "May it?\n\u202e"})]
	}
	return call.Reply{Outcome: call.Outcome{Status: call.Succeeded, CallID: call.ID(said)}, Result: []byte(`{"content":[]}`)}
}

const initializeEliciting = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`

// R7.6 on a pipe: one request in the midst of the call, with an id of ours; an answer to it, whatever it says, and nothing else
// is an answer to it.
func TestR7_6_AskedOnAPipe(t *testing.T) {
	c := pipeTo(t, quiet(t, asking))
	const place = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}`
	if got := c.ask(initializeEliciting); get(got, "result") == "" {
		t.Fatal(got)
	}
	for answer, want := range map[string]string{
		`"result":{"action":"accept","content":{"decision":"approve once"}}`: "agreed",
		`"result":{"action":"accept","content":{"decision":"decline"}}`:      "disagreed",
		`"result":{"action":"decline"}`:                                      "disagreed",
		`"result":{"action":"cancel"}`:                                       "dismissed",
		`"result":{"action":"accept","content":{}}`:                          "nothing",
		`"result":{}`:                            "nothing",
		`"error":{"code":-32601,"message":"no"}`: "nothing",
	} {
		asked := c.ask(place)
		id := get(asked, "id")
		if get(asked, "method") != `"elicitation/create"` || get(asked, "params", "message") != `"May it?\n`+"\u202e"+`"` || get(asked, "params", "requestedSchema") != decisionSchema || id == "1" {
			t.Fatalf("asked: %s", asked)
		}
		c.send(`{"jsonrpc":"2.0","id":1,`+answer+`}`, `{"jsonrpc":"2.0","id":"ostiary-x",`+answer+`}`) // answers to nothing
		got := c.ask(`{"jsonrpc":"2.0","id":` + id + `,` + answer + `}`)
		if get(got, "id") != "1" || get(got, "result", "_meta", "org.ostiary/outcome", "call") != `"`+want+`"` {
			t.Errorf("%s: %s", answer, got)
		}
		c.send(`{"jsonrpc":"2.0","id":` + id + `,` + answer + `}`) // once more
	}
	// The caller cancels: the form is taken back, and the call is not answered.
	asked := c.ask(place)
	if got := c.ask(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`); get(got, "method") != `"notifications/cancelled"` || get(got, "params", "requestId") != get(asked, "id") {
		t.Errorf("after a cancellation: %s", got)
	}
	if got := c.ask(`{"jsonrpc":"2.0","id":2,"method":"ping"}`); get(got, "id") != "2" {
		t.Errorf("then: %s", got)
	}

	silent := pipeTo(t, quiet(t, asking))
	silent.ask(initializeStdio)
	if got := silent.ask(place); get(got, "result", "_meta", "org.ostiary/outcome", "call") != `"cannot be asked"` {
		t.Errorf("a client that cannot ask: %s", got)
	}
}

// R7.6 over HTTP: on the stream of the call, answered by a POST of the same session and of no other.
func TestR7_6_AskedOverHTTP(t *testing.T) {
	f := serve(t, asking)
	eliciting := func(edits ...edit) []edit {
		r := f.do("POST", initializeEliciting, edits...)
		out := append([]edit{set("Mcp-Session-Id", r.header.Get("Mcp-Session-Id")), set("MCP-Protocol-Version", "2025-11-25")}, edits...)
		if r := f.do("POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, out...); r.status != 202 {
			t.Fatal(r)
		}
		return out
	}
	alice, another, bob := eliciting(), eliciting(), eliciting(set("Authorization", "Bearer "+bobToken))
	const place = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{}}}`
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	events := eventsOf(t, f.open(ctx, "POST", place, alice...))
	asked := events.next()
	if get(asked, "method") != `"elicitation/create"` {
		t.Fatal(asked)
	}
	answer := `{"jsonrpc":"2.0","id":` + get(asked, "id") + `,"result":{"action":"accept","content":{"decision":"approve once"}}}`
	for name, wrong := range map[string][]edit{"another session": another, "another principal": bob,
		"another principal in this session": append([]edit{set("Authorization", "Bearer "+bobToken)}, alice[:2]...)} {
		if r := f.do("POST", answer, wrong...); r.status != 202 && r.status != 404 {
			t.Errorf("%s: %v", name, r)
		}
	}
	if r := f.do("POST", strings.Replace(answer, "approve once", "decline", 1), alice...); r.status != 202 {
		t.Errorf("the answer: %v", r)
	}
	if got := events.next(); get(got, "id") != "7" || get(got, "result", "_meta", "org.ostiary/outcome", "call") != `"disagreed"` {
		t.Errorf("the call: %s", got)
	}
	// A client that takes no stream cannot be asked.
	if r := f.do("POST", place, append([]edit{set("Accept", "application/json")}, alice...)...); r.at("result", "_meta", "org.ostiary/outcome", "call") != `"cannot be asked"` {
		t.Errorf("without a stream: %v", r)
	}
	plain := f.initialize("2025-11-25")
	if r := f.do("POST", place, plain...); r.at("result", "_meta", "org.ostiary/outcome", "call") != `"cannot be asked"` {
		t.Errorf("a client that cannot ask: %v", r)
	}
	// What a client sends as a header of ours makes no difference.
	lying := f.initialize("2025-11-25", set("ostiary-elicits", "form"), set("Ostiary-Elicits", "form"))
	if r := f.do("POST", place, lying...); r.at("result", "_meta", "org.ostiary/outcome", "call") != `"cannot be asked"` {
		t.Errorf("by a header: %v", r)
	}
}

// S-052: the modern question is a result with our form and the state, and what comes back with the call reaches the path as it
// came; the handshake era has no such thing.
func TestR7_6_AskedByTheResult(t *testing.T) {
	var seen []call.Request
	f := serve(t, func(_ context.Context, r call.Request) call.Reply {
		seen = append(seen, r)
		return call.Reply{Outcome: call.Outcome{Status: call.InputRequired, Delivery: call.NotSent, Code: call.CodeApprovalPending, CallID: "c1"},
			Question: &call.Question{Message: "May it?"}, State: "s\"\u00e9"}
	})
	const params = `"name":"echo","arguments":{}`
	with := func(more string) string { return modernBody("7", "tools/call", params+more, "") }
	legacy := f.initialize("2025-11-25")
	for _, c := range []struct {
		name, body string
		edits      []edit
		answered   *call.Answered
		asks       bool
	}{
		{"plain", with(""), []edit{modernHeaders("tools/call", "echo")}, nil, true},
		{"answered", with(`,"requestState":"s\"\u00e9","inputResponses":{"org.ostiary.approval":{"action":"accept","content":{"decision":"approve once"}},"x":1}`), []edit{modernHeaders("tools/call", "echo")},
			&call.Answered{State: "s\"\u00e9", Consent: call.Agreed}, true},
		{"another question", with(`,"requestState":"s","inputResponses":{"x":{"action":"accept","content":{"decision":"approve once"}}}`), []edit{modernHeaders("tools/call", "echo")}, &call.Answered{State: "s"}, true},
		{"no state", with(`,"inputResponses":{"org.ostiary.approval":{"action":"decline"}}`), []edit{modernHeaders("tools/call", "echo")}, nil, true},
		{"legacy", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + params + `,"requestState":"s"}}`, legacy, nil, false},
	} {
		seen = nil
		r := f.do("POST", c.body, c.edits...)
		if len(seen) != 1 || (seen[0].Answered == nil) != (c.answered == nil) || c.answered != nil && *seen[0].Answered != *c.answered {
			t.Errorf("%s: the path saw %+v", c.name, seen)
		}
		if asks := r.at("result", "resultType") == `"input_required"`; asks != c.asks {
			t.Errorf("%s: %v", c.name, r)
		}
		if c.asks && (r.at("result", "requestState") != `"s\"é"` || r.at("result", "inputRequests", "org.ostiary.approval", "method") != `"elicitation/create"` ||
			r.at("result", "inputRequests", "org.ostiary.approval", "params", "requestedSchema") != decisionSchema || r.at("result", "_meta", "org.ostiary/outcome", "status") != `"input_required"`) {
			t.Errorf("%s: %v", c.name, r)
		}
	}
	for _, bad := range []string{`,"requestState":1`, `,"requestState":"s","inputResponses":[]`} {
		if r := f.do("POST", with(bad), modernHeaders("tools/call", "echo")); r.at("error", "code") != "-32602" {
			t.Errorf("%s: %v", bad, r)
		}
	}
	seen = nil
	f.do("POST", modernBody("7", "tools/call", params, ""), modernHeaders("tools/call", "echo"))
	if seen[0].AskBack {
		t.Error("a client that has declared nothing is asked back")
	}
}
