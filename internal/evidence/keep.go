package evidence

import "fmt"

// Keep writes what was held. When all that is kept has reached its bound the item is kept without its payload, purged from
// the beginning: a provider must not be able to fill the disk. The item is as it was kept.
func Keep(tx Tx, h Sealed) (Item, error) {
	if h.Item.ID == "" || (h.Payload == nil) != (h.Item.State == Purged) {
		return Item{}, fmt.Errorf("keep evidence: %w: it does not come from Hold", ErrInvalid)
	}
	if h.Payload != nil {
		size, err := tx.EvidenceSize()
		if err != nil {
			return Item{}, fmt.Errorf("keep evidence %s: %w", h.Item.ID, err)
		}
		if most := h.limits.withDefaults().MaxTotal; size+int64(len(h.Payload)) > most {
			h = h.without(fmt.Sprintf("all evidence together has %d bytes, at most %d are kept", size, most))
		}
	}
	if err := tx.InsertEvidence(h.Item, h.Payload); err != nil {
		return Item{}, fmt.Errorf("keep evidence %s: %w", h.Item.ID, err)
	}
	return h.Item, nil
}
