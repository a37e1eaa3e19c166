package endpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/world"
)

// readTool is what a read goes through; the caller of the fixture answers for it.
var readTool = &call.Descriptor{ID: "aur.world.read", Package: call.WorldPackage, Name: "read", Definition: []byte(`{}`)}

// withWorld makes the export one that shows the scopes qq:*; plain is one that shows nothing.
func withWorld(p *planet) func(*Options) {
	return func(o *Options) {
		r, err := world.ParseReadable([]string{"qq:*"})
		if err != nil {
			panic(err)
		}
		o.World = p
		o.Exports[0].Resources = &Resources{Read: readTool, Readable: r, List: func(_ context.Context, after call.Scope, limit int) (scopes []call.Scope, err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			for s := range p.heads {
				if s > after && r.Has(s) {
					scopes = append(scopes, s)
				}
			}
			slices.Sort(scopes)
			return scopes[:min(limit, len(scopes))], p.fail
		}}
		o.Exports = append(o.Exports, Export{Name: "plain", Path: "/v1/plain", Tools: []Tool{echoTool()}})
	}
}

// reads answers reads, and says which request came.
func reads(got *call.Request) callerFunc {
	return func(_ context.Context, r call.Request) call.Reply {
		*got = r
		uri := string(content.Member(r.Arguments, "uri"))
		return call.Reply{Outcome: okOutcome, Result: []byte(`{"contents":[{"uri":` + uri + `,"mimeType":"application/json","text":"{}"}]}`), Frontier: call.Frontier{"qq:1": 4}}
	}
}

// within is a request within a legacy session.
func (f *fixture) within(session []edit, method, params string) reply {
	f.t.Helper()
	return f.do("POST", `{"jsonrpc":"2.0","id":9,"method":"`+method+`","params":{`+params+`}}`, session...)
}

// R5.7: resources are read through the path of calls, by who may and in the form of each era.
func TestR5_7_ReadResource(t *testing.T) {
	var asked call.Request
	f := serve(t, reads(&asked), withWorld(newPlanet()))
	const uri = "ostiary://world/qq%3A1"
	session := f.initialize("2025-11-25")
	for era, read := range map[string]func() reply{
		"modern": func() reply { return f.modern("resources/read", uri, `"uri":"`+uri+`"`, `"progressToken":1`) },
		"legacy": func() reply { return f.within(session, "resources/read", `"uri":"`+uri+`"`) },
	} {
		got := read()
		if got.status != 200 || got.at("result", "contents") != `[{"uri":"`+uri+`","mimeType":"application/json","text":"{}"}]` ||
			got.at("result", "_meta", "org.ostiary/outcome", "status") != `"succeeded"` || got.at("result", "_meta", "org.ostiary/frontier") != `{"qq:1":4}` {
			t.Errorf("%s: %v", era, got)
		}
		modern := got.at("result", "resultType") == `"complete"` && got.at("result", "ttlMs") == "0" && got.at("result", "cacheScope") == `"private"`
		if modern != (era == "modern") {
			t.Errorf("%s: %v", era, got)
		}
		if asked.Tool != "aur.world.read" || asked.Export != "default" || asked.Principal.ID != "alice" || string(asked.Arguments) != `{"uri":"`+uri+`"}` {
			t.Errorf("%s: asked for %+v", era, asked)
		}
		if (asked.Progress != nil) != modern || (asked.Session == "") != modern {
			t.Errorf("%s: progress and session of %+v", era, asked)
		}
	}

	// The header repeats the address (S-037).
	for _, bad := range []edit{set("Mcp-Name", "ostiary://world/qq:2"), del("Mcp-Name")} {
		if got := f.modern("resources/read", uri, `"uri":"`+uri+`"`, "", bad); got.status != 400 || got.at("error", "code") != "-32020" {
			t.Errorf("the header: %v", got)
		}
	}
	for _, params := range []string{``, `"uri":1`, `"uri":null`} {
		if got := f.within(session, "resources/read", params); got.at("error", "code") != "-32602" {
			t.Errorf("%q: %v", params, got)
		}
	}
}

// R5.7: what may not be read and what there is not are not found, in the same words; the path is not asked.
func TestR5_7_ResourceNotFound(t *testing.T) {
	f := serve(t, func(context.Context, call.Request) call.Reply {
		t.Error("the path was asked")
		return call.Reply{}
	}, withWorld(newPlanet()))
	session := f.initialize("2025-06-18")
	long := "ostiary://world/" + strings.Repeat("a", 4000)
	for _, uri := range []string{"ostiary://world/secret:1", "ostiary://world/qq", "file:///etc/passwd", "", "ostiary://world/qq:1#x", long} {
		modern := f.modern("resources/read", "", `"uri":`+jsonString(uri), "", set("Mcp-Name", uri))
		for era, c := range map[string]struct {
			got  reply
			code string
		}{
			"modern": {modern, "-32602"}, "legacy": {f.within(session, "resources/read", `"uri":`+jsonString(uri)), "-32002"},
			"subscribe": {f.within(session, "resources/subscribe", `"uri":`+jsonString(uri)), "-32002"},
		} {
			if c.got.status != 200 || c.got.at("error", "code") != c.code || c.got.at("error", "message") != `"Resource not found"` {
				t.Errorf("%s %.40s: %v", era, uri, c.got)
			}
			if told := c.got.at("error", "data", "uri"); uri != long && told != jsonString(uri) || len(told) > 1200 {
				t.Errorf("%s %.40s: told of %s", era, uri, told)
			}
		}
	}
	if !strings.Contains(f.logs.String(), "unknown_resource") {
		t.Error("nobody was told of it")
	}
}

// R5.7: how the path refuses a read: as not found where it may not be, else in words, with the outcome.
func TestR5_7_RefusedRead(t *testing.T) {
	var next call.Outcome
	f := serve(t, func(context.Context, call.Request) call.Reply { return call.Reply{Outcome: next} }, withWorld(newPlanet()))
	session := f.initialize("2025-11-25")
	for code, want := range map[call.Code]string{call.CodeDenied: "Resource not found", call.CodeInvalidArguments: "Resource not found", call.CodeWithheld: "Held.", call.CodeLedgerUnavailable: "Held."} {
		next = call.Outcome{Status: call.Failed, Code: code, Message: "Held."}
		for era, got := range map[string]reply{
			"modern": f.modern("resources/read", "ostiary://world/qq:1", `"uri":"ostiary://world/qq:1"`, ""),
			"legacy": f.within(session, "resources/read", `"uri":"ostiary://world/qq:1"`),
		} {
			if got.at("error", "message") != jsonString(want) || got.at("error", "data", "uri") != `"ostiary://world/qq:1"` || got.at("result") != "" {
				t.Errorf("%s %s: %v", era, code, got)
			}
			if told := got.at("error", "data", "outcome", "code"); (told == jsonString(string(code))) != (want == "Held.") {
				t.Errorf("%s %s: outcome %s", era, code, told)
			}
		}
	}
	// Beyond the bounds of calls, too, it is an error of the request and no tool's result.
	small := serve(t, nil, withWorld(newPlanet()), func(o *Options) { o.MaxConcurrent = 1 })
	small.slots.take("bob")
	if got := small.modern("resources/read", "ostiary://world/qq:1", `"uri":"ostiary://world/qq:1"`, ""); got.at("error", "code") != "-32603" || got.at("error", "data", "outcome", "code") != `"overloaded"` {
		t.Errorf("overloaded: %v", got)
	}
}

// R5.7: the readable scopes are listed in pages, in order and once each, and cursors that were not handed out are refused.
func TestR5_7_ListResources(t *testing.T) {
	p := newPlanet()
	var want []string
	for i := range 2*resourcePage + 1 {
		s := call.Scope(fmt.Sprintf("qq:%04d", i))
		p.heads[s] = 1
		want = append(want, string(s))
	}
	p.heads["secret:1"] = 1
	f := serve(t, echo, withWorld(p))
	session := f.initialize("2025-11-25")
	for era, list := range map[string]func(params string) reply{
		"modern": func(params string) reply { return f.modern("resources/list", "", params, "") },
		"legacy": func(params string) reply { return f.within(session, "resources/list", params) },
	} {
		var got []string
		for params, pages := "", 0; ; {
			r := list(params)
			for one := range content.Elements([]byte(r.at("result", "resources"))) {
				name, _ := content.String(content.Member(one, "name"))
				if uri, _ := content.String(content.Member(one, "uri")); uri != "ostiary://world/"+name {
					t.Errorf("%s: %s", era, one)
				}
				got = append(got, name)
			}
			next := r.at("result", "nextCursor")
			if pages++; next == "" {
				if pages != 3 || (r.at("result", "ttlMs") != "") != (era == "modern") {
					t.Errorf("%s: %d pages: %v", era, pages, r)
				}
				break
			}
			params = `"cursor":` + next
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: listed %v", era, got)
		}
		for _, bad := range []string{`"cursor":1`, `"cursor":"!"`, `"cursor":"QQ"`} {
			if r := list(bad); r.at("error", "code") != "-32602" {
				t.Errorf("%s %s: %v", era, bad, r)
			}
		}
	}
	templates := f.within(session, "resources/templates/list", "")
	if templates.at("result", "resourceTemplates") == "" || !strings.Contains(templates.body, `"uriTemplate":"ostiary://world/{scope}"`) || !strings.Contains(templates.body, "qq:*") {
		t.Errorf("templates: %v", templates)
	}
	if r := f.within(session, "resources/templates/list", `"cursor":"x"`); r.at("error", "code") != "-32602" {
		t.Errorf("a second page of templates: %v", r)
	}
	p.failing(errors.New("secret words of a disk"))
	if r := f.within(session, "resources/list", ""); r.at("error", "code") != "-32603" || strings.Contains(r.body, "disk") {
		t.Errorf("a fault: %v", r)
	}
}

// R15.2, S-061: a subscription is told of what it was acknowledged for, with its own id, and of nothing else.
func TestR15_2_ListenToResources(t *testing.T) {
	p := newPlanet()
	f := serve(t, echo, withWorld(p))
	const mine, other = "ostiary://world/qq:1", "ostiary://world/qq%3A2"
	listen := func(id, notifications string, edits ...edit) *events {
		resp := f.open(t.Context(), "POST", modernBody(id, "subscriptions/listen", `"notifications":{`+notifications+`}`, ""), append([]edit{modernHeaders("subscriptions/listen", "")}, edits...)...)
		t.Cleanup(func() { resp.Body.Close() })
		return eventsOf(t, resp)
	}
	a := listen("7", `"resourceSubscriptions":["`+mine+`","ostiary://world/secret:1","`+mine+`","nonsense","`+other+`"]`)
	b := listen(`"b"`, `"resourceSubscriptions":["`+other+`"]`)
	none := listen("9", `"resourceSubscriptions":[]`)
	for name, c := range map[string]struct {
		e    *events
		want string
	}{
		"a": {a, `{"resourceSubscriptions":["` + mine + `","` + other + `"]}`}, "b": {b, `{"resourceSubscriptions":["` + other + `"]}`}, "none": {none, `{}`},
	} {
		if ack := c.e.next(); string(content.Member(content.Member([]byte(ack), "params"), "notifications")) != c.want {
			t.Errorf("%s: acknowledged %s", name, ack)
		}
	}
	updated := func(id, uri string) string {
		return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `},"uri":"` + uri + `"}}`
	}
	p.commit("qq:1", "secret:1", "qq:3")
	if got := a.next(); got != updated("7", mine) {
		t.Errorf("a: %s", got)
	}
	p.commit("qq:2")
	if got := a.next(); got != updated("7", other) {
		t.Errorf("a: %s", got)
	}
	if got := b.next(); got != updated(`"b"`, other) {
		t.Errorf("b: %s", got)
	}
	f.beginClose()
	if got := none.next(); !strings.Contains(got, `"result"`) {
		t.Errorf("who has asked for nothing was told %s", got)
	}
}

// R15.2: what a subscription cannot ask for.
func TestR15_2_ListenFilter(t *testing.T) {
	f := serve(t, echo, withWorld(newPlanet()))
	many := make([]string, maxWatched+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"ostiary://world/qq:%d"`, i)
	}
	for _, bad := range []string{`"resourceSubscriptions":1`, `"resourceSubscriptions":null`, `"resourceSubscriptions":{}`, `"resourceSubscriptions":[1]`, `"resourceSubscriptions":[` + strings.Join(many, ",") + `]`} {
		r := f.modern("subscriptions/listen", "", `"notifications":{`+bad+`}`, "")
		if r.status != 400 || r.at("error", "code") != "-32602" || !strings.Contains(r.body, "resourceSubscriptions") {
			t.Errorf("%.60s: %v", bad, r)
		}
	}
	// An export without resources acknowledges none.
	f.url = f.http.URL + "/v1/plain"
	resp := f.open(t.Context(), "POST", modernBody("1", "subscriptions/listen", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["ostiary://world/qq:1"]}`, ""), modernHeaders("subscriptions/listen", ""))
	defer resp.Body.Close()
	if ack := eventsOf(t, resp).next(); string(content.Member(content.Member([]byte(ack), "params"), "notifications")) != `{"toolsListChanged":true}` {
		t.Errorf("acknowledged %s", ack)
	}
	for _, method := range []string{"resources/list", "resources/templates/list", "resources/read"} {
		if r := f.modern(method, "x", `"uri":"x"`, ""); r.at("error", "code") != "-32601" {
			t.Errorf("%s: %v", method, r)
		}
	}
	if caps := f.modern("server/discover", "", "", "").at("result", "capabilities"); strings.Contains(caps, "resources") {
		t.Errorf("capabilities %s", caps)
	}
}

// R15.2: in the handshake era updates come on the session's own stream; those that came while there was none come with the
// next; a session that has ended has no subscriptions.
func TestR15_2_SubscribeInASession(t *testing.T) {
	p := newPlanet()
	f := serve(t, echo, withWorld(p))
	alice, again := f.initialize("2025-11-25"), f.initialize("2025-11-25")
	const uri = "ostiary://world/qq:1"
	for range 2 { // twice is once
		if r := f.within(alice, "resources/subscribe", `"uri":"`+uri+`"`); r.at("result") != "{}" {
			t.Fatalf("subscribe: %v", r)
		}
	}
	if r := f.within(again, "resources/subscribe", `"uri":"ostiary://world/qq:2"`); r.at("result") != "{}" {
		t.Fatalf("subscribe: %v", r)
	}
	if r := f.within(again, "resources/unsubscribe", `"uri":"ostiary://world/nobody"`); r.at("result") != "{}" {
		t.Errorf("unsubscribe from what was not subscribed: %v", r)
	}
	p.commit("qq:1") // there is no stream yet
	stream := func(session []edit) *events {
		resp := f.open(t.Context(), "GET", "", append([]edit{set("Accept", "text/event-stream")}, session...)...)
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != 200 {
			t.Fatalf("stream: %d", resp.StatusCode)
		}
		return eventsOf(t, resp)
	}
	a, b := stream(alice), stream(again)
	updated := func(uri string) string {
		return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`
	}
	if got := a.next(); got != updated(uri) {
		t.Errorf("the first session was told %s", got)
	}
	p.commit("qq:2")
	if got := b.next(); got != updated("ostiary://world/qq:2") {
		t.Errorf("the second session was told %s", got)
	}
	// Tools that change and resources that move come on one stream, whole.
	if err := f.SetTools("default", []Tool{echoTool(), tool("more", `{"name":"more"}`)}); err != nil {
		t.Fatal(err)
	}
	if got := b.next(); !strings.Contains(got, "tools/list_changed") {
		t.Errorf("the second session was told %s", got)
	}
	for i := range maxWatched - 1 {
		if r := f.within(alice, "resources/subscribe", fmt.Sprintf(`"uri":"ostiary://world/qq:x%d"`, i)); r.at("result") != "{}" {
			t.Fatalf("subscribe: %v", r)
		}
	}
	if r := f.within(alice, "resources/subscribe", `"uri":"ostiary://world/qq:one:more"`); r.at("error", "code") != "-32602" || !strings.Contains(r.body, "at most 64") {
		t.Errorf("one more: %v", r)
	}
	for _, session := range [][]edit{alice, again} {
		if r := f.do("DELETE", "", session...); r.status != 204 {
			t.Errorf("end of the session: %v", r)
		}
	}
	for a.next() != "" || b.next() != "" { // both streams end, with whatever was on its way
	}
	ended := func() bool {
		f.watchers.mu.Lock()
		defer f.watchers.mu.Unlock()
		return len(f.watchers.all) == 0 && len(f.watchers.held) == 0
	}
	eventually(t, "the subscriptions of sessions that have ended are gone", ended)
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so: %s", what)
		}
	}
}
