package ostiary_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ostiary/ostiary"
)

// R6.11: with a lock a gateway starts only if everything that is offered equals it, and the error names each difference:
// what was added, what is gone, what has changed, in a tool or in the instructions. A refused start admits nothing and
// serves nothing. A new lock leaves out what is not offered any more, and fits.
func TestR6_11_EachDifferenceIsNamed(t *testing.T) {
	t.Parallel()
	var tools atomic.Pointer[[]string]
	offer := func(definitions ...string) { tools.Store(&definitions) }
	a, b, c := says("a", "Does a.", ""), says("b", "Does b.", ""), says("c", "Does c.", "")
	other := says("a", "Does a, and more.", "")
	taking := says("b", "Does b.", `,"inputSchema":{"type":"object","properties":{"to":{"type":"string"}}}`)
	offer(a, b)
	h := &hostile{instructions: "Be kind.", allowed: []string{"a", "b", "c"}, exported: []string{"a"}, tools: func(asked) []string { return *tools.Load() }}
	g := besiege(t, "", h)
	lock, err := g.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g.stop()
	start := func(lock []byte) (*ostiary.Host, error) {
		o := g.options()
		o.Lock = lock
		host, err := ostiary.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return host, host.Start(context.Background())
	}
	for _, x := range []struct {
		name         string
		offered      []string
		instructions string
		want         []string
	}{
		{"equal", []string{b, a}, "Be kind.", nil},
		{"added", []string{a, b, c}, "Be kind.", []string{"tool c: is offered, but not locked"}},
		{"gone", []string{a}, "Be kind.", []string{"tool b: is locked, but not offered"}},
		{"description", []string{other, b}, "Be kind.", []string{"tool a: descriptor is sha256:"}},
		{"arguments", []string{a, taking}, "Be kind.", []string{"tool b: schema is sha256:"}},
		{"instructions", []string{a, b}, "Be quick.", []string{"provider bad: instructions is sha256:"}},
		{"all of it", []string{other, c}, "Be quick.", []string{"tool a: descriptor", "tool b: is locked", "tool c: is offered", "instructions is"}},
	} {
		offer(x.offered...)
		h.instructions = x.instructions
		host, err := start(lock)
		if (err == nil) != (x.want == nil) || err != nil && !errors.Is(err, ostiary.ErrNotLocked) {
			t.Errorf("%s: %v", x.name, err)
		}
		for _, want := range x.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", x.name, err, want)
			}
		}
		if n := strings.Count(strings.TrimPrefix(errorText(err), ostiary.ErrNotLocked.Error()), "provider bad"); n != len(x.want) {
			t.Errorf("%s: %d differences, want %d: %v", x.name, n, len(x.want), err)
		}
		if err := host.Stop(context.Background()); err != nil {
			t.Errorf("%s: stop: %v", x.name, err)
		}
	}

	offer(a)
	h.instructions = "Be kind."
	g.start()
	must(t, g.records(), "!quarantine.set") // nothing of what the lock refused was taken up
	again, err := g.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	must(t, string(again), `name       = "a"`, `!name       = "b"`)
	g.stop()
	host, err := start(again)
	if err != nil {
		t.Errorf("with a lock of what is offered now: %v", err)
	}
	if err := host.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
