package jsonscan

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMembersHandsOutRawValues(t *testing.T) {
	in := ` {"a" : "x\"}\\" , "b":[1,{"c":"]"}],"d":-1.5e3,"e":null,"f":{}} ` + "\n"
	got := map[string]string{}
	if err := Members([]byte(in), func(k, v []byte) { got[string(k)] = string(v) }); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": `"x\"}\\"`, "b": `[1,{"c":"]"}]`, "d": "-1.5e3", "e": "null", "f": "{}"}
	for k, w := range want {
		if got[k] != w {
			t.Errorf("%s = %s, want %s", k, got[k], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d members, want %d", len(got), len(want))
	}
}

func TestElements(t *testing.T) {
	var got []string
	if err := Elements([]byte(`[ "a,]" , 2,[3]]`), func(v []byte) { got = append(got, string(v)) }); err != nil {
		t.Fatal(err)
	}
	if s := strings.Join(got, "|"); s != `"a,]"|2|[3]` {
		t.Errorf("got %s", s)
	}
}

func TestMalformedIsRefused(t *testing.T) {
	for _, in := range []string{``, `{`, `{"a"}`, `{"a":}`, `{"a":1`, `{"a":1,}`, `{"a":1}x`, `{"a":"b`, `{"a":"b\"}`, `[1]`, `{a:1}`, `{"a":[1}`} {
		if err := Members([]byte(in), func(_, _ []byte) {}); err == nil {
			t.Errorf("Members(%q) passed", in)
		}
	}
}

// Whatever encoding/json accepts as an object, Members walks with the same
// names and values.
func FuzzMembers(f *testing.F) {
	f.Add(`{"a":"\\\"","b":[{}],"c":{"d":"}"}}`)
	f.Add(`{"":0,"é":"\u0000"}`)
	f.Fuzz(func(t *testing.T, in string) {
		got := map[string]string{}
		escaped := false
		err := Members([]byte(in), func(k, v []byte) {
			escaped = escaped || strings.ContainsAny(string(k), `\`) || !utf8.Valid(k) || !json.Valid([]byte(`"`+string(k)+`"`))
			got[string(k)] = string(v)
		})
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(in), &want) != nil || want == nil || strings.ToValidUTF8(in, "") != in {
			return
		}
		if err != nil {
			t.Fatalf("refused valid %q", in)
		}
		if escaped {
			return
		}
		if len(got) != len(want) {
			t.Fatalf("%q: %d members, want %d", in, len(got), len(want))
		}
		for k, w := range want {
			if got[k] != string(w) {
				t.Fatalf("%q: %q = %s, want %s", in, k, got[k], w)
			}
		}
	})
}
