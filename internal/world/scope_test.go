package world_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/world"
)

// R4.4: what is a template, and which properties it refers to.
func TestR4_4_Templates(t *testing.T) {
	for _, c := range []struct {
		template string
		refers   string // "-": it is no template
	}{
		{"qq:group:{group_id}", "group_id"},
		{"qq:{kind}:{id}", "kind id"},
		{"qq:group-{a}{b}", "a b"},
		{"aurora:mcp:chat", ""},
		{"world", ""},
		{"", "-"},
		{"qq:", "-"},
		{"qq::x", "-"},
		{"QQ:x", "-"},
		{"qq:гр", "-"},
		{"qq:a b", "-"},
		{"qq:a/b", "-"},
		{"qq:{}", "-"},
		{"qq:{a.b}", "-"},
		{"qq:{a[0]}", "-"},
		{"qq:{a|upper}", "-"},
		{"qq:{a:-x}", "-"},
		{"qq:{a b}", "-"},
		{"qq:{{a}}", "-"},
		{"qq:{a", "-"},
		{"qq:a}", "-"},
		{"qq:" + strings.Repeat("a", world.MaxScope), "-"},
	} {
		got, err := world.ParseTemplate(c.template)
		if (err != nil) != (c.refers == "-") {
			t.Errorf("%q: %v", c.template, err)
			continue
		}
		if err == nil && strings.Join(got.Properties(), " ") != c.refers {
			t.Errorf("%q refers to %q, want %q", c.template, got.Properties(), c.refers)
		}
	}
}

// R4.5: only text and integers of this call, and never a scope that the template does not name.
func TestR4_5_Resolve(t *testing.T) {
	for _, c := range []struct{ template, arguments, want string }{
		{"qq:group:{id}", `{"id":"a.b"}`, "qq:group:a.b"},
		{"qq:group:{id}", `{"id":"\u0041"}`, "qq:group:A"},
		{"qq:group:{id}", `{"id":42}`, "qq:group:42"},
		{"qq:group:{id}", `{"id":-7}`, "qq:group:-7"},
		{"qq:group:{id}", `{"id":9007199254740993}`, "qq:group:9007199254740993"},
		{"qq:{a}:{b}", `{"b":2,"a":"x"}`, "qq:x:2"},
		{"qq:all", ``, "qq:all"},
		{"qq:group:{id}", ``, ""},
		{"qq:group:{id}", `{}`, ""},
		{"qq:group:{id}", `{"ID":"a"}`, ""},
		{"qq:group:{id}", `{"id":""}`, ""},
		{"qq:group:{id}", `{"id":"1:2"}`, ""},
		{"qq:group:{id}", `{"id":"a b"}`, ""},
		{"qq:group:{id}", `{"id":"a\u200bb"}`, ""},
		{"qq:group:{id}", `{"id":true}`, ""},
		{"qq:group:{id}", `{"id":null}`, ""},
		{"qq:group:{id}", `{"id":{}}`, ""},
		{"qq:group:{id}", `{"id":["a"]}`, ""},
		{"qq:group:{id}", `{"id":4.5}`, ""},
		{"qq:group:{id}", `{"id":42.0}`, ""},
		{"qq:group:{id}", `{"id":1e3}`, ""},
		{"qq:group:{id}", `{"id":-0}`, ""},
		{"qq:group:{id}", `{"id":"` + strings.Repeat("a", world.MaxScope) + `"}`, ""},
	} {
		tpl, err := world.ParseTemplate(c.template)
		if err != nil {
			t.Fatal(err)
		}
		var raw []byte
		if c.arguments != "" {
			raw = []byte(c.arguments)
		}
		got, err := world.Scopes{Observe: []world.Template{tpl}}.Resolve(raw)
		if (err == nil) != (c.want != "") {
			t.Errorf("%s with %s: %v, %v", c.template, c.arguments, got, err)
			continue
		}
		if err == nil && (len(got.Observe) != 1 || string(got.Observe[0]) != c.want) {
			t.Errorf("%s with %s: %v, want %s", c.template, c.arguments, got.Observe, c.want)
		}
	}
}

// R4.4, R4.5: what stands for a provider is published by its own tools alone, whatever the arguments make of a template. All
// may observe it.
func TestR4_5_ForeignPublish(t *testing.T) {
	for _, c := range []struct {
		template, value string
		fixed, foreign  bool
	}{
		{"aurora:mcp:files", "", true, true},
		{"aurora:mcp:files:room", "", true, true},
		{"aurora:mcp:chat", "", true, false},
		{"aurora:mcp:chat:room", "", true, false},
		{"aurora:mcp:{p}", "files", false, true},
		{"aurora:mcp:{p}", "chat", false, false},
		{"aurora:mcp:{p}:room", "files", false, true},
		{"aurora:{p}:files", "mcp", false, true},
		{"aurora:{p}:files", "other", false, false},
		{"{p}:mcp:files", "aurora", false, true},
		{"aurora:mcp:cha{p}", "ts", false, true},
		{"aurora:mcp:cha{p}", "t", false, false},
		{"qq:{p}", "files", false, false},
	} {
		tpl, err := world.ParseTemplate(c.template)
		if err != nil {
			t.Fatal(err)
		}
		s := world.Scopes{Owner: "chat", Publish: []world.Template{tpl}}
		if err := s.CheckPublish(); errors.Is(err, world.ErrForeignPublish) != (c.fixed && c.foreign) {
			t.Errorf("%s at discovery: %v", c.template, err)
		}
		arguments := []byte(`{"p":"` + c.value + `"}`)
		if got, err := s.Resolve(arguments); errors.Is(err, world.ErrForeignPublish) != c.foreign || !c.foreign && (err != nil || len(got.Publish) != 1) || c.foreign && got.Publish != nil {
			t.Errorf("%s with %s: %v, %v", c.template, arguments, got, err)
		}
		if got, err := (world.Scopes{Owner: "chat", Observe: []world.Template{tpl}}).Resolve(arguments); err != nil || len(got.Observe) != 1 {
			t.Errorf("%s with %s, observed: %v, %v", c.template, arguments, got, err)
		}
	}
}

// Whatever a template and arguments are, what comes out is a legal scope, with as many segments as the template has.
func FuzzR4_5_Resolve(f *testing.F) {
	f.Add("qq:group:{id}", `{"id":"x"}`)
	f.Add("a{b}:{c}", `{"b":1,"c":"\ud83d\ude00"}`)
	f.Fuzz(func(t *testing.T, template, arguments string) {
		tpl, err := world.ParseTemplate(template)
		if err != nil {
			return
		}
		got, err := world.Scopes{Publish: []world.Template{tpl}}.Resolve([]byte(arguments))
		if err != nil {
			return
		}
		s := got.Publish[0]
		if err := world.CheckScope(s); err != nil {
			t.Fatalf("%q with %q: %v", template, arguments, err)
		}
		if strings.Count(string(s), ":") != strings.Count(template, ":") {
			t.Fatalf("%q with %q is %q: another number of segments", template, arguments, s)
		}
	})
}

// R4.3: a provider's own scope.
func TestR4_3_Default(t *testing.T) {
	got, err := world.DefaultScopes("chat.qq").Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = call.Scope("aurora:mcp:chat.qq")
	if len(got.Observe) != 1 || len(got.Publish) != 1 || got.Observe[0] != want || got.Publish[0] != want {
		t.Errorf("got %v", got)
	}
	if err := world.CheckScope(want); err != nil {
		t.Error(err)
	}
	if world.OwnerOf(want) != "chat.qq" || world.OwnerOf("qq:group:1") != "" {
		t.Error("the owner of a scope")
	}
}
