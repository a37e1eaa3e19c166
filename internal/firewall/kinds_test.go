package firewall

import (
	"slices"
	"testing"
)

func TestR3_7_CheckKinds(t *testing.T) {
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
		if err := CheckKinds([]byte(c.result), c.admitted); (err == nil) != c.ok {
			t.Errorf("%s: %v, want admitted = %v", name, err, c.ok)
		}
	}
}

// Whatever a result holds, a kind that is not admitted is never let through, and reading never panics.
func FuzzKinds(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text"},{"type":"image"}]}`))
	f.Add([]byte(`{"content":[{"type":"te\u0078t"}],"content":[]}`))
	f.Fuzz(func(t *testing.T, result []byte) {
		kinds, err := Kinds(result)
		if CheckKinds(result, []string{"text"}) == nil && (err != nil || slices.ContainsFunc(kinds, func(k string) bool { return k != "text" })) {
			t.Fatalf("%q admitted with kinds %q, %v", result, kinds, err)
		}
	})
}
