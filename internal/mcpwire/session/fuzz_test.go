//go:build unix

package session

import (
	"testing"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// FuzzLook: what is kept of an answer to initialize is either nothing or an object that was really in it; it never panics.
func FuzzLook(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"capabilities":{}}}`))
	f.Add([]byte("event: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n"))
	f.Add([]byte("data: {}\r\n\r\ndata:\n\n: c\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var l initializeLook
		l.kept.Write(b)
		if r := l.result(); r != nil && !content.IsObject(r) {
			t.Fatalf("got %q", r)
		}
	})
}

// FuzzGreater: no two JSON numbers are each greater than the other, none is greater than itself, and integers compare
// exactly.
func FuzzGreater(f *testing.F) {
	f.Add("1", "2")
	f.Add("9007199254740992", "9007199254740993")
	f.Add("1e999999999", "-0")
	f.Add("0.1", "1e-1")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, s := range []string{a, b} {
			if content.CheckValue([]byte(s), content.FrameLimits{}) != nil || !isNumber([]byte(s)) {
				return
			}
		}
		if greater([]byte(a), []byte(b)) && greater([]byte(b), []byte(a)) || greater([]byte(a), []byte(a)) {
			t.Fatalf("%s and %s", a, b)
		}
	})
}
