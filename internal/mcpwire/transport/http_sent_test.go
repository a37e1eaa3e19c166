package transport

import (
	"testing"

	"pgregory.net/rapid"
)

// A request that was sealed as not sent never writes another byte, and one of which a byte has left, or may be leaving, can
// never be sealed as not sent.
func TestR3_1_SentProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sent
		var left, writing, sealed bool
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"begin", "end", "seal"}).Draw(t, "step") {
			case "begin":
				if writing {
					continue // a connection has one writer
				}
				if writing = s.begin(); writing == sealed {
					t.Fatalf("begin said %v, sealed is %v", writing, sealed)
				}
			case "end":
				if !writing {
					continue
				}
				n := rapid.IntRange(0, 2).Draw(t, "n")
				s.end(n)
				writing, left = false, left || n > 0
			case "seal":
				got := s.seal()
				if want := sealed || !left && !writing; got != want {
					t.Fatalf("seal said %v, want %v", got, want)
				}
				sealed = sealed || got
			}
		}
	})
}
