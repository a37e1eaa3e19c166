package policy

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
)

var noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// a program that makes the same call 1000 times is stopped, is told until when, and may go on then.
func TestA30_ALoopIsStopped(t *testing.T) {
	b, err := NewBudgets(DefaultLimits, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	let, last := 0, Refusal{}
	for i := range 1000 {
		if r := b.Take("alice", "s", call.Digest{1}, noon.Add(time.Duration(i)*time.Millisecond)); !r.Refused() {
			let++
		} else {
			last = r
		}
	}
	if let != DefaultLimits.Identical || last.Rule != "budget.identical" {
		t.Errorf("%d calls were let through, then %+v", let, last)
	}
	if r := b.Take("alice", "s", call.Digest{2}, noon.Add(time.Second)); r.Refused() {
		t.Errorf("another call is refused: %+v", r)
	}
	if r := b.Take("bob", "s", call.Digest{1}, noon.Add(time.Second)); r.Refused() {
		t.Errorf("another caller is refused: %+v", r)
	}
	if r := b.Take("alice", "s", call.Digest{1}, last.Until); r.Refused() {
		t.Errorf("refused after the time that was given: %+v", r)
	}
}

// A session's budget is its own, and a new session is no way around that of its principal.
func TestA30_SessionsShareTheirPrincipalsBudget(t *testing.T) {
	b, err := NewBudgets(Limits{Calls: 10, Per: time.Minute}, Limits{Calls: 4, Per: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	let := map[string]int{}
	for i := range 40 {
		session := fmt.Sprint(i % 4)
		if !b.Take("alice", session, call.Digest{byte(i)}, noon).Refused() {
			let[session]++
		}
	}
	if total := let["0"] + let["1"] + let["2"] + let["3"]; total != 10 || let["0"] > 4 {
		t.Errorf("got %v: want 10 calls, at most 4 a session", let)
	}
}

// A clock that goes back does not lock a caller out.
func TestA30_ClockGoesBack(t *testing.T) {
	l := Limits{Calls: 1, Per: time.Minute}
	b, _ := Budget{}.Take(l, noon, call.Digest{1})
	if _, r := b.Take(l, noon.Add(-time.Hour), call.Digest{1}); r.Refused() {
		t.Errorf("got %+v", r)
	}
}

// The table of callers has a bound: idle ones make room, and when none is idle a new one is refused.
func TestA30_CallersAreBounded(t *testing.T) {
	b, err := NewBudgets(Limits{Calls: 1, Per: time.Minute}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxCallers {
		if r := b.Take(fmt.Sprint(i), "", call.Digest{}, noon); r.Refused() {
			t.Fatalf("caller %d: %+v", i, r)
		}
	}
	if r := b.Take("late", "", call.Digest{}, noon); r.Rule != "budget.callers" {
		t.Errorf("got %+v", r)
	}
	if r := b.Take("late", "", call.Digest{}, noon.Add(time.Minute)); r.Refused() {
		t.Errorf("got %+v though all others are idle", r)
	}
	if len(b.kept) > 2 {
		t.Errorf("%d budgets are kept", len(b.kept))
	}
}

func TestBudgetsConcurrently(t *testing.T) {
	b, err := NewBudgets(Limits{Calls: 100, Per: time.Hour}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var let atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 50 {
				if !b.Take("alice", fmt.Sprint(w), call.Digest{byte(i)}, noon).Refused() {
					let.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if let.Load() != 100 {
		t.Errorf("%d calls were let through, want 100", let.Load())
	}
}

func TestLimitsAreValidated(t *testing.T) {
	for _, l := range []Limits{{Calls: -1, Per: 1}, {Calls: 1}, {Per: time.Second}, {Identical: 1}, {IdenticalPer: 1}} {
		if _, err := NewBudgets(l, Limits{}); err == nil {
			t.Errorf("%+v is taken", l)
		}
		if _, err := NewBudgets(Limits{}, l); err == nil {
			t.Errorf("%+v is taken for sessions", l)
		}
	}
}
