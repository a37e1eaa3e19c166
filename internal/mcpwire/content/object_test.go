package content

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// readMembers reads an object with the strict parser, as the reference for the scanner.
func readMembers(t *testing.T, obj []byte) (keys []string, values [][]byte) {
	t.Helper()
	d := jsontext.NewDecoder(bytes.NewBuffer(obj))
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != jsontext.KindBeginObject {
		t.Fatalf("%q is no object: %v", obj, err)
	}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, name.String())
		v, err := d.ReadValue()
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, bytes.Clone(v))
	}
	return keys, values
}

func TestReplaceMember(t *testing.T) {
	for _, tc := range []struct{ name, obj, key, value, want string }{
		{"in its place", `{ "a" : 1 , "b": 2 }`, "a", `[3]`, `{ "a" : [3] , "b": 2 }`},
		{"by its decoded key", `{"\u0061":1}`, "a", `2`, `{"\u0061":2}`},
		{"at the end", `{"a":1 }`, "b", `2`, `{"a":1 ,"b":2}`},
		{"into nothing", `{ }`, "b", `2`, `{ "b":2}`},
		{"take the first", `{ "a" : 1 , "b":2}`, "a", "", `{  "b":2}`},
		{"take the middle", `{"a":1 ,"b":2, "c":3}`, "b", "", `{"a":1, "c":3}`},
		{"take the last", `{"a":1, "b":2 }`, "b", "", `{"a":1 }`},
		{"take the only", `{ "a":1 }`, "a", "", `{ }`},
		{"take what is not there", `{"a":1}`, "b", "", `{"a":1}`},
		{"not in a nested object", `{"x":{"a":1}}`, "a", `2`, `{"x":{"a":1},"a":2}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var value []byte
			if tc.value != "" {
				value = []byte(tc.value)
			}
			if got := ReplaceMember([]byte("<"), []byte(tc.obj), tc.key, value); string(got) != "<"+tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestObject(t *testing.T) {
	got := NewObject([]byte("x")).String("a\n", "\"").Raw("b", []byte("[1]")).Bool("c", true).Bool("d", false).End()
	if want := `x{"a\n":"\"","b":[1],"c":true,"d":false}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := NewObject(nil).End(); string(got) != "{}" {
		t.Errorf("got %s", got)
	}
}

// On checked JSON the scanner sees what the parser sees, and on anything else it stays inside the bytes.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":{"c":[1,"}",{}]},"d":"\\\"","\u0065":null}`, `{ }`, `{"a"`, `{"a":}`, `{"a\`, `[`, `{"a":"\`, "{\"\":-0.1e5 \n}"} {
		f.Add([]byte(s), "a", []byte("2"))
	}
	f.Fuzz(func(t *testing.T, b []byte, key string, value []byte) {
		var keys []string
		var values [][]byte
		for k, v := range Members(b) {
			keys, values = append(keys, k), append(values, v)
			for range Elements(v) {
			}
			String(v)
		}
		replaced := ReplaceMember(nil, b, key, value)
		removed := ReplaceMember(nil, b, key, nil)
		if CheckValue(b, FrameLimits{}) != nil || kind(b) != '{' {
			return
		}
		wantKeys, wantValues := readMembers(t, b)
		if !slices.Equal(keys, wantKeys) || !slices.EqualFunc(values, wantValues, bytes.Equal) {
			t.Fatalf("%q: got %q %q, want %q %q", b, keys, values, wantKeys, wantValues)
		}
		if CheckValue(value, FrameLimits{Depth: 100}) != nil || !bytes.Equal([]byte(key), bytes.ToValidUTF8([]byte(key), nil)) {
			return
		}
		want := map[string]string{}
		for i, k := range wantKeys {
			want[k] = string(wantValues[i])
		}
		delete(want, key)
		checkMembers(t, removed, want)
		want[key] = string(bytes.TrimSpace(value))
		checkMembers(t, replaced, want)
	})
}

func checkMembers(t *testing.T, obj []byte, want map[string]string) {
	t.Helper()
	if err := CheckValue(obj, FrameLimits{Size: 1 << 40, Depth: 2 * DefaultDepth}); err != nil {
		t.Fatalf("%q: %v", obj, err)
	}
	got := map[string]string{}
	for k, v := range Members(obj) {
		got[k] = string(v)
	}
	if !maps.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}
