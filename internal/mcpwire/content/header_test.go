package content

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ostiary/ostiary/call"
)

// S-040: the examples of the specification, and what must never reach a header as it is.
func TestS040_HeaderValues(t *testing.T) {
	for in, want := range map[string]string{
		"us-west1":           "us-west1",
		"a b\tc":             "a b\tc",
		"Hello, 世界":          "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":           "=?base64?IHBhZGRlZCA=?=",
		"\tx":                "=?base64?CXg=?=",
		"line1\nline2":       "=?base64?bGluZTEKbGluZTI=?=",
		"a\r\nX-Evil: 1":     "=?base64?YQ0KWC1FdmlsOiAx?=",
		"=?base64?literal?=": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"=?base64?=":         "=?base64?PT9iYXNlNjQ/PQ==?=",
		"=?BASE64?x?=":       "=?BASE64?x?=",
		"=?base64?x":         "=?base64?x",
		"":                   "=?base64??=",
		"\x7f":               "=?base64?fw==?=",
	} {
		if got := EncodeHeaderValue(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if got, err := DecodeHeaderValue(want); err != nil || got != in {
			t.Errorf("%q: decoded to %q, %v", want, got, err)
		}
	}
	for _, bad := range []string{"é", "a\r\nb", "\x00", "=?base64?=", "=?base64?!?=", "=?base64?YQ?=", "=?base64?YR==?=", "=?base64?/w==?=", "=?base64?Y Q==?=", "=?base64?-_8=?="} {
		if got, err := DecodeHeaderValue(bad); err == nil {
			t.Errorf("%q was decoded to %q", bad, got)
		}
	}
}

func FuzzHeaderValue(f *testing.F) {
	for _, s := range []string{"", "a", " a", "=?base64?YQ==?=", "\x00é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if utf8.ValidString(s) {
			enc := EncodeHeaderValue(s)
			if !ValidHeaderValue(enc) || enc != strings.Trim(enc, " \t") || enc == "" {
				t.Fatalf("%q is encoded as %q", s, enc)
			}
			if dec, err := DecodeHeaderValue(enc); err != nil || dec != s {
				t.Fatalf("%q comes back as %q, %v", s, dec, err)
			}
		}
		if dec, err := DecodeHeaderValue(s); err == nil && !utf8.ValidString(dec) {
			t.Fatalf("%q decodes to invalid UTF-8", s)
		}
	})
}

func annotated(inner string) string { return `{"type":"object","properties":{` + inner + `}}` }

// S-042, R1.7: which annotations are legal.
func TestS042_ParamHeaders(t *testing.T) {
	for _, tc := range []struct {
		name, schema, want string // want: "Name=path:type ...", or "!" and a part of the reason
	}{
		{"none", annotated(`"a":{"type":"string"}`), ""},
		{"string", annotated(`"region":{"type":"string","x-mcp-header":"Region"}`), "Region=region:string"},
		{"all types", annotated(`"i":{"type":"integer","x-mcp-header":"I"},"b":{"type":"boolean","x-mcp-header":"B"}`), "I=i:integer B=b:boolean"},
		{"nested", annotated(`"a":{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"AB"}}}`), "AB=a/b:string"},
		{"nullable", annotated(`"a":{"type":["string","null"],"x-mcp-header":"A"},"b":{"type":["null","integer"],"x-mcp-header":"B"}`), "A=a:string B=b:integer"},
		{"nullable sibling", annotated(`"a":{"type":["string","null"]},"c":true,"b":{"type":"string","x-mcp-header":"B"}`), "B=b:string"},
		{"escaped key", annotated(`"a":{"type":"string","x-mcp\u002dheader":"A"}`), "A=a:string"},
		{"a property of that name", annotated(`"x-mcp-header":{"type":"string"}`), ""},
		{"a property of that name, annotated", annotated(`"x-mcp-header":{"type":"string","x-mcp-header":"H"}`), "H=x-mcp-header:string"},
		{"a property named properties", annotated(`"properties":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`), "A=properties/a:string"},
		{"in data", annotated(`"a":{"type":"object","default":{"x-mcp-header":"A"},"const":{"x-mcp-header":""},"enum":[{"x-mcp-header":1}],"examples":[{"x-mcp-header":1}]}`), ""},
		{"token characters", annotated(`"a":{"type":"string","x-mcp-header":"~!#$%&'*+-.^_` + "`" + `|~09Az"}`), "~!#$%&'*+-.^_`|~09Az=a:string"},

		{"empty", annotated(`"a":{"type":"string","x-mcp-header":""}`), "!empty"},
		{"not a string", annotated(`"a":{"type":"string","x-mcp-header":5}`), "!no string"},
		{"null", annotated(`"a":{"type":"string","x-mcp-header":null}`), "!no string"},
		{"blank", annotated(`"a":{"type":"string","x-mcp-header":"My Region"}`), "!token"},
		{"colon", annotated(`"a":{"type":"string","x-mcp-header":"Region:x"}`), "!token"},
		{"non-ASCII", annotated(`"a":{"type":"string","x-mcp-header":"Región"}`), "!token"},
		{"line break", annotated(`"a":{"type":"string","x-mcp-header":"A\r\nX-Evil: 1"}`), "!token"},
		{"control", annotated(`"a":{"type":"string","x-mcp-header":"A\u0001"}`), "!token"},
		{"long", annotated(`"a":{"type":"string","x-mcp-header":"` + strings.Repeat("A", 129) + `"}`), "!longer"},
		{"twice", annotated(`"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}`), "!twice"},
		{"number", annotated(`"a":{"type":"number","x-mcp-header":"A"}`), "!no integer"},
		{"object", annotated(`"a":{"type":"object","x-mcp-header":"A"}`), "!no integer"},
		{"array", annotated(`"a":{"type":"array","x-mcp-header":"A"}`), "!no integer"},
		{"null type", annotated(`"a":{"type":"null","x-mcp-header":"A"}`), "!no integer"},
		{"no type", annotated(`"a":{"x-mcp-header":"A"}`), "!no type"},
		{"two types", annotated(`"a":{"type":["string","integer"],"x-mcp-header":"A"}`), "!no integer"},
		{"nullable number", annotated(`"a":{"type":["number","null"],"x-mcp-header":"A"}`), "!no integer"},
		{"empty type list", annotated(`"a":{"type":[],"x-mcp-header":"A"}`), "!no integer"},
		{"root", `{"type":"string","x-mcp-header":"A"}`, "!reachable"},
		{"items", annotated(`"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`), "!reachable"},
		{"prefixItems", annotated(`"a":{"prefixItems":[{"type":"string","x-mcp-header":"A"}]}`), "!reachable"},
		{"properties under items", annotated(`"a":{"items":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}`), "!reachable"},
		{"additionalProperties", `{"additionalProperties":{"type":"string","x-mcp-header":"A"}}`, "!reachable"},
		{"patternProperties", `{"patternProperties":{"^a":{"type":"string","x-mcp-header":"A"}}}`, "!reachable"},
		{"$defs", `{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}`, "!reachable"},
		{"a definition named properties", `{"$defs":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, "!reachable"},
		{"an unknown keyword", annotated(`"a":{"x-other":{"x-mcp-header":"A"}}`), "!reachable"},
		{"properties as a list", `{"properties":[{"type":"string","x-mcp-header":"A"}]}`, "!reachable"},
		{"dependentSchemas", `{"dependentSchemas":{"a":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}}`, "!reachable"},
		{"too deep", strings.Repeat(`{"properties":{"a":`, 150) + `{"type":"string","x-mcp-header":"A"}` + strings.Repeat("}}", 150), "!deeper"},
		{"too many", annotated(func() string {
			var p []string
			for i := range 200 {
				p = append(p, fmt.Sprintf(`"p%d":{"type":"string","x-mcp-header":"P%d"}`, i, i))
			}
			return strings.Join(p, ",")
		}()), "!more than"},
	} {
		t.Run(tc.name, func(t *testing.T) { checkParamHeaders(t, tc.schema, tc.want) })
	}
	for _, keyword := range []string{"oneOf", "anyOf", "allOf"} {
		t.Run(keyword, func(t *testing.T) {
			checkParamHeaders(t, annotated(`"a":{"`+keyword+`":[{"type":"string","x-mcp-header":"A"}]}`), "!reachable")
		})
	}
	for _, keyword := range []string{"not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "contentSchema"} {
		t.Run(keyword, func(t *testing.T) {
			checkParamHeaders(t, `{"`+keyword+`":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, "!reachable")
		})
	}
}

func checkParamHeaders(t *testing.T, schema, want string) {
	t.Helper()
	found, err := ParamHeaders([]byte(schema))
	if reason, bad := strings.CutPrefix(want, "!"); bad {
		if err == nil || !strings.Contains(err.Error(), reason) || strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("got %v, %v, want a reason with %q", found, err, reason)
		}
		return
	}
	var got []string
	for _, h := range found {
		got = append(got, h.Name+"="+strings.Join(h.Path, "/")+":"+h.Type)
	}
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

var mirrorParams = []call.ParamHeader{
	{Name: "Region", Path: []string{"region"}, Type: "string"},
	{Name: "count", Path: []string{"n"}, Type: "integer"},
	{Name: "Dry", Path: []string{"opts", "dry"}, Type: "boolean"},
}

// S-041, R1.7: what is mirrored and what is left out.
func TestS041_MirrorHeaders(t *testing.T) {
	for _, tc := range []struct{ name, args, want string }{
		{"all", `{"region":"us-west1","n":42,"opts":{"dry":true}}`, "Region: us-west1, Count: 42, Dry: true"},
		{"none", ``, ""},
		{"absent", `{}`, ""},
		{"null", `{"region":null,"n":null,"opts":null}`, ""},
		{"nested null", `{"opts":{"dry":null}}`, ""},
		{"path through a string", `{"opts":"dry"}`, ""},
		{"zero and false", `{"region":"","n":0,"opts":{"dry":false}}`, "Region: =?base64??=, Count: 0, Dry: false"},
		{"unicode", `{"region":"世"}`, "Region: =?base64?5LiW?="},
		{"injection", `{"region":"a\r\nX-Evil: 1"}`, "Region: =?base64?YQ0KWC1FdmlsOiAx?="},
		{"escaped text", `{"region":"\u0061\/"}`, "Region: a/"},
		{"negative", `{"n":-7}`, "Count: -7"},
		{"integer by value", `{"n":42.0}`, "Count: 42"},
		{"integer by exponent", `{"n":4.2e1}`, "Count: 42"},
		{"minus zero", `{"n":-0.0}`, "Count: 0"},
		{"largest", `{"n":9007199254740991}`, "Count: 9007199254740991"},
		{"smallest", `{"n":-9007199254740991}`, "Count: -9007199254740991"},
		{"beyond", `{"n":9007199254740992}`, "!"},
		{"far beyond", `{"n":1e999999999}`, "!"},
		{"exponent without bound", `{"n":1e99999999999999999999}`, "!"},
		{"fraction", `{"n":1.5}`, "!"},
		{"tiny", `{"n":1e-999999}`, "!"},
		{"object", `{"n":{}}`, "!"},
		{"list", `{"region":["a"]}`, "!"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := http.Header{}
			err := MirrorHeaders(h, mirrorParams, []byte(tc.args))
			if tc.want == "!" {
				if err == nil {
					t.Errorf("got %v", h)
				}
				return
			}
			var got []string
			for _, n := range []string{"Region", "Count", "Dry"} {
				if v, ok := h["Mcp-Param-"+n]; ok {
					got = append(got, n+": "+strings.Join(v, "|"))
				}
			}
			if err != nil || strings.Join(got, ", ") != tc.want || len(h) != len(got) {
				t.Errorf("got %q (%v), %v, want %q", got, h, err, tc.want)
			}
			if err := CheckMirrored(h, mirrorParams, []byte(tc.args)); err != nil {
				t.Errorf("what we mirror we would refuse: %v", err)
			}
		})
	}
}

// S-044: header and argument must say the same.
func TestS044_CheckMirrored(t *testing.T) {
	for _, tc := range []struct {
		name, args string
		header     http.Header
		ok         bool
	}{
		{"equal", `{"region":"a","n":42}`, http.Header{"Mcp-Param-Region": {"a"}, "Mcp-Param-Count": {"42"}}, true},
		{"numerically equal", `{"n":42}`, http.Header{"Mcp-Param-Count": {"42.0"}}, true},
		{"numerically equal the other way", `{"n":42.0}`, http.Header{"Mcp-Param-Count": {"42"}}, true},
		{"encoded", `{"region":"世"}`, http.Header{"Mcp-Param-Region": {"=?base64?5LiW?="}}, true},
		{"encoded without need", `{"region":"a"}`, http.Header{"Mcp-Param-Region": {"=?base64?YQ==?="}}, true},
		{"encoded number", `{"n":42}`, http.Header{"Mcp-Param-Count": {"=?base64?NDI=?="}}, true},
		{"empty", `{"region":""}`, http.Header{"Mcp-Param-Region": {""}}, true},
		{"unknown header", `{}`, http.Header{"Mcp-Param-Other": {"x"}}, true},
		{"different", `{"region":"a"}`, http.Header{"Mcp-Param-Region": {"b"}}, false},
		{"another case", `{"region":"a"}`, http.Header{"Mcp-Param-Region": {"A"}}, false},
		{"missing", `{"region":"a"}`, http.Header{}, false},
		{"without an argument", `{}`, http.Header{"Mcp-Param-Region": {"a"}}, false},
		{"with a null argument", `{"region":null}`, http.Header{"Mcp-Param-Region": {"null"}}, false},
		{"twice", `{"region":"a"}`, http.Header{"Mcp-Param-Region": {"a", "a"}}, false},
		{"bad encoding", `{"region":"a"}`, http.Header{"Mcp-Param-Region": {"=?base64?YQ?="}}, false},
		{"bad characters", `{"region":"é"}`, http.Header{"Mcp-Param-Region": {"é"}}, false},
		{"no number", `{"n":42}`, http.Header{"Mcp-Param-Count": {"forty-two"}}, false},
		{"hexadecimal", `{"n":42}`, http.Header{"Mcp-Param-Count": {"0x2a"}}, false},
		{"text is no number", `{"region":"42"}`, http.Header{"Mcp-Param-Region": {"42.0"}}, false},
		{"beyond 2^53", `{"n":9007199254740993}`, http.Header{"Mcp-Param-Count": {"9007199254740993"}}, false},
		{"boolean", `{"opts":{"dry":true}}`, http.Header{"Mcp-Param-Dry": {"true"}}, true},
		{"boolean as text", `{"opts":{"dry":true}}`, http.Header{"Mcp-Param-Dry": {"True"}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := CheckMirrored(tc.header, mirrorParams, []byte(tc.args)); (err == nil) != tc.ok {
				t.Errorf("got %v, want ok %v", err, tc.ok)
			}
		})
	}
}

// Whatever stands in a schema, an annotation that is accepted is reached through properties alone; and what is mirrored for
// it is one safe line that the other side finds equal.
func FuzzParamHeaders(f *testing.F) {
	f.Add([]byte(annotated(`"a":{"type":"string","x-mcp-header":"A"}`)), []byte(`{"a":"x\n"}`))
	f.Add([]byte(annotated(`"a":{"type":"object","properties":{"b":{"type":"integer","x-mcp-header":"A"}}}`)), []byte(`{"a":{"b":1e3}}`))
	f.Add([]byte(annotated(`"a":{"anyOf":[{"type":"string","x-mcp-header":"A"}]}`)), []byte(`{}`))
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		found, err := ParamHeaders(schema)
		if CheckValue(schema, FrameLimits{}) != nil || err != nil {
			return
		}
		for _, h := range found {
			at := schema
			for _, key := range h.Path {
				if at = Member(Member(at, "properties"), key); at == nil {
					t.Fatalf("%s: %q is not reached through properties", schema, h.Path)
				}
			}
			if name, _ := String(Member(at, annotation)); name != h.Name || !IsToken(name) {
				t.Fatalf("%s: %q is not what stands there", schema, h.Name)
			}
		}
		if CheckValue(args, FrameLimits{}) != nil {
			return
		}
		header := http.Header{}
		if MirrorHeaders(header, found, args) != nil {
			return
		}
		for _, v := range header {
			if len(v) != 1 || !ValidHeaderValue(v[0]) {
				t.Fatalf("unsafe header %q", v)
			}
		}
		if err := CheckMirrored(header, found, args); err != nil {
			t.Fatalf("what we mirror we would refuse: %v", err)
		}
	})
}
