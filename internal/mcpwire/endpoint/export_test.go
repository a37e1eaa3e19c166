package endpoint

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

func list(t *testing.T, f *fixture, cursor string) reply {
	t.Helper()
	params := ""
	if cursor != "" {
		params = `"cursor":` + cursor
	}
	return f.modern("tools/list", "", params, "")
}

// R10.3, R10.7: the listing holds exactly the export, each definition byte for byte, under the name that clients use.
func TestR10_3_ListIsTheExportByteForByte(t *testing.T) {
	const inner = `"inputSchema":{"type":"object","properties":{"name":{"type":"string","maximum":9007199254740993,"multipleOf":1.0}}},"x-unknown":{"name":"inner"},"annotations":{"readOnlyHint":true}`
	renamed := tool("read", `{"title":"<b>","name":"read",`+inner+`}`)
	renamed.Name = "files__read"
	f := serve(t, echo, withTools(tool("a", `{"name":"a",`+inner+`}`), renamed, tool("b", "{\n\t\"name\": \"b\",\r\n"+inner+"\n}")))
	want := `[{"name":"a",` + inner + `},{"title":"<b>","name":"files__read",` + inner + `},` + "{ \t\"name\": \"b\",  " + inner + " }]"
	modern := list(t, f, "")
	if got := modern.at("result", "tools"); got != want {
		t.Errorf("modern:\n got %s\nwant %s", got, want)
	}
	for key, value := range map[string]string{"ttlMs": "60000", "cacheScope": `"private"`, "resultType": `"complete"`, "nextCursor": "",
		"_meta": `{"io.modelcontextprotocol/serverInfo":{"name":"ostiary","version":"test"}}`} {
		if got := modern.at("result", key); got != value {
			t.Errorf("%s: %s, want %s", key, got, value)
		}
	}
	legacy := f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, f.initialize("2025-11-25")...)
	if got := legacy.at("result"); got != `{"tools":`+want+`}` {
		t.Errorf("legacy:\n got %s\nwant %s", got, want)
	}
	if got := f.modern("tools/call", "files__read", `"name":"files__read"`, ""); got.at("result") == "" {
		t.Errorf("by its name: %v", got)
	}
	absent, raw := f.modern("tools/call", "nope", `"name":"nope"`, ""), f.modern("tools/call", "read", `"name":"read"`, "")
	if strings.ReplaceAll(raw.body, "read", "nope") != absent.body {
		t.Errorf("the raw name of a renamed tool says more than a name that never existed:\n%s\n%s", raw.body, absent.body)
	}
}

// S-069, R10.3: equal sets give equal bytes, whoever asks and however often.
func TestS069_ListIsDeterministic(t *testing.T) {
	var tools []Tool
	for i := range 50 {
		tools = append(tools, tool(fmt.Sprintf("t%d", 50-i), fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, 50-i)))
	}
	first := list(t, serve(t, echo, withTools(tools...)), "")
	f := serve(t, echo, withTools(tools...))
	for i := range 1000 {
		edits := []edit{}
		if i%2 == 1 {
			edits = append(edits, set("Authorization", "Bearer "+bobToken))
		}
		if got := f.modern("tools/list", "", "", "", edits...); got.body != first.body {
			t.Fatalf("list %d differs", i)
		}
	}
	if strings.Index(first.body, `"t50"`) > strings.Index(first.body, `"t1"`) {
		t.Error("the order is not that of the export")
	}
}

// L-1, S-082: ten thousand tools are listed within the bound, page by page with opaque cursors; a cursor of another set is
// refused, and the empty one is the beginning.
func TestL1_TenThousandTools(t *testing.T) {
	tools := make([]Tool, 10_000)
	pad := strings.Repeat("d", 600)
	for i := range tools {
		tools[i] = tool(fmt.Sprintf("t%d", i), fmt.Sprintf(`{"name":"t%d","description":"%s","inputSchema":{"type":"object"}}`, i, pad))
	}
	f := serve(t, echo, withTools(tools...))
	begin := time.Now()
	seen, pages, cursor := 0, 0, ""
	for {
		page := list(t, f, cursor)
		for e := range content.Elements([]byte(page.at("result", "tools"))) {
			if name := string(content.Member(e, "name")); name != fmt.Sprintf(`"t%d"`, seen) {
				t.Fatalf("tool %d is %s", seen, name)
			}
			seen++
		}
		pages++
		if cursor = page.at("result", "nextCursor"); cursor == "" {
			break
		}
	}
	t.Logf("%d tools in %d pages, read and compared in %v", seen, pages, time.Since(begin))
	if seen != 10_000 || pages < 2 || pages > 10 {
		t.Errorf("%d tools in %d pages", seen, pages)
	}
	if got := list(t, f, `""`); got.at("result", "nextCursor") == "" {
		t.Errorf("the empty cursor: %.200s", got.body)
	}
	second := list(t, f, "").at("result", "nextCursor")
	if err := f.SetTools("default", tools[1:]); err != nil {
		t.Fatal(err)
	}
	if got := list(t, f, second); got.at("error", "code") != "-32602" {
		t.Errorf("a cursor of a set that has changed: %.200s", got.body)
	}
}

// No cursor but those that were handed out names a page.
func FuzzCursor(f *testing.F) {
	l, err := render([]byte("{}"), []Tool{tool("a", `{"name":"a","d":"`+strings.Repeat("x", maxPageBytes)+`"}`), tool("b", `{"name":"b"}`)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("")
	f.Add(l.cursorOf(1))
	f.Add(l.cursorOf(2))
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, cursor string) {
		p, ok := l.pageAt(cursor)
		if ok != (cursor == "" || cursor == l.cursorOf(1)) || ok && p == nil {
			t.Errorf("pageAt(%q) = %v, %v", cursor, p, ok)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	good := Options{Caller: callerFunc(echo), Exports: []Export{{Name: "x"}}}
	if e, err := New(good); err != nil {
		t.Fatal(err)
	} else if err := e.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"no caller":        {},
		"same export":      {Caller: callerFunc(echo), Exports: []Export{{Name: "x"}, {Name: "x"}}},
		"same name":        {Caller: callerFunc(echo), Exports: []Export{{Tools: []Tool{echoTool(), echoTool()}}}},
		"no name":          {Caller: callerFunc(echo), Exports: []Export{{Tools: []Tool{{Descriptor: &call.Descriptor{Definition: []byte("{}")}}}}}},
		"no descriptor":    {Caller: callerFunc(echo), Exports: []Export{{Tools: []Tool{{Name: "x"}}}}},
		"broken":           {Caller: callerFunc(echo), Exports: []Export{{Tools: []Tool{tool("x", `{"name":"x","name":"y"}`)}}}},
		"no object":        {Caller: callerFunc(echo), Exports: []Export{{Tools: []Tool{tool("x", `[]`)}}}},
		"origin with path": {Caller: callerFunc(echo), AllowedOrigins: []string{"https://x/y"}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A definition under another name is the definition, apart from its top-level name.
func TestDefinitionProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := content.NewObject(nil)
		for _, key := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"name", "title", "a", "inputSchema"}), rapid.ID).Draw(t, "keys") {
			o.Raw(key, []byte(rapid.SampledFrom([]string{`"x"`, `{"name":"x"}`, `[{"name":1.0}]`, "{\n}", `9007199254740993`}).Draw(t, "value")))
		}
		def := o.End()
		name := rapid.String().Draw(t, "name")
		if name == "" || !jsontext.Value(content.AppendString(nil, name)).IsValid() {
			return
		}
		got, err := definition(&Tool{Name: name, Descriptor: &call.Descriptor{Definition: def}})
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := content.String(content.Member(got, "name")); !ok || s != name && s != strings.ToValidUTF8(name, "\uFFFD") {
			t.Fatalf("name %q in %s", s, got)
		}
		for key, value := range content.Members(def) {
			if key != "name" && string(content.Member(got, key)) != strings.NewReplacer("\n", " ", "\r", " ").Replace(string(value)) {
				t.Fatalf("%s: %s became %s", key, value, content.Member(got, key))
			}
		}
	})
}

// server/discover says what this server is: versions newest first, with those of the legacy era, and nothing it lacks.
func TestDiscover(t *testing.T) {
	f := serve(t, echo)
	got := f.modern("server/discover", "", "", "")
	want := `{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],` +
		`"capabilities":{"tools":{"listChanged":true},"logging":{}},"instructions":"Be careful.","ttlMs":300000,"cacheScope":"private",` +
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"ostiary","version":"test"}}}`
	if got.at("result") != want {
		t.Errorf("got %s\nwant %s", got.at("result"), want)
	}
	init := f.do("POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if caps := init.at("result", "capabilities"); !strings.Contains(caps, `"listChanged":true`) || !strings.Contains(caps, `"logging"`) || strings.Contains(caps, "prompts") || strings.Contains(caps, "resources") {
		t.Errorf("legacy capabilities: %s", caps)
	}
}
