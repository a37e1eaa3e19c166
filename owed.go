package ostiary

import (
	"context"
	"errors"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/admission"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/store"
)

// owed is what is to be written once the store can be written again: listings that could not be held against their pins,
// and quarantines that could not be kept. Until then a provider of the former is not used, and the gate refuses the tools
// of the latter by what it sees of them. Guarded by admissions.mu.
type owed struct {
	listings    map[string]listing // by package
	quarantines map[admission.Key]admission.Quarantine
}

type listing struct {
	provider *provider.Provider
	offered  []*call.Descriptor
}

func (o *owed) listing(p *provider.Provider, offered []*call.Descriptor) {
	if o.listings == nil {
		o.listings = map[string]listing{}
	}
	o.listings[p.Profile.Package] = listing{p, offered}
}

func (o *owed) quarantine(q admission.Quarantine) {
	if o.quarantines == nil {
		o.quarantines = map[admission.Key]admission.Quarantine{}
	}
	o.quarantines[admission.Key{Provider: q.Provider, RawName: q.Tool}] = q
}

// catchUp writes what could not be written when it was known (F-04): outcomes of calls, quarantines, listings.
func (h *Host) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	if h.store.Healthy() != nil {
		return nil // it is known, and the next round comes
	}
	return errors.Join(h.gate.WriteLate(ctx), h.payOwed(ctx))
}

// lastChance is catchUp when no call is in work any more.
func (h *Host) lastChance(ctx context.Context) error {
	err := h.catchUp(ctx)
	if n := h.gate.Late(); n > 0 {
		h.log.Error("outcomes could not be written: the next start records their calls as interrupted", "outcomes", n)
	}
	return err
}

func (h *Host) payOwed(ctx context.Context) error {
	h.admitted.mu.Lock()
	defer h.admitted.mu.Unlock()
	o := &h.admitted.owed
	if len(o.listings) == 0 && len(o.quarantines) == 0 {
		return nil
	}
	for _, q := range o.quarantines {
		if err := h.keepQuarantine(ctx, q); err != nil {
			return err
		}
	}
	for pkg, l := range o.listings {
		if err := h.compareLocked(ctx, l.provider, l.offered); err != nil {
			return err
		}
		delete(o.listings, pkg)
	}
	return h.reloadLocked(ctx)
}

// keepQuarantine writes a quarantine and its record, unless somebody has admitted meanwhile what it is about.
func (h *Host) keepQuarantine(ctx context.Context, q admission.Quarantine) error {
	delete(h.admitted.owed.quarantines, admission.Key{Provider: q.Provider, RawName: q.Tool})
	if q.Tool != "" && !h.drifted(q.Provider, q.Tool) {
		return nil
	}
	err := h.store.Update(ctx, func(tx store.Tx) error {
		before, err := tx.Quarantines()
		if err != nil {
			return err
		}
		if err := admission.Isolate(tx, q); err != nil {
			return err
		}
		after, err := tx.Quarantines()
		if err != nil {
			return err
		}
		return h.appendQuarantines(tx, before, after, "")
	})
	if err != nil {
		h.admitted.owed.quarantine(q)
	}
	return err
}
