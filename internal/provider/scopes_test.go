package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/internal/drift"
	"github.com/ostiary/ostiary/internal/world"
)

// contractTool is a definition with a contract; the schema has properties of all kinds.
func contractTool(contract string) []byte {
	return []byte(`{"name":"post","_meta":{"other":1,"org.aurorabot/tool-contract":` + contract + `},"inputSchema":{"type":"object","properties":{
		"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},"sn":{"type":["null","string"]},"any":{},"yes":true,"ref":{"$ref":"#/$defs/x"},
		"b":{"type":"boolean"},"o":{"type":"object","properties":{"inner":{"type":"string"}}},"a":{"type":["array","object"]},"no":false,"nil":{"type":"null"}},
		"$defs":{"x":{"type":"string"}}}}`)
}

func shown(s world.Scopes) string {
	var b strings.Builder
	for _, t := range s.Observe {
		b.WriteString("o " + t.String() + ";")
	}
	for _, t := range s.Publish {
		b.WriteString("p " + t.String() + ";")
	}
	return b.String()
}

// R4.3, R4.4: what a tool's definition may say of its scopes; R4.2: nothing without the contract.
func TestR4_3_Scopes(t *testing.T) {
	const def = "o aurora:mcp:chat;p aurora:mcp:chat;"
	many := make([]string, world.MaxTemplates+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"qq:%d"`, i)
	}
	for contract, want := range map[string]string{ // "!" and words: an error that says them
		`{}`:                     def,
		`{"observe":["qq:{s}"]}`: "o qq:{s};p aurora:mcp:chat;",
		`{"publish":["qq:{i}"]}`: "o aurora:mcp:chat;p qq:{i};",
		`{"observe":["qq:all","qq:{n}:{sn}"],"publish":["qq:{any}{yes}","world","qq:{ref}"]}`: "o qq:all;o qq:{n}:{sn};p qq:{any}{yes};p world;p qq:{ref};",
		`{"observe":["` + strings.ReplaceAll("qq:{s}", "{", `\u007b`) + `"]}`:                 "o qq:{s};p aurora:mcp:chat;",
		`{"observe":[` + strings.Join(many[1:], ",") + `]}`:                                   "o qq:1;o qq:2;",

		`{"observe":["aurora:mcp:files"],"publish":["aurora:mcp:chat","aurora:mcp:chat:{s}","aurora:mcp:{s}"]}`: "o aurora:mcp:files;p aurora:mcp:chat;p aurora:mcp:chat:{s};p aurora:mcp:{s};",
		`{"publish":["aurora:mcp:files"]}`:              "!publish: scope aurora:mcp:files: it stands for another provider",
		`{"publish":["qq:a","aurora:mcp:files:room"]}`:  "!it stands for another provider",
		`{"observe":[]}`:                                "!observe: the list is empty",
		`{"publish":[]}`:                                "!publish: the list is empty",
		`{"observe":"qq:{s}"}`:                          "!observe: expected a list",
		`{"observe":null}`:                              "!observe: expected a list",
		`{"observe":{}}`:                                "!observe: expected a list",
		`{"observe":[1]}`:                               "!observe: expected a list of scope templates, each a string",
		`{"observe":["qq:a",null]}`:                     "!observe: expected a list of scope templates, each a string",
		`{"observe":["qq:a","qq:a"]}`:                   `!observe: "qq:a" is there twice`,
		`{"observe":["qq:a","qq:\u0061"]}`:              "!twice",
		`{"observe":["QQ:a"]}`:                          "!observe: scope",
		`{"observe":[""]}`:                              "!observe: scope",
		`{"publish":["qq:{s.t}"]}`:                      "!publish: scope template",
		`{"publish":["qq:{s|upper}"]}`:                  "!publish: scope template",
		`{"publish":["qq:{missing}"]}`:                  "!no property missing at its top level",
		`{"publish":["qq:{inner}"]}`:                    "!no property inner at its top level",
		`{"publish":["qq:{b}"]}`:                        "!the property b is neither text nor an integer",
		`{"publish":["qq:{o}"]}`:                        "!the property o is neither",
		`{"publish":["qq:{a}"]}`:                        "!the property a is neither",
		`{"publish":["qq:{nil}"]}`:                      "!the property nil is neither",
		`{"publish":["qq:{no}"]}`:                       "!admits no value for no",
		`{"observe":["qq:a"],"version":1}`:              `!unknown field "version"`,
		`{"Observe":["qq:a"]}`:                          `!unknown field "Observe"`,
		`{"status":"unknown"}`:                          `!unknown field "status"`,
		`null`:                                          "!is not an object",
		`[]`:                                            "!is not an object",
		`"qq:a"`:                                        "!is not an object",
		`{"observe":[` + strings.Join(many, ",") + `]}`: "!more than 64",
	} {
		definition := contractTool(contract)
		if got, err := ScopesOf("chat", definition, false); err != nil || shown(got) != def {
			t.Errorf("R4.2: %s without the contract: %s, %v", contract, shown(got), err)
		}
		got, err := ScopesOf("chat", definition, true)
		words, fails := strings.CutPrefix(want, "!")
		switch {
		case fails && (err == nil || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), "tool-contract")):
			t.Errorf("%s: got %v, want it to say %q", contract, err, words)
		case !fails && (err != nil || !strings.HasPrefix(shown(got), want)):
			t.Errorf("%s: got %s, %v", contract, shown(got), err)
		}
	}
	for _, definition := range []string{`{"name":"x","inputSchema":{"type":"object"}}`, `{"_meta":{}}`, `{"_meta":[]}`, `{"_meta":{"org.aurorabot/Tool-Contract":{}}}`} {
		if got, err := ScopesOf("chat", []byte(definition), true); err != nil || shown(got) != def {
			t.Errorf("%s: %s, %v", definition, shown(got), err)
		}
	}
}

// R4.3: scopes that cannot be fail the start, and the error names tool and field; without the contract nothing is looked at.
// Of a tool that is not allowed nothing is looked at either.
func TestR4_3_FreezeNamesToolAndField(t *testing.T) {
	listing := Listing{Tools: [][]byte{contractTool(`{"observe":["qq:{gone}"]}`), []byte(`{"name":"fine","inputSchema":{"type":"object"}}`)}}
	p := &Profile{Package: "chat", AllowedTools: []AllowedTool{{Raw: "post"}, {Raw: "fine"}}}
	gen := Generation{Attachment: "gateway/chat", Number: 1}
	_, err := Freeze(p, gen, Negotiated{ToolContract: true}, listing)
	if err == nil || !strings.Contains(err.Error(), `tool "post"`) || !strings.Contains(err.Error(), "observe") {
		t.Errorf("got %v", err)
	}
	c, err := Freeze(p, gen, Negotiated{}, listing)
	if err != nil || len(c.Tools) != 2 || shown(c.Tools[0].Scopes) != "o aurora:mcp:chat;p aurora:mcp:chat;" {
		t.Errorf("R4.2: %+v, %v", c, err)
	}
	p.AllowedTools = p.AllowedTools[1:]
	if c, err = Freeze(p, gen, Negotiated{ToolContract: true}, listing); err != nil || len(c.Tools) != 1 {
		t.Errorf("a tool that is not allowed: %+v, %v", c, err)
	}
}

// Whatever a definition says, the scopes that come of it are templates of properties that its input schema has, and there
// are some of both.
func FuzzR4_3_Scopes(f *testing.F) {
	f.Add(contractTool(`{"observe":["qq:{s}"],"publish":["qq:{i}"]}`))
	f.Add(contractTool(`{"observe":[["qq:{s}"]]}`))
	f.Add([]byte(`{"_meta":{"org.aurorabot/tool-contract":{"observe":["a:{p}"]}},"inputSchema":{"properties":{"p":{"type":["string",1]}}}}`))
	f.Fuzz(func(t *testing.T, definition []byte) {
		got, err := ScopesOf("chat", definition, true)
		if err != nil {
			return
		}
		if len(got.Observe) == 0 || len(got.Publish) == 0 {
			t.Fatal("no scopes")
		}
		tool, _ := drift.Members(definition)
		schema, _ := drift.Members(tool["inputSchema"])
		properties, _ := drift.Members(schema["properties"])
		for _, list := range [][]world.Template{got.Observe, got.Publish} {
			for _, tpl := range list {
				if again, err := world.ParseTemplate(tpl.String()); err != nil || again.String() != tpl.String() {
					t.Fatalf("%q is no template: %v", tpl, err)
				}
				for _, p := range tpl.Properties() {
					if _, ok := properties[p]; !ok {
						t.Fatalf("%q refers to %s", tpl, p)
					}
				}
			}
		}
	})
}
