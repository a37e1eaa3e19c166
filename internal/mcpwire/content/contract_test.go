package content

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
)

// R4.6: strictly {"status": "unknown"} and nothing else is the tool's word; anything else in its place cannot be understood.
func TestR4_6_ContractCode(t *testing.T) {
	for _, c := range []struct {
		meta string
		want call.Code
	}{
		{``, ""},
		{`{}`, ""},
		{`{"other":{"status":"unknown"}}`, ""},
		{`{"org.aurorabot/tool-contract":{"status":"unknown"}}`, call.CodeContractUnknown},
		{`{"org.aurorabot/tool-contract":{ "status" : "unknown" },"a":1}`, call.CodeContractUnknown},
		{`{"org.aurorabot/tool-contract":{"status":"unk\u006eown"}}`, call.CodeContractUnknown},
		{`{"org.aurorabot\/tool-contract":{"status":"unknown"}}`, call.CodeContractUnknown},
		{`{"org.aurorabot/tool-contract":null}`, call.CodeContractInvalid},
		{`{"org.aurorabot/tool-contract":{}}`, call.CodeContractInvalid},
		{`{"org.aurorabot/tool-contract":[]}`, call.CodeContractInvalid},
		{`{"org.aurorabot/tool-contract":"unknown"}`, call.CodeContractInvalid},
		{`{"org.aurorabot/tool-contract":{"status":"Unknown"}}`, call.CodeContractInvalid},
		{`{"org.aurorabot/tool-contract":{"status":"succeeded"}}`, call.CodeContractInvalid},
		{`{"org.aurorabot/tool-contract":{"status":["unknown"]}}`, call.CodeContractInvalid},
		{`{"org.aurorabot/tool-contract":{"status":true}}`, call.CodeContractInvalid},
		{`{"org.aurorabot/tool-contract":{"Status":"unknown"}}`, call.CodeContractInvalid},
		{`{"org.aurorabot/tool-contract":{"status":"unknown","reason":"x"}}`, call.CodeContractInvalid},
		{`{"org.aurorabot/tool-contract":{"reason":"x","status":"unknown"}}`, call.CodeContractInvalid},
	} {
		result := `{"content":[]}`
		if c.meta != "" {
			result = `{"content":[],"_meta":` + c.meta + `}`
		}
		if got := ContractCode([]byte(result)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.meta, got, c.want)
		}
	}
}

// Whatever a result is, contract_unknown is said of those alone whose metadata has the canonical form {"status":"unknown"},
// and of a result without that key nothing is said.
func FuzzR4_6_ContractCode(f *testing.F) {
	f.Add([]byte(`{"_meta":{"org.aurorabot/tool-contract":{"status":"unknown"}}}`))
	f.Add([]byte(`{"_meta":{"org.aurorabot/tool-contract":{"status":"unknown","x":[{"status":"unknown"}]}}}`))
	f.Add([]byte(`{"_meta":[],"org.aurorabot/tool-contract":1}`))
	f.Add([]byte(`{"_m\u0065ta":{"org.aurorabot\/tool-contract":{"st\u0061tus":"unknown"}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := ContractCode(b)
		if CheckValue(b, FrameLimits{}) != nil || kind(b) != '{' {
			return // never parsed strictly, so never asked: it only must not panic
		}
		said := jsontext.Value(strings.Clone(string(Member(Member(b, "_meta"), ToolContract))))
		want := call.Code("")
		if len(said) > 0 {
			if err := said.Canonicalize(); err != nil {
				t.Fatal(err)
			}
			if want = call.CodeContractInvalid; string(said) == `{"status":"unknown"}` {
				want = call.CodeContractUnknown
			}
		}
		if got != want {
			t.Fatalf("%q: got %q, want %q", b, got, want)
		}
	})
}

// R3.6, R4.6: the provider's words on a call of which it does not know what it did come after ours, as an error, and nothing
// of its result is left that could be taken for one.
func TestR4_6_UnknownResult(t *testing.T) {
	o := call.Outcome{Status: call.StatusUnknown, Delivery: call.Confirmed, Effect: call.EffectUnconfirmed, Code: call.CodeContractUnknown, Message: "Nobody knows."}
	for in, want := range map[string]string{
		`{"content":[{"type":"text","text":"perhaps"}],"structuredContent":{"posted":true},"isError":false,"x":1,"_meta":{"org.aurorabot/tool-contract":{"status":"unknown"}}}`: "Nobody knows.\nperhaps",
		`{"content":[],"structuredContent":1}`: "Nobody knows.",
		`{}`:                                   "Nobody knows.",
	} {
		for _, modern := range []bool{true, false} {
			got := UnknownResult([]byte("<"), &call.Reply{Result: []byte(in), Outcome: o, Provenance: call.Provenance{Provider: "p", Verdict: "ACCEPTED_OBSERVATION"}}, modern)[1:]
			if err := CheckValue(got, FrameLimits{}); err != nil {
				t.Fatalf("%s: %v", got, err)
			}
			if text, err := NormalizedText(got); err != nil || text != want {
				t.Errorf("%s: text %q, %v", got, text, err)
			}
			members := map[string]string{}
			for k, v := range Members(got) {
				members[k] = string(v)
			}
			delete(members, "content")
			delete(members, "_meta")
			if members["isError"] != "true" || len(members) != map[bool]int{true: 2, false: 1}[modern] {
				t.Errorf("members %v", members)
			}
			if meta := Member(got, "_meta"); Member(meta, KeyOutcome) == nil || Member(meta, keyProvenance) == nil || Member(meta, ToolContract) != nil {
				t.Errorf("_meta %s", meta)
			}
		}
	}
}
