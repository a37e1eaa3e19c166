package endpoint

import (
	"context"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/call"
)

// Values that typed JSON libraries change: integers beyond 2^53, spellings of numbers, null, HTML and line separators,
// unknown members and kinds.
const (
	delicate = `{"n":9007199254740993,"neg":-0,"f":1.0,"e":1e2,"big":12345678901234567890123,"nul":null,"h":"<b>&\u2028\u00e9é","z":[],"a":{"z":1,"a":2}}`
	result   = `{"content":[{"type":"hologram","data":` + delicate + `,"x":1.0}],"structuredContent":` + delicate + `,"unknown":` + delicate + `,"_meta":{"p":9007199254740993},"isError":false}`
	shown    = `{"content":[{"type":"hologram","data":` + delicate + `,"x":1.0}],"structuredContent":` + delicate + `,"unknown":` + delicate +
		`,"_meta":{"p":9007199254740993,"org.ostiary/outcome":{"status":"succeeded","delivery":"confirmed","call":"c1"}},"isError":false`
)

// The values of a call cross in both eras byte for byte: arguments and the caller's own _meta inwards, the result outwards
// (design, section 1). Reserved keys of _meta stop here (S-017).
func TestByteFidelity(t *testing.T) {
	seen := make(chan call.Request, 1)
	f := serve(t, func(_ context.Context, r call.Request) call.Reply {
		seen <- r
		return call.Reply{Outcome: okOutcome, Result: []byte(result)}
	})
	legacy := f.initialize("2025-11-25")
	old := f.initialize("2024-11-05")
	const ownMeta = `"com.example/k":` + delicate + `,"progressToken":"<t>"`
	const reserved = `,"io.modelcontextprotocol/other":1,"org.ostiary/outcome":{"status":"succeeded"},"traceparent":"nonsense"`
	params := `"name":"echo","arguments":` + delicate + `,"unknownParam":1`
	for _, c := range []struct {
		name string
		get  func() reply
		want string
	}{
		{"modern", func() reply {
			return f.modern("tools/call", "echo", params, ownMeta+reserved)
		}, shown + `,"resultType":"complete"}`},
		{"2025-11-25", func() reply {
			return f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+params+`,"_meta":{`+ownMeta+reserved+`}}}`, legacy...)
		}, shown + `}`},
		{"2024-11-05", func() reply {
			return f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+params+`,"_meta":{`+ownMeta+reserved+`}}}`, old...)
		}, shown + `}`},
		{"legacy, JSON alone", func() reply {
			return f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+params+`,"_meta":{`+ownMeta+reserved+`}}}`, append(legacy, set("Accept", "application/json"))...)
		}, shown + `}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.get()
			r := <-seen
			if string(r.Arguments) != delicate {
				t.Errorf("arguments: %s", r.Arguments)
			}
			if string(r.Meta) != `{"com.example/k":`+delicate+`}` {
				t.Errorf("S-017, meta: %s", r.Meta)
			}
			if got.at("result") != c.want {
				t.Errorf("result:\n got %s\nwant %s", got.at("result"), c.want)
			}
			if strings.Contains(c.name, "JSON") && got.header.Get("Content-Type") != "application/json" {
				t.Errorf("content type %s", got.header.Get("Content-Type"))
			}
		})
	}
}

// Ids come back as they were sent.
func TestIDsComeBack(t *testing.T) {
	f := serve(t, echo)
	session := f.initialize("2025-11-25")
	for _, id := range []string{`1`, `-7`, `0`, `9007199254740993`, `"a"`, `""`, `"\u00e9<"`} {
		got := f.do("POST", modernBody(id, "tools/list", "", ""), modernHeaders("tools/list", ""))
		if got.at("id") != id {
			t.Errorf("modern: sent %s, got %s", id, got.at("id"))
		}
		got = f.do("POST", `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list"}`, session...)
		if got.at("id") != id {
			t.Errorf("legacy: sent %s, got %s", id, got.at("id"))
		}
		got = f.do("POST", `{"jsonrpc":"2.0","id":`+id+`,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		if got.at("id") != id || got.at("result", "protocolVersion") == "" {
			t.Errorf("initialize: sent %s, got %v", id, got)
		}
	}
}

// How a reply of the path becomes an answer (design, section 1, last paragraph; S-004, S-005, S-008).
func TestReplies(t *testing.T) {
	refused := call.Outcome{Status: call.Failed, Delivery: call.NotSent, Effect: call.EffectNone, Code: call.CodeDenied, Stage: call.StageDecision, Retry: call.NeverRetry, CallID: "c9", Message: "No."}
	providerError := func(code int64) call.Reply {
		return call.Reply{Outcome: call.Outcome{Status: call.Failed, Delivery: call.Confirmed, Code: call.CodeProviderError},
			Error: &call.ProviderError{Code: code, Message: "their words", Data: []byte(`{"n":9007199254740993}`)}}
	}
	var next call.Reply
	f := serve(t, func(context.Context, call.Request) call.Reply { return next })
	session := f.initialize("2025-11-25")
	legacyCall := func() reply {
		return f.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`, session...)
	}

	next = call.Reply{Outcome: refused}
	const words = `"content":[{"type":"text","text":"No."}],"isError":true,"_meta":{"org.ostiary/outcome":{"status":"failed","delivery":"not_sent","effect":"none","code":"denied","stage":"DECISION","retry":"NEVER_RETRY","call":"c9"}}}`
	if got := f.modernCall("{}", ""); got.status != 200 || got.at("result") != `{"resultType":"complete",`+words {
		t.Errorf("refusal, modern: %v", got)
	}
	if got := legacyCall(); got.at("result") != `{`+words {
		t.Errorf("refusal, legacy: %v", got)
	}

	for code, want := range map[int64]struct {
		modern, legacy string
		status         int
	}{
		-32602: {"-32602", "-32602", 200}, -32601: {"-32601", "-32601", 200}, 7: {"7", "7", 200}, -31000: {"-31000", "-31000", 200}, -32005: {"-32005", "-32005", 200},
		-32002: {"-32603", "-32002", 200}, -32042: {"-32603", "-32042", 200}, -32020: {"-32603", "-32020", 200}, -32022: {"-32603", "-32022", 200},
		-32023: {"-32603", "-32023", 200}, -32099: {"-32603", "-32099", 200}, -32100: {"-32100", "-32100", 200},
		-32021: {"-32021", "-32021", 400},
	} {
		next = providerError(code)
		if got := f.modernCall("{}", ""); got.status != want.status || got.at("error") != `{"code":`+want.modern+`,"message":"their words","data":{"n":9007199254740993}}` {
			t.Errorf("%d, modern: %v", code, got)
		}
		if got := legacyCall(); got.at("error") != `{"code":`+want.legacy+`,"message":"their words","data":{"n":9007199254740993}}` {
			t.Errorf("%d, legacy: %v", code, got)
		}
	}

	// R4.6: a result that its provider does not stand by is an error whatever it says of itself.
	unsure := call.Outcome{Status: call.StatusUnknown, Delivery: call.Confirmed, Effect: call.EffectUnconfirmed, Code: call.CodeContractUnknown, Message: "Nobody knows."}
	next = call.Reply{Outcome: unsure, Result: []byte("{\n\"content\":[{\"type\":\"text\",\n\"text\":\"perhaps\"}],\"isError\":false,\"structuredContent\":{\"ok\":true}}")}
	for name, got := range map[string]reply{"modern": f.modernCall("{}", ""), "legacy": legacyCall()} {
		if got.at("result", "isError") != "true" || got.at("result", "content") != `[{"type":"text","text":"Nobody knows."},{"type":"text", "text":"perhaps"}]` || got.at("result", "structuredContent") != "" {
			t.Errorf("%s: %v", name, got)
		}
	}

	next = call.Reply{Outcome: okOutcome, Result: []byte("{\n \"content\": [],\r\n \"x\": \"a\\nb\"\n}")}
	for name, got := range map[string]reply{"modern stream": f.modernCall("{}", `"progressToken":1`), "legacy": legacyCall()} {
		if m := string(got.message()); strings.ContainsAny(m, "\n\r") || !strings.Contains(m, `"a\nb"`) {
			t.Errorf("%s: a message of several lines: %q", name, m)
		}
	}
}
