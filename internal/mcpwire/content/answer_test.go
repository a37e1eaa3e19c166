package content

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/call"
)

// S-002, S-003, S-055, R3.4, R3.8: what a result is, and what is none.
func TestS002_CallAnswer(t *testing.T) {
	for _, tc := range []struct {
		name, result   string
		legacy, modern string // result type, or "!" for result_invalid
		isError        bool
	}{
		{name: "no type is complete", result: `{"content":[]}`, legacy: "complete", modern: "complete"},
		{name: "complete", result: `{"resultType":"complete","content":[{"type":"text","text":""}]}`, legacy: "complete", modern: "complete"},
		{name: "no content", result: `{}`, legacy: "complete", modern: "complete"},
		{name: "null structured content", result: `{"content":[],"structuredContent":null}`, legacy: "complete", modern: "complete"},
		{name: "unknown content kind", result: `{"content":[{"type":"hologram","x":1}]}`, legacy: "complete", modern: "complete"},
		{name: "tool error", result: `{"content":[],"isError":true}`, legacy: "complete", modern: "complete", isError: true},
		{name: "no tool error", result: `{"isError":false}`, legacy: "complete", modern: "complete"},
		{name: "input required with requests", result: `{"resultType":"input_required","inputRequests":{"a":{}}}`, legacy: "!", modern: "input_required"},
		{name: "input required with state", result: `{"resultType":"input_required","requestState":"x"}`, legacy: "!", modern: "input_required"},
		{name: "input required with both", result: `{"resultType":"input_required","inputRequests":{},"requestState":""}`, legacy: "!", modern: "input_required"},
		{name: "input required with nothing", result: `{"resultType":"input_required"}`, legacy: "!", modern: "!"},
		{name: "input required with no request", result: `{"resultType":"input_required","inputRequests":{}}`, legacy: "!", modern: "!"},
		{name: "input requests as a list", result: `{"resultType":"input_required","inputRequests":[],"requestState":"x"}`, legacy: "!", modern: "!"},
		{name: "state as an object", result: `{"resultType":"input_required","inputRequests":{"a":1},"requestState":{}}`, legacy: "!", modern: "!"},
		{name: "null state", result: `{"resultType":"input_required","requestState":null}`, legacy: "!", modern: "!"},
		{name: "unknown type", result: `{"resultType":"evil","content":[]}`, legacy: "!", modern: "!"},
		{name: "type in another case", result: `{"resultType":"Complete"}`, legacy: "!", modern: "!"},
		{name: "type is no string", result: `{"resultType":null}`, legacy: "!", modern: "!"},
		{name: "task type", result: `{"resultType":"task","taskId":"t"}`, legacy: "!", modern: "!"},
		{name: "task handle", result: `{"task":{"taskId":"t","status":"working"}}`, legacy: "!", modern: "!"},
		{name: "a field named task", result: `{"task":"water the plants","content":[]}`, legacy: "complete", modern: "complete"},
		{name: "isError as text", result: `{"isError":"true"}`, legacy: "!", modern: "!"},
		{name: "isError as null", result: `{"isError":null}`, legacy: "!", modern: "!"},
		{name: "isError as number", result: `{"isError":1}`, legacy: "!", modern: "!"},
		{name: "content as an object", result: `{"content":{}}`, legacy: "!", modern: "!"},
		{name: "content as null", result: `{"content":null}`, legacy: "!", modern: "!"},
		{name: "block without a type", result: `{"content":[{"text":"x"}]}`, legacy: "!", modern: "!"},
		{name: "block with a number as type", result: `{"content":[{"type":"text"},{"type":1}]}`, legacy: "!", modern: "!"},
		{name: "block is a string", result: `{"content":["x"]}`, legacy: "!", modern: "!"},
		{name: "meta is a list", result: `{"_meta":[]}`, legacy: "!", modern: "!"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for modern, want := range map[bool]string{false: tc.legacy, true: tc.modern} {
				a := CallAnswer([]byte(tc.result), nil, modern)
				if a.Delivery != call.Confirmed {
					t.Errorf("modern %v: delivery %v", modern, a.Delivery)
				}
				if want == "!" {
					if a.Fault != call.CodeResultInvalid || a.Result != nil || a.Detail == "" {
						t.Errorf("modern %v: got %+v, want result_invalid", modern, a)
					}
					continue
				}
				if a.Fault != "" || a.ResultType != want || a.IsError != tc.isError || string(a.Result) != tc.result {
					t.Errorf("modern %v: got %+v, want type %q", modern, a, want)
				}
			}
		})
	}
	e := &call.ProviderError{Code: -32602}
	if a := CallAnswer(nil, e, true); a.Error != e || a.Delivery != call.Confirmed || a.Fault != "" {
		t.Errorf("got %+v", a)
	}
}

var testOutcome = call.Outcome{Status: call.Failed, Delivery: call.Confirmed, Code: call.CodeToolError, CallID: "c1", Message: "It \"failed\"."}

func TestWithOutcome(t *testing.T) {
	o := string(OutcomeJSON(testOutcome))
	for _, tc := range []struct {
		name, in, want string
		modern         bool
	}{
		{name: "no meta", in: `{ "content":[ ], "x":9007199254740993 }`, want: `{ "content":[ ], "x":9007199254740993 ,"_meta":{"org.ostiary/outcome":` + o + `}}`},
		{name: "empty", in: `{}`, want: `{"_meta":{"org.ostiary/outcome":` + o + `}}`},
		{name: "own meta", in: `{"_meta":{ "a" : 1 },"content":[]}`, want: `{"_meta":{ "a" : 1 ,"org.ostiary/outcome":` + o + `},"content":[]}`},
		{name: "forged outcome", in: `{"_meta":{"org.ostiary/outcome":{"status":"succeeded"},"a":1}}`, want: `{"_meta":{"a":1,"org.ostiary/outcome":` + o + `}}`},
		{name: "forged keys of ours", in: `{"_meta":{"org.ostiary/frontier":{"a":9},"a":1 , "ORG.Ostiary/missed":[],"org.ostiary/else":{}}}`,
			want: `{"_meta":{"a":1,"org.ostiary/outcome":` + o + `}}`},
		{name: "meta is no object", in: `{"_meta":null}`, want: `{"_meta":{"org.ostiary/outcome":` + o + `}}`},
		{name: "type is added", in: `{"content":[]}`, modern: true, want: `{"content":[],"resultType":"complete","_meta":{"org.ostiary/outcome":` + o + `}}`},
		{name: "type is kept", in: `{"resultType":"complete"}`, modern: true, want: `{"resultType":"complete","_meta":{"org.ostiary/outcome":` + o + `}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := WithOutcome(nil, &call.Reply{Result: []byte(tc.in), Outcome: testOutcome}, tc.modern); string(got) != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// R8.2: a result says where it comes from, in our words alone: a provider's own are dropped, whether or not we have any.
func TestR8_2_Provenance(t *testing.T) {
	p := call.Provenance{Provider: "files", Tool: "aur.mcp.files.read", CallID: "c1", Revision: "2026-07-28", Verdict: "ACCEPTED_OBSERVATION"}
	for in, rest := range map[string]string{
		`{"content":[]}`: "", `{"_meta":{"a":1}}`: `"a":1,`, `{"_meta":{"org.ostiary/provenance":{"verdict":"PERFECT"},"a":1}}`: `"a":1,`,
	} {
		got := WithOutcome(nil, &call.Reply{Result: []byte(in), Outcome: testOutcome, Provenance: p}, true)
		if err := CheckValue(got, FrameLimits{}); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		said := Member(Member(got, "_meta"), keyProvenance)
		if v, _ := String(Member(said, "verdict")); v != p.Verdict || bytes.Contains(got, []byte("PERFECT")) || !bytes.Contains(got, []byte(strings.TrimSuffix(rest, ","))) {
			t.Errorf("%s gave %s", in, got)
		}
		if none := WithOutcome(nil, &call.Reply{Result: []byte(in), Outcome: testOutcome}, true); bytes.Contains(none, []byte(keyProvenance)) {
			t.Errorf("without one: %s", none)
		}
	}
}

func TestRefusalResult(t *testing.T) {
	got := RefusalResult(&call.Reply{Outcome: testOutcome}, true)
	if err := CheckValue(got, FrameLimits{}); err != nil {
		t.Fatal(err)
	}
	a := CallAnswer(got, nil, true)
	text, err := NormalizedText(got)
	if !a.IsError || a.ResultType != "complete" || err != nil || text != testOutcome.Message {
		t.Errorf("got %s: %+v, %q", got, a, text)
	}
	if !bytes.Equal(Member(Member(got, "_meta"), KeyOutcome), OutcomeJSON(testOutcome)) {
		t.Errorf("got %s", got)
	}
	if bytes.Contains(RefusalResult(&call.Reply{Outcome: testOutcome}, false), []byte("resultType")) {
		t.Error("a result type in the handshake era")
	}
	if text, _ := NormalizedText(RefusalResult(&call.Reply{Outcome: call.Outcome{Code: call.CodeDenied}}, false)); text == "" {
		t.Error("no words")
	}
}

// R3.6: structured content in one deterministic form, integers exact, else the text.
func TestR3_6_NormalizedText(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"object", `{"structuredContent":{ "b":1.0, "a":[ 9007199254740993 , 1e400 ] },"content":[{"type":"text","text":"x"}]}`, `{"a":[9007199254740993,1e400],"b":1.0}`},
		{"array", `{"structuredContent":[2, 1]}`, `[2,1]`},
		{"string", `{"structuredContent":"\u0041\/"}`, `"A/"`},
		{"zero", `{"structuredContent":0}`, `0`},
		{"false", `{"structuredContent":false}`, `false`},
		{"null", `{"structuredContent":null,"content":[{"type":"text","text":"x"}]}`, `null`},
		{"texts", `{"content":[{"type":"text","text":"a"},{"type":"image","data":"AAAA"},{"text":"b\u000a","type":"text"}]}`, "a\nb\n"},
		{"no text", `{"content":[]}`, ""},
		{"nothing", `{}`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := NormalizedText([]byte(tc.in)); err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
	if _, err := NormalizedText([]byte(`{"content":[{"type":"text","text":5}]}`)); err == nil {
		t.Error("a text block without text has no text")
	}
	kinds := ContentKinds([]byte(`{"content":[{"type":"text"},{"type":"image"},{"type":"text"},{"type":"hologram"}]}`))
	if strings.Join(kinds, ",") != "text,image,hologram" {
		t.Errorf("got %q", kinds)
	}
}

// Whatever a provider says, the outcome is ours, and every other member stays as it was.
func FuzzWithOutcome(f *testing.F) {
	for _, s := range []string{`{"content":[],"_meta":{"a":1,"org.ostiary/outcome":5}}`, `{ }`, `{"_meta":[1],"x":{"_meta":2}}`, `{"_m\u0065ta":{"org.ostiary\/outcome":1}}`} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, modern bool) {
		a := CallAnswer(b, nil, modern)
		got := WithOutcome(nil, &call.Reply{Result: b, Outcome: testOutcome}, modern)
		_, _ = NormalizedText(b)
		ContentKinds(b)
		if CheckValue(b, FrameLimits{Depth: DefaultDepth - 2}) != nil || kind(b) != '{' {
			return
		}
		want, meta := map[string]string{}, map[string]string{}
		for k, v := range Members(b) {
			want[k] = string(v)
		}
		for k, v := range Members([]byte(want["_meta"])) {
			if !strings.HasPrefix(strings.ToLower(k), ownPrefix) {
				meta[k] = string(v)
			}
		}
		meta[KeyOutcome] = string(OutcomeJSON(testOutcome))
		gotMeta := Member(got, "_meta")
		checkMembers(t, gotMeta, meta)
		want["_meta"] = string(gotMeta)
		if _, ok := want["resultType"]; !ok && modern {
			want["resultType"] = `"complete"`
		}
		checkMembers(t, got, want)
		if a.Fault == "" && !bytes.Equal(a.Result, b) {
			t.Fatal("the answer is not the result")
		}
	})
}

// What was missed is told though a part of it cannot be written as JSON.
func TestR5_6_MissedThatIsNoJSON(t *testing.T) {
	missed := []call.Commit{{Scope: "s", Seq: 1, ID: "a", Kind: "k", Summary: "x", Data: []byte(`{"broken"`)}, {Scope: "s", Seq: 2, ID: "b", Kind: "k", Summary: "y", CallID: "c"}}
	got := RefusalResult(&call.Reply{Outcome: testOutcome, Missed: missed}, true)
	if err := CheckValue(got, FrameLimits{}); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	said := Member(Member(got, "_meta"), keyMissed)
	if n := bytes.Count(said, []byte(`"summary"`)); n != 2 || bytes.Contains(said, []byte("broken")) || !bytes.Contains(said, []byte(`"call":"c"`)) {
		t.Errorf("got %s", said)
	}
}
