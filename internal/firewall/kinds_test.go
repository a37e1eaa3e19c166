package firewall

import (
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
)

// R3.7: only the content kinds that a profile admits are let in; without a list every kind is.
func TestR3_7_ContentKinds(t *testing.T) {
	e := engine(t)
	for name, c := range map[string]struct {
		result   string
		admitted []string
		ok       bool
	}{
		"no policy":      {`{"content":[{"type":"hologram"}]}`, nil, true},
		"admitted":       {`{"content":[{"type":"text","text":"a"},{"text":"b","type":"text"}]}`, []string{"text"}, true},
		"not admitted":   {`{"content":[{"type":"text","text":"a"},{"type":"image","data":""}]}`, []string{"text"}, false},
		"nothing":        {`{"structuredContent":{"content":[{"type":"image"}]}}`, []string{"text"}, true},
		"no type":        {`{"content":[{"text":"a"}]}`, []string{"text"}, false},
		"not a block":    {`{"content":["text"]}`, []string{"text"}, false},
		"not an object":  {`[]`, []string{"text"}, false},
		"none admitted":  {`{"content":[{"type":"text"}]}`, []string{}, false},
		"nested is data": {`{"content":[{"type":"text","x":{"type":"image"}}]}`, []string{"text"}, true},
	} {
		if v := e.ScreenResult(t.Context(), []byte(c.result), Rules{Content: c.admitted}, nil); v.Withheld() == c.ok {
			t.Errorf("%s: %s %v, want admitted = %v", name, v.Kind, v.Reasons, c.ok)
		}
	}
}

// Whatever a result holds, a block of a kind that is not admitted is never let in.
func FuzzContentKinds(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text"},{"type":"image"}]}`))
	f.Add([]byte(`{"content":[{"type":"te\u0078t"}]}`))
	f.Add([]byte(`{"content":[{"type":"text"}],"content":[{"type":"image"}]}`))
	e, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		v := e.ScreenResult(t.Context(), result, Rules{Content: []string{"text"}}, nil)
		if v.Withheld() {
			return
		}
		var r struct {
			Content []struct {
				Type string `json:"type"`
			} `json:"content"`
		}
		if err := jsonv2.Unmarshal(result, &r); err != nil {
			t.Fatalf("%q is let in: %v", result, err)
		}
		for _, b := range r.Content {
			if b.Type != "text" {
				t.Fatalf("%q is let in with a block of kind %q", result, b.Type)
			}
		}
	})
}
