package transport

import (
	"log/slog"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

var discard = slog.New(slog.DiscardHandler)

// Invariant of the single writer: for every request, exactly one of "taken back, and never written" and "written, and
// marked as possibly sent before" holds, however withdrawal and writing meet.
func TestWithdrawalProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "requests")
		xs := make([]*exchange, n)
		for i := range xs {
			xs[i] = &exchange{delivery: new(Delivery), answer: make(chan answer, 1)}
		}
		written := make([]bool, n)
		withdrawn := make([]bool, n)
		var wg sync.WaitGroup
		wg.Go(func() {
			for i, x := range xs {
				if x.claim() {
					x.delivery.MaybeSent()
					written[i] = true
				}
			}
		})
		for i := n - 1; i >= 0; i-- {
			withdrawn[i] = xs[i].withdraw()
		}
		wg.Wait()
		for i := range xs {
			sent := xs[i].delivery.State() != call.NotSent
			if written[i] == withdrawn[i] || written[i] != sent {
				t.Fatalf("request %d: written %v, withdrawn %v, delivery %v", i, written[i], withdrawn[i], xs[i].delivery.State())
			}
		}
	})
}

// Invariant of answers: whatever a server sends in whatever order, each request gets at most one answer, the first valid
// one with its own id after it was written, and never another's.
func TestAnswersProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := &StdioCarrier{
			opts: StdioOptions{NoiseLines: 1 << 30, Violations: 1 << 30, Strays: 1 << 30}, log: discard, proc: &process{},
			done: make(chan struct{}), pending: map[string]*exchange{}, abandoned: map[string]struct{}{},
		}
		r := &reader{
			lines: &lineReader{}, noise: budget{lines: 1 << 30}, broken: budget{lines: 1 << 30}, strays: budget{lines: 1 << 30},
		}
		ids := []string{"g1", "g2", "g3"}
		open := map[string]*exchange{}
		first := map[string]string{} // the answer that a model of the rules expects; "" : fails
		got := map[string]answer{}
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			id := rapid.SampledFrom(ids).Draw(t, "id")
			value := string(rune('a' + step%26))
			valid := `{"jsonrpc":"2.0","id":"` + id + `","result":{"for":"` + id + `","v":"` + value + `"}}`
			x := open[id]
			live := x != nil && x.state.Load() == exchangeWriting && first[id] == ""
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				if x == nil {
					x = &exchange{id: id, delivery: new(Delivery), answer: make(chan answer, 1)}
					if err := c.open(x); err != nil {
						t.Fatal(err)
					}
					open[id] = x
				}
			case 1:
				if x != nil {
					x.claim()
				}
			case 2:
				c.take(r, []byte(valid))
				if live {
					first[id] = value
				}
			case 3:
				c.take(r, []byte(`{"jsonrpc":"2.0","id":"`+id+`","result":{"for":"`+id))
				if live {
					first[id] = "failed"
				}
			case 4:
				c.take(r, []byte(`{"jsonrpc":"2.0","id":"unknown","result":{"v":"`+value+`"}}`))
			case 5:
				c.take(r, []byte(`{"jsonrpc":"2.0","id":1,"result":{"v":"`+value+`"}}`))
			case 6:
				c.take(r, []byte(`[`+valid+`]`))
			}
		}
		for id, x := range open {
			select {
			case got[id] = <-x.answer:
			default:
				if first[id] != "" {
					t.Fatalf("%s waits, though it was answered", id)
				}
				continue
			}
			a := got[id]
			switch want := first[id]; {
			case want == "failed":
				if a.err == nil {
					t.Fatalf("%s got %s", id, a.resp.Result)
				}
			case a.err != nil || string(content.Member(a.resp.Result, "for")) != `"`+id+`"` || string(content.Member(a.resp.Result, "v")) != `"`+want+`"`:
				t.Fatalf("%s got %s, %v; want %q", id, a.resp.Result, a.err, want)
			}
			select {
			case a := <-x.answer:
				t.Fatalf("%s got a second answer %+v", id, a)
			default:
			}
		}
	})
}
