package gate

import (
	"testing"

	"github.com/ostiary/ostiary/call"
)

// R9.1: a call has the trace that its caller has put it into, or one of its own that follows from its id.
func TestR9_1_Trace(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	own := (&passage{id: "c1", request: &call.Request{}}).trace()
	if len(own) != 32 || own != (&passage{id: "c1", request: &call.Request{Meta: []byte(`{}`)}}).trace() || own == (&passage{id: "c2", request: &call.Request{}}).trace() {
		t.Errorf("the trace of c1 is %q", own)
	}
	for meta, want := range map[string]string{
		`{"traceparent":"00-` + id + `-00f067aa0ba902b7-01"}`:                         id,
		`{"a":{"traceparent":"x"},"traceparent":"00-` + id + `-00f067aa0ba902b7-01"}`: id,
		`{"traceparent":"01-` + id + `-00f067aa0ba902b7-01-more"}`:                    id,
		`{"traceparent":7}`:              own,
		`{"traceparent":"00-x-y-01"}`:    own,
		`{"traceparent":"00-4bf9-y-01"}`: own,
		`{"a":1}`:                        own,
		`[]`:                             own,
		`{"traceparent"`:                 own,
	} {
		if got := (&passage{id: "c1", request: &call.Request{Meta: []byte(meta)}}).trace(); got != want {
			t.Errorf("%s: got %q, want %q", meta, got, want)
		}
	}
}

// FuzzTrace: whatever a caller sends along, the id is one: 32 hexadecimal digits.
func FuzzTrace(f *testing.F) {
	f.Add([]byte(`{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`))
	f.Fuzz(func(t *testing.T, meta []byte) {
		got := (&passage{id: "c", request: &call.Request{Meta: meta}}).trace()
		if len(got) != 32 {
			t.Fatalf("%q", got)
		}
		for _, c := range got {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				t.Fatalf("%q", got)
			}
		}
	})
}
