package evidence

import "fmt"

// Bounds of one provider: what it sends must not leave others, and its events must not leave its calls, without evidence.
const (
	shareOfTotal  = 2 // one provider has at most the 2nd part of all
	shareOfEvents = 4 // its events have at most the 4th part of that
)

// Keep writes what was held. When what is kept has reached a bound, of all, of the provider or of its events, the item is
// kept without its payload, purged from the beginning: a provider must not be able to fill the disk, and what comes first
// must not be driven out by what comes later. The item is as it was kept.
func Keep(tx Tx, h Sealed) (Item, error) {
	if h.Item.ID == "" || (h.Payload == nil) != (h.Item.State == Purged) {
		return Item{}, fmt.Errorf("keep evidence: %w: it does not come from Hold", ErrInvalid)
	}
	if h.Payload != nil {
		full, err := h.full(tx)
		if err != nil {
			return Item{}, fmt.Errorf("keep evidence %s: %w", h.Item.ID, err)
		}
		if full != "" {
			h = h.without(full)
		}
	}
	if err := tx.InsertEvidence(h.Item, h.Payload); err != nil {
		return Item{}, fmt.Errorf("keep evidence %s: %w", h.Item.ID, err)
	}
	return h.Item, nil
}

// full says which bound the payload would go beyond; "": none.
func (h Sealed) full(tx Tx) (string, error) {
	size, err := tx.EvidenceSize()
	if err != nil {
		return "", err
	}
	share, err := tx.EvidenceShare(h.Item.Provider)
	if err != nil {
		return "", err
	}
	most, more := h.limits.withDefaults().MaxTotal, int64(len(h.Payload))
	switch {
	case size+more > most:
		return fmt.Sprintf("all evidence together has %d bytes, at most %d are kept", size, most), nil
	case share.All+more > most/shareOfTotal:
		return fmt.Sprintf("the evidence of the provider has %d bytes, at most %d are kept", share.All, most/shareOfTotal), nil
	case h.Item.Direction == Event && share.Events+more > most/shareOfTotal/shareOfEvents:
		return fmt.Sprintf("the events of the provider have %d bytes as evidence, at most %d are kept", share.Events, most/shareOfTotal/shareOfEvents), nil
	}
	return "", nil
}
