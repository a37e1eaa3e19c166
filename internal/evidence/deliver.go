package evidence

import (
	"fmt"
	"time"

	"github.com/ostiary/ostiary/call"
)

// Deliverable says why an item may not be handed over at now to whoever has the claim; nil: it may be. To one with another
// claim there is no such item.
func (i *Item) Deliverable(claim call.Digest, now time.Time) error {
	switch {
	case claim.IsZero() || i.Claim != claim:
		return ErrUnknown
	case i.Delivery.To != "":
		return ErrDelivered
	case i.State == Purged || i.over(now):
		return ErrOver
	case i.State == Held:
		return ErrHeld
	case !i.Admitted(now):
		return fmt.Errorf("%w: it is %s", ErrDecided, i.State)
	}
	return nil
}

// Deliver writes down that a released result is handed over to a call, once. It belongs into a transaction that commits
// before anything of the result leaves. The item is as it is afterwards.
func Deliver(tx Tx, id ID, claim call.Digest, to call.ID, now time.Time) (Item, error) {
	i, ok, err := tx.Evidence(id)
	switch {
	case err != nil:
	case !ok:
		err = ErrUnknown
	case to == "" || now.IsZero():
		err = fmt.Errorf("%w: a delivery needs to whom and when", ErrInvalid)
	default:
		err = i.Deliverable(claim, now)
	}
	if err == nil {
		i.Delivery = Delivery{To: to, At: now.UTC().Round(0)}
		err = tx.DecideEvidence(Released, i)
	}
	if err != nil {
		return Item{}, fmt.Errorf("deliver evidence %s: %w", clip(string(id), maxText), err)
	}
	return i, nil
}
