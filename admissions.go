package ostiary

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/admission"
	"github.com/ostiary/ostiary/internal/config"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/store"
)

// admissions are what the host knows of definitions: what was offered last, what is admitted, and the book that the gate
// asks.
type admissions struct {
	book admission.Book

	mu     sync.Mutex // one comparison or decision at a time; guards what follows
	offers map[string]admission.Offer
	pins   map[admission.Key]admission.Pin // the admitted ones, with no digest in their keys

	settled atomic.Pointer[map[string]bool] // providers of which all that is offered is as it was admitted
	owed    owed
}

// admitOffers compares what all providers offer with the lock if there is one (R6.11), and with what was admitted, once they
// have started (R6.6). What the lock refuses is not taken for a first use.
func (h *Host) admitOffers(ctx context.Context) error {
	h.admitted.mu.Lock()
	defer h.admitted.mu.Unlock()
	if err := h.checkLock(); err != nil {
		return err
	}
	for _, p := range h.providers.Providers() {
		if c := p.Catalog(); c != nil {
			if err := h.compareLocked(ctx, p, descriptorsOf(c)); err != nil {
				return err
			}
		}
	}
	if err := h.reloadLocked(ctx); err != nil {
		return err
	}
	for _, w := range h.waiting() {
		h.log.Warn(w)
	}
	return nil
}

func descriptorsOf(c *provider.Catalog) []*call.Descriptor {
	out := make([]*call.Descriptor, len(c.Tools))
	for i, t := range c.Tools {
		out[i] = t.Descriptor
	}
	return out
}

func offerOf(p *provider.Provider, tools []*call.Descriptor) admission.Offer {
	return admission.Offer{Provider: p.Profile.Package, Instructions: p.Instructions(), Origin: p.Origin, ToolContract: p.ToolContract(), Tools: tools}
}

// listed looks at what a later listing offers. Calls of the provider wait for it.
func (h *Host) listed(p *provider.Provider, offered []*call.Descriptor) error {
	ctx, cancel := context.WithTimeout(context.Background(), p.Profile.Limits.Connect) // told by a watcher, which has none
	defer cancel()
	h.admitted.mu.Lock()
	defer h.admitted.mu.Unlock()
	delete(h.admitted.owed.listings, p.Profile.Package)
	err := h.compareLocked(ctx, p, offered)
	if err == nil {
		err = h.reloadLocked(ctx)
	}
	if err != nil { // what cannot be held against its pins is not used
		h.log.Error("compare a listing with what was admitted", "provider", p.Profile.Package, "err", err)
		h.admitted.owed.listing(p, offered)
		p.Quarantine(provider.ReasonSchemaDrift, "a listing could not be compared with what was admitted", h.o.Now())
	}
	return err
}

// compareLocked holds an offer against its pins and keeps what follows: what waits, what is admitted by first use, what is
// put into quarantine.
func (h *Host) compareLocked(ctx context.Context, p *provider.Provider, tools []*call.Descriptor) error {
	pkg := p.Profile.Package
	o := offerOf(p, tools)
	pins, err := h.pinsOf(ctx, pkg)
	if err != nil {
		return err
	}
	plan, err := admission.Compare(pins, o)
	if err != nil {
		return err
	}
	if !plan.Settled() { // what is as it was admitted has been looked at
		o.Findings = h.findings(ctx, &plan)
		if plan, err = admission.Compare(pins, o); err != nil {
			return err
		}
	}
	if h.admitted.offers == nil {
		h.admitted.offers = map[string]admission.Offer{}
	}
	h.admitted.offers[pkg] = o
	mode := admission.Explicit
	if c, ok := h.o.Config.Provider(pkg); ok && c.Admission == config.AdmitFirstUse {
		mode = admission.FirstUse
	}
	return h.store.Update(ctx, func(tx store.Tx) error {
		before, err := tx.Quarantines()
		if err != nil {
			return err
		}
		written, err := admission.Record(tx, &plan, mode, h.o.Now())
		if err != nil {
			return err
		}
		if err := h.appendDecided(tx, admission.ByFirstUse, pkg, written); err != nil {
			return err
		}
		after, err := tx.Quarantines()
		if err != nil {
			return err
		}
		return h.appendQuarantines(tx, before, after, "")
	})
}

func (h *Host) pinsOf(ctx context.Context, pkg string) (pins []admission.Pin, err error) {
	err = h.store.View(ctx, func(v store.View) error {
		pins, err = v.Pins(pkg)
		return err
	})
	return pins, err
}

// findings are what screening says of what is new or changed (R6.7), by raw name.
func (h *Host) findings(ctx context.Context, plan *admission.Plan) map[string][]string {
	out := map[string][]string{}
	for _, i := range append([]admission.Item{plan.Itself}, plan.Tools...) {
		if i.Standing == admission.Unchanged || i.Offered == nil {
			continue
		}
		for _, f := range h.screened(ctx, i.Offered) {
			if s := string(f.Code) + " " + f.Place; !slices.Contains(out[i.RawName], s) {
				out[i.RawName] = append(out[i.RawName], s)
			}
		}
	}
	return out
}

// screened are the findings in one definition, or in the instructions.
func (h *Host) screened(ctx context.Context, pin *admission.Pin) []firewall.Finding {
	if pin.RawName != "" {
		return h.firewall.ScreenDefinition(ctx, pin.Definition, pin.RawName, h.foreignNames(pin.Provider))
	}
	v := h.firewall.ScreenText(ctx, []byte(instructionsIn(pin)), firewall.Rules{})
	out := slices.DeleteFunc(v.Findings, func(f firewall.Finding) bool { return f.Code.Info().Result == firewall.Accept })
	for i := range out {
		out[i].Place = "/instructions" // where the text is in what is shown
	}
	return out
}

// foreignNames are the tools of all providers but one, without those that it has itself: two providers may be of one kind.
func (h *Host) foreignNames(pkg string) (names []string) {
	own := map[string]bool{}
	for _, foreign := range []bool{false, true} {
		for _, p := range h.providers.Providers() {
			c := p.Catalog()
			if c == nil || (p.Profile.Package != pkg) != foreign {
				continue
			}
			for _, t := range c.Tools {
				if !foreign {
					own[t.RawName] = true
				} else if !own[t.RawName] {
					names = append(names, t.RawName)
				}
			}
		}
	}
	return names
}

func instructionsIn(pin *admission.Pin) string {
	var said struct {
		Instructions string `json:"instructions"`
	}
	_ = json.Unmarshal(pin.Definition, &said) // our own object, see admission.Pin
	return said.Instructions
}

// contractIn says whether a provider was admitted with tool-contract.
func contractIn(pin *admission.Pin) bool {
	var said struct {
		ToolContract int `json:"tool_contract"`
	}
	_ = json.Unmarshal(pin.Definition, &said) // our own object, see admission.Pin
	return said.ToolContract == 1
}

// reload reads what is admitted and what is in quarantine, and has the gate, the providers and the exports follow.
func (h *Host) reload(ctx context.Context) error {
	h.admitted.mu.Lock()
	defer h.admitted.mu.Unlock()
	return h.reloadLocked(ctx)
}

func (h *Host) reloadLocked(ctx context.Context) error {
	var pins []admission.Pin
	var quarantines []admission.Quarantine
	err := h.store.View(ctx, func(v store.View) (err error) {
		if err := h.admitted.book.Load(v); err != nil {
			return err
		}
		if pins, err = v.Pins(""); err != nil {
			return err
		}
		quarantines, err = v.Quarantines()
		return err
	})
	if err != nil {
		return fmt.Errorf("read what is admitted: %w", err)
	}
	h.admitted.pins = map[admission.Key]admission.Pin{}
	for _, p := range pins {
		if p.State == admission.Admitted {
			h.admitted.pins[admission.Key{Provider: p.Provider, RawName: p.RawName}] = p
		}
	}
	settled := map[string]bool{}
	for pkg, o := range h.admitted.offers {
		plan, err := admission.Compare(pins, o)
		settled[pkg] = err == nil && !slices.ContainsFunc(append(plan.Tools, plan.Itself), func(i admission.Item) bool {
			return i.Standing != admission.Unchanged && i.Standing != admission.Removed
		})
	}
	h.admitted.settled.Store(&settled)
	whole := map[string]admission.Quarantine{}
	for _, q := range quarantines {
		if q.Tool == "" {
			whole[q.Provider] = q
		}
	}
	for _, p := range h.providers.Providers() {
		if _, open := h.admitted.owed.listings[p.Profile.Package]; open || p.Catalog() == nil {
			continue
		}
		if q, ok := whole[p.Profile.Package]; ok {
			p.Quarantine(provider.ReasonCode(q.Reason), q.Detail, h.o.Now())
		} else {
			p.Readmit(h.o.Now())
		}
	}
	return h.refreshExports()
}

// isolate keeps a quarantine that a call has found a ground for.
func (h *Host) isolate(ctx context.Context, q admission.Quarantine) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	h.admitted.mu.Lock()
	defer h.admitted.mu.Unlock()
	err := h.keepQuarantine(ctx, q)
	if err == nil {
		err = h.reloadLocked(ctx)
	}
	if err != nil {
		h.log.Error("keep a quarantine", "provider", q.Provider, "tool", q.Tool, "err", err)
	}
}

// drifted says whether the tool that calls would go to now is not the one that was admitted.
func (h *Host) drifted(pkg, rawName string) bool {
	for _, p := range h.providers.Providers() {
		c := p.Catalog()
		if c == nil || p.Profile.Package != pkg {
			continue
		}
		for _, t := range c.Tools {
			if t.RawName == rawName {
				no, ok := errors.AsType[*admission.Refusal](h.admitted.book.Check(t.Descriptor))
				return ok && no.Drift
			}
		}
	}
	return false
}

// heldIn counts the tools of a catalog that cannot be used until somebody has looked.
func (h *Host) heldIn(c *provider.Catalog) (n int) {
	for _, t := range c.Tools {
		if h.admitted.book.Check(t.Descriptor) != nil {
			n++
		}
	}
	return n
}

// waiting says of which providers tools cannot be used until somebody has looked, and what to do: where all that is offered
// is as it was admitted there is nothing to admit.
func (h *Host) waiting() (out []string) {
	settled := h.admitted.settled.Load()
	for _, p := range h.providers.Providers() {
		c := p.Catalog()
		if c == nil {
			continue
		}
		n, pkg := h.heldIn(c), p.Profile.Package
		switch {
		case n > 0 && settled != nil && (*settled)[pkg]:
			out = append(out, fmt.Sprintf("provider %s: %d of %d tools are in quarantine, though they are offered as they were admitted (ostiary drift %s shows what releases them)", pkg, n, len(c.Tools), pkg))
		case n > 0:
			out = append(out, fmt.Sprintf("provider %s: %d of %d tools wait for somebody to look at them (ostiary admit %s)", pkg, n, len(c.Tools), pkg))
		}
	}
	return out
}

// checkLock holds what is offered against the lock.
func (h *Host) checkLock() error {
	if h.lock == nil {
		return nil
	}
	var offers []admission.Offer
	for _, p := range h.providers.Providers() {
		if c := p.Catalog(); c != nil {
			offers = append(offers, offerOf(p, descriptorsOf(c)))
		}
	}
	differences, err := admission.CheckLocked(*h.lock, offers)
	if err != nil {
		return fmt.Errorf("lock file: %w", err)
	}
	var errs []error
	for _, d := range differences {
		errs = append(errs, errors.New(d.String()))
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", ErrNotLocked, errors.Join(errs...))
	}
	return nil
}

// appendDecided records definitions that were decided on, one record a provider and state (R9.1).
func (h *Host) appendDecided(tx store.Tx, decider, pkg string, pins []admission.Pin) error {
	for _, state := range []admission.State{admission.Admitted, admission.Refused} {
		tools, findings, reason := map[string]string{}, map[string][]string{}, ""
		for _, p := range pins {
			if p.State == state {
				tools[p.RawName] = p.DescriptorDigest.String()
				if len(p.Findings) > 0 {
					findings[p.RawName] = p.Findings
				}
				reason = p.Reason
			}
		}
		if len(tools) == 0 {
			continue
		}
		body := map[string]any{"provider": pkg, "state": state.String(), "decider": decider, "definitions": tools}
		if len(findings) > 0 {
			body["findings"] = findings
		}
		if reason != "" {
			body["reason"] = reason
		}
		if err := h.append(tx, ledger.KindAdmission, decider, body); err != nil {
			return err
		}
	}
	return nil
}

// appendQuarantines records what was put into quarantine, and what was let out of it.
func (h *Host) appendQuarantines(tx store.Tx, before, after []admission.Quarantine, by string) error {
	at := func(list []admission.Quarantine, q admission.Quarantine) int {
		return slices.IndexFunc(list, func(o admission.Quarantine) bool { return o.Provider == q.Provider && o.Tool == q.Tool })
	}
	body := func(q admission.Quarantine) map[string]any {
		return map[string]any{"provider": q.Provider, "tool": q.Tool, "reason": string(q.Reason), "detail": q.Detail}
	}
	for _, q := range after {
		if i := at(before, q); i < 0 || before[i].Reason != q.Reason {
			if err := h.append(tx, ledger.KindQuarantineSet, q.By, body(q)); err != nil {
				return err
			}
		}
	}
	for _, q := range before {
		if at(after, q) < 0 {
			if err := h.append(tx, ledger.KindQuarantineEnded, by, body(q)); err != nil {
				return err
			}
		}
	}
	return nil
}
