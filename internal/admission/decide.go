package admission

import (
	"fmt"
	"slices"
	"time"

	"github.com/ostiary/ostiary/internal/review"
)

// Mode is how a provider's first listing is taken. The zero value asks.
type Mode uint8

// The modes.
const (
	Explicit Mode = iota
	FirstUse      // what the first start finds is admitted, but for what screening has found something in
)

const (
	maxReason  = 500
	maxRefused = 8 // refused definitions of one tool that are remembered
)

// Record keeps what a plan found: new and changed definitions wait, or are admitted by first use; a change of a tool puts
// it into quarantine, and a change of the instructions or of the origin the whole provider. It is idempotent, and returns the pins that it wrote.
func Record(tx Tx, p *Plan, mode Mode, now time.Time) (written []Pin, err error) {
	pins, err := tx.Pins(p.Provider)
	if err != nil {
		return nil, err
	}
	first := mode == FirstUse && p.New && len(pins) == 0
	for _, i := range append([]Item{p.Itself}, p.Tools...) {
		pin, err := recordItem(tx, p, &i, pins, first, now)
		if err != nil {
			return nil, fmt.Errorf("record %s of %s: %w", label(i.RawName), p.Provider, err)
		}
		if pin != nil {
			written = append(written, *pin)
		}
	}
	return written, nil
}

func recordItem(tx Tx, p *Plan, i *Item, pins []Pin, first bool, now time.Time) (*Pin, error) {
	switch i.Standing {
	case Removed:
		return nil, nil
	case Unchanged:
		// What waited is no longer offered: there is nothing of it to decide on.
		for k := range pins {
			if old := &pins[k]; old.RawName == i.RawName && old.State == Waiting && i.Admitted != nil {
				if err := tx.DeletePin(old.Key()); err != nil {
					return nil, err
				}
			}
		}
		if i.Admitted == nil { // empty instructions, the first time
			return put(tx, i.Offered, Admitted, ByFirstUse, now)
		}
		// What was refused is no longer offered. Other reasons stay until somebody has looked: it was not always so.
		if q, ok, err := quarantineOf(tx, p.Provider, i.RawName); err != nil || !ok || q.Reason != ChangeRefused {
			return nil, err
		}
		return nil, tx.DeleteQuarantine(p.Provider, i.RawName)
	case RefusedStanding:
		if i.Admitted == nil && i.RawName != "" {
			return nil, nil // it never was usable: no quarantine is needed to keep it so
		}
		return nil, Isolate(tx, Quarantine{Provider: p.Provider, Tool: i.RawName, Reason: ChangeRefused, Since: now})
	case Changed:
		q := Quarantine{Provider: p.Provider, Tool: i.RawName, Reason: DefinitionChanged, Since: now,
			Detail: fmt.Sprintf("%s change of %s", i.Class, members(i.Fields))}
		if i.RawName == "" {
			q.Reason, q.Detail = InstructionsChanged, "the server's instructions are not those that were admitted"
			if slices.Contains(i.Fields, "/tool_contract") {
				q.Reason, q.Detail = ContractChanged, "what the provider's tools observe and publish is not what it was when it was admitted: tool-contract was negotiated otherwise"
			}
			if slices.Contains(i.Fields, "/origin") {
				q.Reason, q.Detail = OriginChanged, "the provider is not started or reached as when it was admitted"
			}
		}
		if err := Isolate(tx, q); err != nil {
			return nil, err
		}
	case New:
		// A server's instructions are never handed to a model, so what screening says of them is shown, and keeps nothing out.
		if first && (len(i.Offered.Findings) == 0 || i.Offered.RawName == "") {
			return put(tx, i.Offered, Admitted, ByFirstUse, now)
		}
	}
	return wait(tx, i.Offered, pins, now)
}

// wait makes the offered definition the one of its name that waits.
func wait(tx Tx, offered *Pin, pins []Pin, now time.Time) (*Pin, error) {
	for k := range pins {
		old := &pins[k]
		if old.RawName != offered.RawName || old.State != Waiting {
			continue
		}
		if old.DescriptorDigest == offered.DescriptorDigest && slices.Equal(old.Findings, offered.Findings) {
			return nil, nil
		}
		if err := tx.DeletePin(old.Key()); err != nil {
			return nil, err
		}
	}
	return put(tx, offered, Waiting, "", now)
}

func put(tx Tx, offered *Pin, s State, decider string, now time.Time) (*Pin, error) {
	n := *offered
	n.State, n.FirstSeen, n.Decider = s, now, decider
	if s != Waiting {
		n.Decided = now
	}
	return &n, tx.PutPin(n)
}

// Verdict is a reviewer's word on exactly one definition: the one with that digest, so that what was looked at is what is
// admitted.
type Verdict struct {
	Key
	From   State // what the reviewer saw it as; the zero value is Waiting. If it is no longer so: ErrDecided
	Admit  bool  // else refuse
	Reason string
}

// Decide takes verdicts, all or none. To admit a definition sets aside the one that was admitted before and lifts the
// quarantine that its change led to; to refuse one keeps it out for as long as it is offered.
func Decide(tx Tx, decider string, now time.Time, verdicts ...Verdict) (decided []Pin, err error) {
	if decider == "" {
		return nil, ErrDecider
	}
	for _, v := range verdicts {
		p, err := decide(tx, decider, now, v)
		if err != nil {
			return nil, fmt.Errorf("decide on %s of %s: %w", label(v.RawName), v.Provider, err)
		}
		decided = append(decided, p)
	}
	return decided, nil
}

func decide(tx Tx, decider string, now time.Time, v Verdict) (Pin, error) {
	pins, err := tx.Pins(v.Provider)
	if err != nil {
		return Pin{}, err
	}
	at := slices.IndexFunc(pins, func(p Pin) bool { return p.Key() == v.Key })
	if at < 0 {
		return Pin{}, ErrUnknown
	}
	p := pins[at]
	to := Refused
	if v.Admit {
		to = Admitted
	}
	if p.State != v.From || p.State == to {
		return Pin{}, fmt.Errorf("%w: it is %s", ErrDecided, p.State)
	}
	p.State, p.Decider, p.Decided, p.Reason = to, decider, now, review.Clip(v.Reason, maxReason)
	if err := setAside(tx, pins, &p); err != nil {
		return Pin{}, err
	}
	if err := tx.PutPin(p); err != nil {
		return Pin{}, err
	}
	return p, requarantine(tx, &p, now)
}

// setAside makes room for a pin that is about to be written: one that is admitted takes the place of another, and of those
// that were refused only the newest are kept.
func setAside(tx PinRows, pins []Pin, p *Pin) error {
	var refused []Pin
	for _, old := range pins {
		if old.RawName != p.RawName || old.Key() == p.Key() {
			continue
		}
		if old.State == Refused {
			refused = append(refused, old)
		}
		if p.State == Admitted && old.State == Admitted {
			if err := tx.DeletePin(old.Key()); err != nil {
				return err
			}
		}
	}
	if p.State != Refused || len(refused) < maxRefused {
		return nil
	}
	slices.SortFunc(refused, func(a, b Pin) int { return a.Decided.Compare(b.Decided) })
	for _, old := range refused[:len(refused)-maxRefused+1] {
		if err := tx.DeletePin(old.Key()); err != nil {
			return err
		}
	}
	return nil
}

// requarantine makes the quarantine that a change led to follow the decision on the change. What is there for another
// reason stays.
func requarantine(tx QuarantineRows, p *Pin, now time.Time) error {
	q, ok, err := quarantineOf(tx, p.Provider, p.RawName)
	if err != nil {
		return err
	}
	ours := ok && q.Reason != ByOperator
	switch {
	case p.State == Admitted && ours:
		return tx.DeleteQuarantine(p.Provider, p.RawName)
	case p.State == Refused && ours, p.State == Refused && p.RawName == "" && !ok: // without its instructions nothing of a server is used
		return tx.PutQuarantine(Quarantine{Provider: p.Provider, Tool: p.RawName, Reason: ChangeRefused, Since: now, By: p.Decider, Detail: p.Reason})
	}
	return nil
}

func label(rawName string) string {
	if rawName == "" {
		return "the instructions"
	}
	return "tool " + review.Clip(rawName, 120)
}
