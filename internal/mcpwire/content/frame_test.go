package content

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/call"
)

func TestParseFrameKinds(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     Frame
	}{
		{"request", ` { "jsonrpc" : "2.0" , "id" : 7 , "method" : "ping" } `, Frame{Kind: Request, ID: []byte("7"), Method: "ping"}},
		{"request with params", `{"jsonrpc":"2.0","id":"g1","method":"tools/call","params":{ "a" : 12345678901234567890 }}`,
			Frame{Kind: Request, ID: []byte(`"g1"`), Method: "tools/call", Params: []byte(`{ "a" : 12345678901234567890 }`)}},
		{"escaped key is the key", `{"jsonrpc":"2.0","id":1,"\u006dethod":"a\/b"}`, Frame{Kind: Request, ID: []byte("1"), Method: "a/b"}},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/x","params":{}}`, Frame{Kind: Notification, Method: "notifications/x", Params: []byte("{}")}},
		{"result", `{"jsonrpc":"2.0","id":"g1","result":{"n":1.0,"z":null}}`, Frame{Kind: Response, ID: []byte(`"g1"`), Result: []byte(`{"n":1.0,"z":null}`)}},
		{"error", `{"jsonrpc":"2.0","id":-3,"error":{"code":-32601,"message":"no\n","data":[1]}}`,
			Frame{Kind: ErrorResponse, ID: []byte("-3"), Error: &call.ProviderError{Code: -32601, Message: "no\n", Data: []byte("[1]")}}},
		{"error without id", `{"jsonrpc":"2.0","error":{"code":-32700,"message":""}}`, Frame{Kind: ErrorResponse, Error: &call.ProviderError{Code: -32700}}},
		{"error with null id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}`, Frame{Kind: ErrorResponse, Error: &call.ProviderError{Code: -32700}}},
		{"unknown keys are dropped", `{"jsonrpc":"2.0","x":{"y":[]},"id":1,"result":{}}`, Frame{Kind: Response, ID: []byte("1"), Result: []byte("{}")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseFrame([]byte(tc.in), FrameLimits{})
			if err != nil {
				t.Fatal(err)
			}
			if !sameFrame(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func sameFrame(a, b Frame) bool {
	if a.Kind != b.Kind || a.Method != b.Method || !bytes.Equal(a.ID, b.ID) || !bytes.Equal(a.Params, b.Params) ||
		!bytes.Equal(a.Result, b.Result) || (a.Params == nil) != (b.Params == nil) || (a.Error == nil) != (b.Error == nil) {
		return false
	}
	return a.Error == nil || a.Error.Code == b.Error.Code && a.Error.Message == b.Error.Message && bytes.Equal(a.Error.Data, b.Error.Data)
}

// R3.9, S-001, F-22, F-25: whatever is no message of MCP is refused as such, and never repaired.
func TestR3_9_MalformedMessages(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		fault    FrameFault
		id       string
	}{
		{"empty", ``, FaultSyntax, ""},
		{"cut", `{"jsonrpc":"2.0","id":1`, FaultSyntax, ""},
		{"two messages", `{"jsonrpc":"2.0","method":"a"}{"jsonrpc":"2.0","method":"b"}`, FaultSyntax, ""},
		{"bom", "\xef\xbb\xbf" + `{"jsonrpc":"2.0","method":"a"}`, FaultSyntax, ""},
		{"invalid utf-8", "{\"jsonrpc\":\"2.0\",\"method\":\"a\xff\"}", FaultSyntax, ""},
		{"lone surrogate", `{"jsonrpc":"2.0","method":"\ud800"}`, FaultSyntax, ""},
		{"raw newline in string", "{\"jsonrpc\":\"2.0\",\"method\":\"a\nb\"}", FaultSyntax, ""},
		{"NaN", `{"jsonrpc":"2.0","method":"a","params":{"x":NaN}}`, FaultSyntax, ""},
		{"duplicate key", `{"jsonrpc":"2.0","method":"a","method":"b"}`, FaultSyntax, ""},
		{"duplicate key by escape", `{"jsonrpc":"2.0","method":"a","m\u0065thod":"b"}`, FaultSyntax, ""},
		{"duplicate key deep", `{"jsonrpc":"2.0","method":"a","params":{"x":[{"y":1,"y":2}]}}`, FaultSyntax, ""},
		{"batch", `[{"jsonrpc":"2.0","method":"a"}]`, FaultInvalid, ""},
		{"string", `"jsonrpc"`, FaultInvalid, ""},
		{"null", `null`, FaultInvalid, ""},
		{"no version", `{"id":1,"method":"a"}`, FaultInvalid, "1"},
		{"other version", `{"jsonrpc":"1.0","id":1,"method":"a"}`, FaultInvalid, "1"},
		{"version as number", `{"jsonrpc":2.0,"id":1,"method":"a"}`, FaultInvalid, "1"},
		{"case variant", `{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}`, FaultInvalid, "1"},
		{"folded variant", `{"jsonrpc":"2.0","id":1,"method":"a","param\u017f":{}}`, FaultInvalid, "1"},
		{"NUL suffix", `{"jsonrpc":"2.0","id":1,"method":"a","method\u0000x":"b"}`, FaultInvalid, "1"},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"a"}`, FaultInvalid, ""},
		{"fractional id", `{"jsonrpc":"2.0","id":1.5,"method":"a"}`, FaultInvalid, ""},
		{"exponent id", `{"jsonrpc":"2.0","id":1e3,"method":"a"}`, FaultInvalid, ""},
		{"boolean id", `{"jsonrpc":"2.0","id":true,"method":"a"}`, FaultInvalid, ""},
		{"object id", `{"jsonrpc":"2.0","id":{},"result":{}}`, FaultInvalid, ""},
		{"result without id", `{"jsonrpc":"2.0","result":{}}`, FaultInvalid, ""},
		{"boolean id of an error", `{"jsonrpc":"2.0","id":false,"error":{"code":1,"message":""}}`, FaultInvalid, ""},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, FaultInvalid, "1"},
		{"result and null error", `{"jsonrpc":"2.0","id":1,"result":{},"error":null}`, FaultInvalid, "1"},
		{"neither", `{"jsonrpc":"2.0","id":1}`, FaultInvalid, "1"},
		{"request and result", `{"jsonrpc":"2.0","id":1,"method":"a","result":{}}`, FaultInvalid, "1"},
		{"request and error", `{"jsonrpc":"2.0","id":1,"method":"a","error":{"code":1,"message":""}}`, FaultInvalid, "1"},
		{"result not an object", `{"jsonrpc":"2.0","id":1,"result":[]}`, FaultInvalid, "1"},
		{"null result", `{"jsonrpc":"2.0","id":1,"result":null}`, FaultInvalid, "1"},
		{"params not an object", `{"jsonrpc":"2.0","id":1,"method":"a","params":[]}`, FaultInvalid, "1"},
		{"null params", `{"jsonrpc":"2.0","id":1,"method":"a","params":null}`, FaultInvalid, "1"},
		{"method not a string", `{"jsonrpc":"2.0","id":1,"method":5}`, FaultInvalid, "1"},
		{"empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, FaultInvalid, "1"},
		{"error is a string", `{"jsonrpc":"2.0","id":1,"error":"bad"}`, FaultInvalid, "1"},
		{"error without code", `{"jsonrpc":"2.0","id":1,"error":{"message":"x"}}`, FaultInvalid, "1"},
		{"error with fractional code", `{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"x"}}`, FaultInvalid, "1"},
		{"error with huge code", `{"jsonrpc":"2.0","id":1,"error":{"code":99999999999999999999,"message":"x"}}`, FaultInvalid, "1"},
		{"error without message", `{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, FaultInvalid, "1"},
		{"error with null message", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":null}}`, FaultInvalid, "1"},
		{"error key variant", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x","Code":2}}`, FaultInvalid, "1"},
		{"too deep", `{"jsonrpc":"2.0","method":"a","params":{"x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}}`, FaultLimit, ""},
		{"a million brackets", strings.Repeat("[", 1_000_000), FaultLimit, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ParseFrame([]byte(tc.in), FrameLimits{})
			fe, ok := errors.AsType[*FrameError](err)
			if !ok {
				t.Fatalf("got %v, want a FrameError", err)
			}
			if fe.Fault != tc.fault || string(fe.ID) != tc.id || fe.Reason == "" {
				t.Errorf("got fault %d id %q reason %q, want fault %d id %q", fe.Fault, fe.ID, fe.Reason, tc.fault, tc.id)
			}
		})
	}
}

func TestParseFrameBounds(t *testing.T) {
	msg := []byte(`{"jsonrpc":"2.0","method":"a","params":{"x":[[]]}}`)
	if _, err := ParseFrame(msg, FrameLimits{Size: int64(len(msg)), Depth: 4}); err != nil {
		t.Errorf("at the bounds: %v", err)
	}
	for _, l := range []FrameLimits{{Size: int64(len(msg)) - 1}, {Depth: 3}} {
		var fe *FrameError
		if _, err := ParseFrame(msg, l); !errors.As(err, &fe) || fe.Fault != FaultLimit {
			t.Errorf("%+v: got %v, want a limit fault", l, err)
		}
	}
	brackets := []byte(`{"jsonrpc":"2.0","method":"a","params":{"x":"` + strings.Repeat("[", 5000) + `"}}`)
	if _, err := ParseFrame(brackets, FrameLimits{}); err != nil {
		t.Errorf("brackets in a string are no depth: %v", err)
	}
}

// S-021: one message is one line, whatever blanks a value holds, and its strings are untouched.
func TestS021_OneLine(t *testing.T) {
	params := []byte("{\r\n \"a\" : \"x\\ny\u2028z\",\n\t\"b\": [1,\n2]\n}")
	line := AppendRequest(nil, "g\n1", "m\r", params)
	if bytes.ContainsAny(line, "\r\n") {
		t.Fatalf("line break in %q", line)
	}
	f, err := ParseFrame(line, FrameLimits{})
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := String(Member(f.Params, "a")); s != "x\ny\u2028z" || f.Method != "m\r" {
		t.Errorf("value changed: %q, method %q", s, f.Method)
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":[1e999999,"\u0000"]}}`, `{"jsonrpc":"2.0","id":"x","result":{ "a" : {} }}`,
		`{"jsonrpc":"2.0","error":{"code":-1,"message":"m","data":null}}`, `[]`, `{"jsonrpc":"2.0","method":"a","params":{"x":"\\\""}}`, "{\n}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		orig := bytes.Clone(b)
		frame, err := ParseFrame(b, FrameLimits{})
		if !bytes.Equal(orig, b) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			return
		}
		line := AppendFrame(nil, frame)
		if bytes.ContainsAny(line, "\r\n") {
			t.Fatalf("line break in %q", line)
		}
		again, err := ParseFrame(line, FrameLimits{Size: 1 << 40})
		if err != nil {
			t.Fatalf("re-emitted message is refused: %v: %q", err, line)
		}
		if twice := AppendFrame(nil, again); !bytes.Equal(twice, line) {
			t.Fatalf("re-emitting is not stable:\n%q\n%q", line, twice)
		}
		if !bytes.ContainsAny(b, "\r\n") && !sameFrame(frame, again) {
			t.Fatalf("re-emitted values differ: %+v, %+v", frame, again)
		}
	})
}

func FuzzRequestRoundTrip(f *testing.F) {
	f.Add("g1", "tools/call", []byte(`{"a":1}`))
	f.Add("\xff", "\n", []byte("{}"))
	f.Fuzz(func(t *testing.T, id, method string, params []byte) {
		if method == "" || CheckValue(params, FrameLimits{Depth: DefaultDepth - 1}) != nil || kind(params) != '{' {
			return
		}
		params = bytes.TrimSpace(params)
		fr, err := ParseFrame(AppendRequest(nil, id, method, params), FrameLimits{})
		if err != nil {
			t.Fatal(err)
		}
		gotID, ok := IDString(fr.ID)
		// What is no UTF-8 cannot stand in JSON: each such byte is replaced.
		if wantID, wantMethod := string([]rune(id)), string([]rune(method)); fr.Kind != Request || !ok || gotID != wantID || fr.Method != wantMethod {
			t.Fatalf("got %q and %q, want %q and %q", gotID, fr.Method, wantID, wantMethod)
		}
		if !bytes.ContainsAny(params, "\r\n") && !bytes.Equal(fr.Params, params) {
			t.Fatalf("params changed: %q, %q", fr.Params, params)
		}
	})
}
