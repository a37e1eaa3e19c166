package policy

import (
	"fmt"
	"time"

	"github.com/ostiary/ostiary/call"
)

// Limits bound what one caller may do in a while. A limit that is zero bounds nothing.
type Limits struct {
	Calls int           // at most so many calls
	Per   time.Duration // in each period of this length, which begins with its first call

	// Identical is how often the same call, the same tool with the same arguments, may be made in IdenticalPer. A program
	// in a loop reaches it long before it has reached Calls.
	Identical    int
	IdenticalPer time.Duration
}

// DefaultLimits stop a loop and let work go on.
var DefaultLimits = Limits{Calls: 60_000, Per: 10 * time.Minute, Identical: 100, IdenticalPer: time.Minute}

func (l Limits) validate() error {
	if l.Calls < 0 || l.Identical < 0 || l.Per < 0 || l.IdenticalPer < 0 {
		return fmt.Errorf("limits of calls: a number is negative")
	}
	if (l.Calls > 0) != (l.Per > 0) || (l.Identical > 0) != (l.IdenticalPer > 0) {
		return fmt.Errorf("limits of calls: a number of calls and its period are given together, or neither is")
	}
	return nil
}

// Refusal is why a call is not let through now. The zero value refuses nothing.
type Refusal struct {
	Rule   string // "budget.calls", "budget.identical" or "budget.callers"
	Reason string
	Until  time.Time // from when on it is worth trying again
}

// Refused says that there is a refusal.
func (r Refusal) Refused() bool { return r.Rule != "" }

// maxRepeats is how many different calls a budget remembers. A caller that goes round among more is stopped by the bound
// on all of its calls.
const maxRepeats = 8

// Budget is what one caller has used up. It is a value: [Budget.Take] gives the next one. The zero value is a caller that
// has done nothing.
type Budget struct {
	all     period
	repeats [maxRepeats]repeat
}

type period struct {
	began time.Time
	calls int
}

type repeat struct {
	digest call.Digest
	period
}

// take counts one more, or says until when none may be. A clock that went back begins a new period: to wait for the old
// one could take for ever.
func (p period) take(most int, length time.Duration, now time.Time) (period, time.Time, bool) {
	if most == 0 {
		return p, time.Time{}, true
	}
	if p.over(length, now) {
		p = period{began: now}
	}
	if p.calls >= most {
		return p, p.began.Add(length), false
	}
	p.calls++
	return p, time.Time{}, true
}

func (p period) over(length time.Duration, now time.Time) bool {
	return p.calls == 0 || now.Before(p.began) || now.Sub(p.began) >= length
}

// Take counts one call, which digest stands for, or refuses it. A call that is refused counts nowhere.
func (b Budget) Take(l Limits, now time.Time, digest call.Digest) (Budget, Refusal) {
	all, until, ok := b.all.take(l.Calls, l.Per, now)
	if !ok {
		return b, Refusal{"budget.calls", fmt.Sprintf("more than %d calls in %s", l.Calls, l.Per), until}
	}
	if l.Identical > 0 {
		i := b.slot(l, now, digest)
		same := b.repeats[i].period
		if b.repeats[i].digest != digest {
			same = period{}
		}
		if same, until, ok = same.take(l.Identical, l.IdenticalPer, now); !ok {
			return b, Refusal{"budget.identical", fmt.Sprintf("the same call more than %d times in %s", l.Identical, l.IdenticalPer), until}
		}
		b.repeats[i] = repeat{digest, same}
	}
	b.all = all
	return b, Refusal{}
}

// slot is where the call is remembered, or else the place that is missed least: one whose period is over, or the one with
// the fewest calls.
func (b *Budget) slot(l Limits, now time.Time, digest call.Digest) int {
	best, fewest := 0, -1
	for i := range b.repeats {
		r := &b.repeats[i]
		if r.calls > 0 && r.digest == digest {
			return i
		}
		n := r.calls
		if r.over(l.IdenticalPer, now) {
			n = 0
		}
		if fewest < 0 || n < fewest {
			best, fewest = i, n
		}
	}
	return best
}

// idle says that nothing in the budget counts any more.
func (b *Budget) idle(l Limits, now time.Time) bool {
	if !b.all.over(l.Per, now) {
		return false
	}
	for i := range b.repeats {
		if !b.repeats[i].over(l.IdenticalPer, now) {
			return false
		}
	}
	return true
}
