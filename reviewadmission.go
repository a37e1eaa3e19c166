package ostiary

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/admission"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/store"
)

// sideWidth is that of a line of a side-by-side text.
const sideWidth = 120

// Admissions implements [Review].
func (h *Host) Admissions(ctx context.Context, pkg string) ([]Admission, error) {
	h.admitted.mu.Lock()
	defer h.admitted.mu.Unlock()
	return h.admissionsLocked(ctx, pkg)
}

func (h *Host) admissionsLocked(ctx context.Context, pkg string) ([]Admission, error) {
	pins, err := h.pinsOf(ctx, pkg)
	if err != nil {
		return nil, err
	}
	byProvider := map[string][]admission.Pin{}
	for _, p := range pins {
		byProvider[p.Provider] = append(byProvider[p.Provider], p)
	}
	var out []Admission
	for _, p := range h.o.Config.Providers {
		name := p.Profile.Package
		if pkg != "" && name != pkg {
			continue
		}
		items, err := h.standing(name, byProvider[name])
		if err != nil {
			return nil, err
		}
		for i := range items {
			out = append(out, h.shownAdmission(ctx, name, &items[i], byProvider[name]))
		}
	}
	if len(out) == 0 && pkg != "" {
		if _, ok := h.o.Config.Provider(pkg); !ok {
			return nil, fmt.Errorf("provider %s: %w", pkg, store.ErrNotFound)
		}
	}
	return out, nil
}

// standing is where everything of a provider stands: by its last listing, or without one by what waits.
func (h *Host) standing(pkg string, pins []admission.Pin) ([]admission.Item, error) {
	if o, ok := h.admitted.offers[pkg]; ok {
		plan, err := admission.Compare(pins, o)
		if err != nil {
			return nil, err
		}
		items := plan.Tools
		if plan.Itself.Standing != admission.Unchanged || o.Instructions != "" || o.ToolContract {
			items = append([]admission.Item{plan.Itself}, items...)
		}
		return items, nil
	}
	byName := map[string]*admission.Item{}
	item := func(name string) *admission.Item {
		if byName[name] == nil {
			byName[name] = &admission.Item{RawName: name, Standing: admission.Unchanged}
		}
		return byName[name]
	}
	for k := range pins {
		if p := &pins[k]; p.State == admission.Admitted {
			i := item(p.RawName)
			i.Admitted, i.Offered = p, p
		}
	}
	for k := range pins {
		p := &pins[k]
		if p.State == admission.Refused && byName[p.RawName] == nil {
			i := item(p.RawName)
			i.Offered, i.Standing = p, admission.RefusedStanding
		}
	}
	for k := range pins {
		p := &pins[k]
		if p.State != admission.Waiting {
			continue
		}
		i := item(p.RawName)
		i.Offered, i.Standing = p, admission.New
		if i.Admitted != nil {
			o := admission.Offer{Provider: pkg, ToolContract: h.contractOf(pkg, pins), Tools: []*call.Descriptor{{RawName: p.RawName, Definition: p.Definition, DescriptorDigest: p.DescriptorDigest, SchemaDigest: p.SchemaDigest}}}
			i.Standing = admission.Changed
			if p.RawName != "" {
				plan, err := admission.Compare([]admission.Pin{*i.Admitted}, o)
				if err != nil {
					return nil, err
				}
				i.Fields, i.Class = plan.Tools[0].Fields, plan.Tools[0].Class
			}
		}
	}
	var out []admission.Item
	for _, i := range byName {
		if i.RawName == "" && i.Standing == admission.Unchanged && instructionsIn(i.Admitted) == "" && !contractIn(i.Admitted) {
			continue
		}
		out = append(out, *i)
	}
	slices.SortFunc(out, func(a, b admission.Item) int { return cmp.Compare(a.RawName, b.RawName) })
	return out, nil
}

// contractOf says whether tool-contract holds with a provider: by its connection, or without one as it was admitted.
func (h *Host) contractOf(pkg string, pins []admission.Pin) bool {
	if o, ok := h.admitted.offers[pkg]; ok {
		return o.ToolContract
	}
	return slices.ContainsFunc(pins, func(p admission.Pin) bool {
		return p.Provider == pkg && p.RawName == "" && p.State == admission.Admitted && contractIn(&p)
	})
}

func (h *Host) shownAdmission(ctx context.Context, pkg string, i *admission.Item, pins []admission.Pin) Admission {
	a := Admission{Provider: pkg, Tool: i.RawName, Standing: strings.ToLower(i.Standing.String())}
	var before, now []byte
	if p := i.Admitted; p != nil {
		before = p.Definition
		a.From, a.Digest, a.Old = p.DescriptorDigest.String(), p.DescriptorDigest.String(), string(p.Definition)
		a.Decider, a.Decided = p.Decider, p.Decided
	}
	if p := i.Offered; p != nil {
		now = p.Definition
		a.Digest, a.New = p.DescriptorDigest.String(), string(p.Definition)
	}
	if i.RawName != "" && i.Offered != nil {
		scopes, err := provider.ScopesOf(pkg, i.Offered.Definition, h.contractOf(pkg, pins))
		if err != nil { // a provider that is running is not taken over by it: see Freeze
			a.ScopesFault = err.Error()
		} else {
			a.Observe, a.Publish = templatesOf(scopes.Observe), templatesOf(scopes.Publish)
		}
	}
	switch i.Standing {
	case admission.Unchanged:
		a.Standing = "admitted"
		return a
	case admission.Changed, admission.RefusedStanding:
		if i.Admitted != nil {
			a.Class, a.Fields = strings.ToLower(i.Class.String()), i.Fields
		}
	}
	for _, p := range pins {
		if p.State == admission.Refused && i.Offered != nil && p.Key() == i.Offered.Key() {
			a.Decider, a.Decided = p.Decider, p.Decided
		}
	}
	if i.Offered != nil {
		for _, f := range h.screened(ctx, i.Offered) {
			a.Findings = append(a.Findings, Finding{Code: string(f.Code), Class: string(f.Class), Sensitivity: f.Sensitivity.String(), Place: f.Place, Excerpt: f.Excerpt})
		}
	}
	if !bytes.Equal(before, now) {
		a.Side = admission.SideBySide(before, now, sideWidth)
	}
	return a
}

// Admit implements [Review]. What is admitted is what is served: a provider whose definitions changed gets a new generation.
func (h *Host) Admit(ctx context.Context, d AdmissionDecision) ([]Admission, error) {
	h.admitted.mu.Lock()
	defer h.admitted.mu.Unlock()
	if _, ok := h.o.Config.Provider(d.Provider); !ok {
		return nil, fmt.Errorf("admit: provider %s: %w", d.Provider, store.ErrNotFound)
	}
	err := h.store.Update(ctx, func(tx store.Tx) error {
		pins, err := tx.Pins(d.Provider)
		if err != nil {
			return err
		}
		verdicts, err := verdictsOf(d, pins)
		if err != nil {
			return err
		}
		before, err := tx.Quarantines()
		if err != nil {
			return err
		}
		decided, err := admission.Decide(tx, operator.ID, h.o.Now(), verdicts...)
		if err != nil {
			return err
		}
		if err := h.appendDecided(tx, operator.ID, d.Provider, decided); err != nil {
			return err
		}
		after, err := tx.Quarantines()
		if err != nil {
			return err
		}
		return h.appendQuarantines(tx, before, after, operator.ID)
	})
	if err != nil {
		return nil, fmt.Errorf("decide on definitions of %s: %w", d.Provider, err)
	}
	return h.follow(ctx, d.Provider, !d.Refuse)
}

// follow has the running provider be what was decided.
func (h *Host) follow(ctx context.Context, pkg string, restage bool) ([]Admission, error) {
	if restage && h.stale(ctx, pkg) {
		if err := h.providers.Restage(ctx, pkg); err != nil {
			// What was decided stands; the old catalog is not what was admitted, so nothing of it is called.
			h.log.Warn("take what was admitted into use", "provider", pkg, "err", err)
		} else if p := h.provider(pkg); p != nil {
			if err := h.compareLocked(ctx, p, descriptorsOf(p.Catalog())); err != nil {
				return nil, err
			}
		}
	}
	if err := h.reloadLocked(ctx); err != nil {
		return nil, err
	}
	return h.admissionsLocked(ctx, pkg)
}

// stale says whether the frozen catalog lacks a definition that is admitted.
func (h *Host) stale(ctx context.Context, pkg string) bool {
	p := h.provider(pkg)
	if p == nil || p.Catalog() == nil {
		return false
	}
	frozen := map[string]call.Digest{}
	for _, t := range p.Catalog().Tools {
		frozen[t.RawName] = t.DescriptorDigest
	}
	pins, err := h.pinsOf(ctx, pkg)
	return err != nil || slices.ContainsFunc(pins, func(p admission.Pin) bool {
		return p.State == admission.Admitted && p.RawName != "" && frozen[p.RawName] != p.DescriptorDigest
	})
}

// verdictsOf turns a decision into verdicts on what waits, or on what was decided otherwise before.
func verdictsOf(d AdmissionDecision, pins []admission.Pin) (out []admission.Verdict, err error) {
	if d.All {
		for _, p := range pins {
			if p.RawName != "" && p.State == admission.Admitted {
				return nil, fmt.Errorf("%w: everything at once can be admitted only the first time; name the tools", ErrInvalidDecision)
			}
			if p.State == admission.Waiting {
				out = append(out, admission.Verdict{Key: p.Key(), Admit: !d.Refuse, Reason: d.Reason})
			}
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("%w: nothing waits", ErrInvalidDecision)
		}
		return out, nil
	}
	for name, text := range d.Tools {
		digest, err := parseDigest(text)
		if err != nil {
			return nil, fmt.Errorf("tool %q: %w", name, err)
		}
		v := admission.Verdict{Key: admission.Key{Provider: d.Provider, RawName: name, Digest: digest}, Admit: !d.Refuse, Reason: d.Reason}
		for _, p := range pins {
			if p.Key() == v.Key {
				v.From = p.State
			}
		}
		out = append(out, v)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: nothing is named", ErrInvalidDecision)
	}
	slices.SortFunc(out, func(a, b admission.Verdict) int { return cmp.Compare(a.RawName, b.RawName) })
	return out, nil
}

func parseDigest(text string) (d call.Digest, err error) {
	digits, ok := strings.CutPrefix(text, "sha256:")
	if !ok || len(digits) != hex.EncodedLen(len(d)) {
		return d, fmt.Errorf("%w: expected a digest, sha256: and 64 hexadecimal digits", ErrInvalidDecision)
	}
	if _, err := hex.Decode(d[:], []byte(digits)); err != nil {
		return d, fmt.Errorf("%w: expected a digest: %w", ErrInvalidDecision, err)
	}
	return d, nil
}

// Quarantined implements [Review].
func (h *Host) Quarantined(ctx context.Context) (out []QuarantineInfo, err error) {
	err = h.store.View(ctx, func(v store.View) error {
		all, err := v.Quarantines()
		for _, q := range all {
			out = append(out, shownQuarantine(q))
		}
		return err
	})
	return out, err
}

func shownQuarantine(q admission.Quarantine) QuarantineInfo {
	return QuarantineInfo{Provider: q.Provider, Tool: q.Tool, Reason: string(q.Reason), Text: q.Detail, Since: q.Since, By: q.By}
}

// Release implements [Review]. What is offered must be what was admitted: a change is admitted or refused, not let through.
func (h *Host) Release(ctx context.Context, pkg, tool, reason string) (info QuarantineInfo, err error) {
	h.admitted.mu.Lock()
	defer h.admitted.mu.Unlock()
	all, err := h.admissionsLocked(ctx, pkg)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return info, err
	}
	for _, a := range all {
		if a.Tool == tool && a.From != "" && a.Digest != a.From && a.Standing != "removed" {
			return info, fmt.Errorf("release %s of %s: %w: what is offered is not what was admitted; admit or refuse the change", orProvider(tool), pkg, ErrInvalidDecision)
		}
	}
	err = h.store.Update(ctx, func(tx store.Tx) error {
		q, ok, err := admission.Release(tx, pkg, tool)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("release %s of %s: quarantine %w", orProvider(tool), pkg, store.ErrNotFound)
		}
		info = shownQuarantine(q)
		return h.append(tx, ledger.KindQuarantineEnded, operator.ID, map[string]any{"provider": pkg, "tool": tool, "reason": string(q.Reason), "words": reason})
	})
	if err != nil {
		return QuarantineInfo{}, err
	}
	// What is offered again may not be what is frozen. A provider that is configured no more has nothing to follow.
	if _, err = h.follow(ctx, pkg, true); errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return info, err
}

func orProvider(tool string) string {
	if tool == "" {
		return "the whole"
	}
	return "tool " + tool
}

// Lock implements [Review].
func (h *Host) Lock(ctx context.Context) ([]byte, error) {
	h.admitted.mu.Lock()
	defer h.admitted.mu.Unlock()
	pins, err := h.pinsOf(ctx, "")
	if err != nil {
		return nil, err
	}
	var offers []admission.Offer
	for _, p := range h.o.Config.Providers {
		if p.Profile.Trust == provider.Blocked { // it is never started
			continue
		}
		o := admission.Offer{Provider: p.Profile.Package}
		known := false
		for i := range pins {
			pin := &pins[i]
			switch {
			case pin.Provider != o.Provider || pin.State != admission.Admitted || pin.RawName != "" && !h.mayOffer(&p.Profile, pin.RawName):
				continue
			case pin.RawName == "":
				o.Instructions, o.ToolContract = instructionsIn(pin), contractIn(pin)
			default:
				o.Tools = append(o.Tools, &call.Descriptor{RawName: pin.RawName, SchemaDigest: pin.SchemaDigest, DescriptorDigest: pin.DescriptorDigest})
			}
			known = true
		}
		if known {
			offers = append(offers, o)
		}
	}
	lock, err := admission.LockOf(offers)
	if err != nil {
		return nil, err
	}
	return lock.Render()
}

// mayOffer says whether a provider can offer a tool: it is allowed, and was there in the last listing if there was one.
func (h *Host) mayOffer(p *provider.Profile, rawName string) bool {
	if !slices.ContainsFunc(p.AllowedTools, func(t provider.AllowedTool) bool { return t.Raw == rawName }) {
		return false
	}
	o, ok := h.admitted.offers[p.Package]
	return !ok || slices.ContainsFunc(o.Tools, func(d *call.Descriptor) bool { return d.RawName == rawName })
}
