package evidence

import (
	"fmt"
	"time"
)

// Release lets an item go: the decider has looked at it and answers for it. Only what is held and whose time is not over
// can be released. The item is as it is afterwards.
func Release(tx Tx, id ID, d Decision) (Item, error) {
	d.To = Released
	return decide(tx, id, d)
}

// Reject says that an item must not be let go. It is kept until its time is over.
func Reject(tx Tx, id ID, d Decision) (Item, error) {
	d.To = Rejected
	return decide(tx, id, d)
}

// Purge takes the payload and the excerpt away before the item's time is over.
func Purge(tx Tx, id ID, d Decision) (Item, error) {
	d.To = Purged
	return decide(tx, id, d)
}

func decide(tx Tx, id ID, d Decision) (_ Item, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("decide on evidence %s: %w", clip(string(id), maxText), err)
		}
	}()
	i, ok, err := tx.Evidence(id)
	if err != nil {
		return Item{}, err
	}
	if !ok {
		return Item{}, ErrUnknown
	}
	from := i.State
	if err := i.decide(d); err != nil {
		return Item{}, err
	}
	if err := tx.DecideEvidence(from, i); err != nil {
		return Item{}, err
	}
	return i, nil
}

// decide takes one step, or none.
func (i *Item) decide(d Decision) error {
	if d.By == "" || len(d.By) > maxText || d.At.IsZero() {
		return fmt.Errorf("%w: a decision needs who took it and when", ErrInvalid)
	}
	if d.To != Purged && i.over(d.At) {
		return ErrOver
	}
	if i.State == Purged {
		return ErrOver
	}
	if !i.State.mayBecome(d.To) {
		return fmt.Errorf("%w: it is %s, by %s", ErrDecided, i.State, i.Decision.By)
	}
	d.At = d.At.UTC().Round(0)
	d.By, d.Reason = clip(d.By, maxText), clip(d.Reason, maxReason)
	if d.To == Purged {
		i.purge(d)
		return nil
	}
	i.State, i.Decision = d.To, d
	return nil
}

func (i *Item) purge(d Decision) {
	d.To = Purged
	i.State, i.Purge, i.Excerpt = Purged, d, ""
}

// Expired lists items whose time is over at now and that are not purged yet, at most limit.
func Expired(v View, now time.Time, limit int) ([]ID, error) {
	items, err := v.ListEvidence(Filter{ExpiredAt: now, Limit: limit})
	if err != nil {
		return nil, fmt.Errorf("list expired evidence: %w", err)
	}
	ids := make([]ID, len(items))
	for n := range items {
		ids[n] = items[n].ID
	}
	return ids, nil
}

// Sweep purges those of the items whose time is over at now; others, it leaves as they are. The ids come from [Expired].
// It returns what it has purged.
func Sweep(tx Tx, ids []ID, now time.Time) (purged []Item, err error) {
	for _, id := range ids {
		i, ok, err := tx.Evidence(id)
		if err != nil {
			return nil, fmt.Errorf("sweep evidence %s: %w", id, err)
		}
		if !ok || i.State == Purged || !i.over(now) {
			continue
		}
		if i, err = Purge(tx, id, Decision{By: Gateway, At: now, Reason: "its time is over"}); err != nil {
			return nil, err
		}
		purged = append(purged, i)
	}
	return purged, nil
}
