package contract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/contract"
)

const sendSchema = `{"type":"object","properties":{"group_id":{"type":"string"},"n":{"type":"integer"},"either":{"type":["null","string"]},"x":{"type":"number"},
	"any":true,"open":{},"ref":{"$ref":"#/$defs/id"},"flag":{"type":"boolean"},"list":{"type":"array"},"deep":{"type":"object","properties":{"id":{"type":"string"}}},"never":false},
	"$defs":{"id":{"type":"string"}}}`

// R4.8, R4.4: scopes are held against the input schema when they are declared, and the error names tool and template.
func TestR4_8_Declare(t *testing.T) {
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("chat:%d", i)
	}
	for _, c := range []struct {
		scopes contract.Scopes
		want   string // "": no error
	}{
		{contract.Scopes{Observe: []string{"chat:group:{group_id}"}}, ""},
		{contract.Scopes{Publish: []string{"chat:group:{group_id}", "chat:all"}}, ""},
		{contract.Scopes{Observe: []string{"chat:{n}:{either}", "chat:{x}", "chat:{any}:{open}:{ref}"}, Publish: []string{"chat"}}, ""},
		{contract.Scopes{}, "there are none"},
		{contract.Scopes{Observe: []string{}}, "observe: the list is empty"},
		{contract.Scopes{Publish: []string{"chat:{gid}"}}, `publish: scope template "chat:{gid}": the input schema has no property gid`},
		{contract.Scopes{Publish: []string{"chat:{id}"}}, "no property id at its top level"},
		{contract.Scopes{Publish: []string{"chat:{flag}"}}, "the property flag is neither text nor an integer"},
		{contract.Scopes{Publish: []string{"chat:{list}"}}, "list is neither"},
		{contract.Scopes{Publish: []string{"chat:{deep}"}}, "deep is neither"},
		{contract.Scopes{Publish: []string{"chat:{never}"}}, "never is neither"},
		{contract.Scopes{Observe: []string{"chat:{deep.id}"}}, "only the name of a top-level property"},
		{contract.Scopes{Observe: []string{"chat:{group_id|upper}"}}, "only the name of a top-level property"},
		{contract.Scopes{Observe: []string{"Chat"}}, `observe: scope "Chat"`},
		{contract.Scopes{Observe: []string{"chat:a", "chat:a"}}, "twice"},
		{contract.Scopes{Observe: many}, "65 templates"},
	} {
		tool := &mcp.Tool{Name: "send_message", InputSchema: json.RawMessage(sendSchema), Meta: mcp.Meta{"other": 1}}
		err := contract.Declare(tool, c.scopes)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "send_message")) {
			t.Errorf("%v: %v, want %q", c.scopes, err, c.want)
		}
		if _, declared := tool.Meta[contract.ToolContract]; declared != (err == nil) || tool.Meta["other"] != 1 {
			t.Errorf("%v: the tool has %v", c.scopes, tool.Meta)
		}
		if err == nil && contract.Declare(tool, c.scopes) == nil {
			t.Errorf("%v could be declared twice", c.scopes)
		}
	}
	if err := contract.Declare(&mcp.Tool{Name: "bare"}, contract.Scopes{Observe: []string{"a"}}); err == nil || !strings.Contains(err.Error(), "input schema") {
		t.Errorf("without a schema: %v", err)
	}
	if err := contract.Declare(&mcp.Tool{Name: "odd", InputSchema: json.RawMessage(`[]`)}, contract.Scopes{Observe: []string{"a"}}); err == nil {
		t.Error("a schema that is none")
	}
}

// R4.8: what is declared is what is listed, to whoever asks, and the tool of the caller is not touched.
func TestR4_8_DeclaredIsListed(t *testing.T) {
	ext := contract.New(contract.Options{})
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, ext.Offer(nil))
	ext.Attach(server)
	tool := &mcp.Tool{Name: "send"}
	h := func(context.Context, *mcp.CallToolRequest, input) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	}
	if err := contract.AddTool(server, tool, contract.Scopes{Observe: []string{"chat:{group}"}}, h); err != nil {
		t.Fatal(err)
	}
	if tool.Meta != nil || tool.InputSchema != nil {
		t.Errorf("the caller's tool became %+v", tool)
	}
	if err := contract.AddTool(server, tool, contract.Scopes{Observe: []string{"chat:{nobody}"}}, h); err == nil || !strings.Contains(err.Error(), "send") {
		t.Errorf("a fault was not seen: %v", err)
	}
	for _, revision := range []string{"2026-07-28", old} {
		for _, offered := range [][]string{nil, {contract.ToolContract}} {
			cs := client(t, connected(t, ext, server, nil), revision, offered...)
			if s, _ := json.Marshal(cs.InitializeResult().Capabilities); string(s) != `{"extensions":{"org.aurorabot/tool-contract":{"version":1}},"logging":{},"tools":{"listChanged":true}}` {
				t.Errorf("%s: the server offers %s", revision, s)
			}
			l, err := cs.ListTools(t.Context(), nil)
			if err != nil || len(l.Tools) != 1 {
				t.Fatalf("%v, %v", l, err)
			}
			if got, _ := json.Marshal(l.Tools[0].Meta); string(got) != `{"org.aurorabot/tool-contract":{"observe":["chat:{group}"]}}` {
				t.Errorf("%s: listed with %s", revision, got)
			}
		}
	}
}

// R4.8: Offer adds to what is there.
func TestR4_8_Offer(t *testing.T) {
	o := &mcp.ServerOptions{Instructions: "x", Capabilities: &mcp.ServerCapabilities{}}
	o.Capabilities.AddExtension("com.example/other", nil)
	if got := contract.New(contract.Options{WorldEvents: true}).Offer(o); got != o || o.Instructions != "x" {
		t.Errorf("%+v", got)
	}
	if got, _ := json.Marshal(o.Capabilities); string(got) != `{"extensions":{"com.example/other":{},"org.aurorabot/tool-contract":{"version":1},"org.aurorabot/world-events":{"version":1}}}` {
		t.Errorf("%s", got)
	}
	contract.New(contract.Options{LegacyEvents: true}).Offer(o)
	if got, _ := json.Marshal(o.Capabilities); !strings.Contains(string(got), `"logging":{}`) {
		t.Errorf("log messages without the capability: %s", got)
	}
}
