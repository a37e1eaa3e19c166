package admission

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/drift"
)

// Offer is what a provider shows now, of what its profile allows.
type Offer struct {
	Provider     string
	Instructions string
	// Origin is a digest of how the provider is reached: command line, environment, address. A server behind the
	// same name that is started differently is not the one that was admitted. Zero: it does not count.
	Origin call.Digest
	// ToolContract says that tool-contract v1 holds on the connection: the same definitions mean other scopes without it (R4.2).
	ToolContract bool
	Tools        []*call.Descriptor
	// Findings are what screening said of a tool, by its raw name, or of the instructions, by "" (R6.7). A tool that
	// has findings is never admitted by first use.
	Findings map[string][]string
}

// Standing is where an offered definition stands. The zero value is new, which waits.
type Standing uint8

// The standings.
const (
	New Standing = iota
	Unchanged
	Changed
	Removed         // was admitted, and is not offered any more
	RefusedStanding // somebody has refused exactly this
)

var standingNames = []string{"NEW", "UNCHANGED", "CHANGED", "REMOVED", "REFUSED"}

func (s Standing) String() string { return nameOf(standingNames, s) }

// MarshalText writes the name.
func (s Standing) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name.
func (s *Standing) UnmarshalText(b []byte) (err error) {
	*s, err = parseName[Standing](standingNames, string(b), "standing")
	return err
}

// Item is one tool, or the provider itself, of a plan.
type Item struct {
	RawName  string // "" for the provider
	Standing Standing
	Admitted *Pin     // what was admitted; nil: nothing
	Offered  *Pin     // what is offered, as it would be pinned; nil if it was removed
	Fields   []string // what differs between the two, as JSON pointers (see drift.Change)
	Class    Class    // of the difference; of no meaning without one
}

// Change is the item as drift tells it; ok is false if nothing has changed.
func (i *Item) Change() (c drift.Change, ok bool) {
	c = drift.Change{Tool: i.RawName, Fields: i.Fields}
	switch {
	case i.Standing == Removed:
		c.Kind = drift.Removed
	case i.Admitted == nil:
		c.Kind = drift.Added
	case len(i.Fields) > 0:
		c.Kind = drift.Changed
	default:
		return drift.Change{}, false
	}
	return c, true
}

// Plan is what a listing means against the pins.
type Plan struct {
	Provider string
	New      bool   // there is no pin of this provider yet
	Itself   Item   // the provider: its instructions and its origin
	Tools    []Item // by raw name
}

// Usable says whether calls of a tool may be let through as far as admission goes: it and its provider are as they were
// admitted. It knows nothing of quarantine.
func (p *Plan) Usable(rawName string) bool {
	if p.Itself.Standing != Unchanged {
		return false
	}
	i, ok := slices.BinarySearchFunc(p.Tools, rawName, func(i Item, n string) int { return cmp.Compare(i.RawName, n) })
	return ok && p.Tools[i].Standing == Unchanged
}

// Settled says that everything is as it was admitted, and nothing is missing.
func (p *Plan) Settled() bool {
	return p.Itself.Standing == Unchanged && !slices.ContainsFunc(p.Tools, func(i Item) bool { return i.Standing != Unchanged })
}

// Compare holds an offer against the pins of its provider (R6.6). The whole definition counts: no field is too small.
// Empty instructions where none were ever pinned need nobody's eyes, and stand as unchanged.
func Compare(pins []Pin, o Offer) (Plan, error) {
	p := Plan{Provider: o.Provider, New: true}
	byName := map[string][]*Pin{}
	for i := range pins {
		if pin := &pins[i]; pin.Provider == o.Provider {
			p.New = false
			byName[pin.RawName] = append(byName[pin.RawName], pin)
		}
	}
	self, err := itself(&o)
	if err != nil {
		return Plan{}, err
	}
	p.Itself = item(byName[""], self)
	if p.Itself.Standing == New && o.Instructions == "" {
		p.Itself.Standing = Unchanged
	}
	for _, t := range o.Tools {
		if t.RawName == "" {
			return Plan{}, fmt.Errorf("compare %s with its pins: a tool has no name", o.Provider)
		}
		if t.DescriptorDigest.IsZero() || len(t.Definition) == 0 {
			return Plan{}, fmt.Errorf("compare %s with its pins: tool %q is not frozen", o.Provider, t.RawName)
		}
		i := item(byName[t.RawName], &Pin{
			Provider: o.Provider, RawName: t.RawName, DescriptorDigest: t.DescriptorDigest, SchemaDigest: t.SchemaDigest,
			Definition: t.Definition, Findings: o.Findings[t.RawName],
		})
		if o.ToolContract && i.Standing == Changed {
			i.contract()
		}
		p.Tools = append(p.Tools, i)
		delete(byName, t.RawName)
	}
	delete(byName, "")
	for name, pins := range byName {
		if a := admitted(pins); a != nil {
			p.Tools = append(p.Tools, Item{RawName: name, Standing: Removed, Admitted: a})
		}
	}
	slices.SortFunc(p.Tools, func(a, b Item) int { return cmp.Compare(a.RawName, b.RawName) })
	for i := 1; i < len(p.Tools); i++ {
		if p.Tools[i].RawName == p.Tools[i-1].RawName {
			return Plan{}, fmt.Errorf("compare %s with its pins: two tools have the name %q", o.Provider, p.Tools[i].RawName)
		}
	}
	return p, nil
}

// itself is the pin that the provider as such would have: its instructions, how it is reached, and whether tool-contract holds.
// Where it does not, nothing is said of it: so it was of every provider before there was such a member.
func itself(o *Offer) (*Pin, error) {
	def, err := appendText([]byte(`{"instructions":`), o.Instructions)
	if err == nil && !o.Origin.IsZero() {
		def, err = appendText(append(def, `,"origin":`...), o.Origin.String())
	}
	if o.ToolContract {
		def = append(def, `,"tool_contract":1`...)
	}
	def = append(def, '}')
	var d call.Digest
	if err == nil {
		d, err = drift.Digest(def)
	}
	if err != nil {
		return nil, fmt.Errorf("pin instructions of %s: %w", o.Provider, err)
	}
	return &Pin{Provider: o.Provider, DescriptorDigest: d, Definition: def, Findings: o.Findings[""]}, nil
}

func appendText(dst []byte, s string) ([]byte, error) {
	return jsontext.AppendQuote(dst, strings.ToValidUTF8(s, "\uFFFD"))
}

func admitted(pins []*Pin) *Pin {
	for _, p := range pins {
		if p.State == Admitted {
			return p
		}
	}
	return nil
}

func item(pins []*Pin, offered *Pin) Item {
	i := Item{RawName: offered.RawName, Admitted: admitted(pins), Offered: offered}
	if a := i.Admitted; a != nil {
		if a.DescriptorDigest == offered.DescriptorDigest && a.RawName == offered.RawName {
			i.Standing = Unchanged
			return i
		}
		i.Standing = Changed
		i.Fields = fields(a.Definition, offered.Definition)
		i.Class = ClassOf(i.Fields)
	}
	for _, p := range pins {
		if p.State == Refused && p.DescriptorDigest == offered.DescriptorDigest {
			i.Standing = RefusedStanding
		}
	}
	return i
}

// contractKey is where in _meta a definition says what its tool observes and publishes.
const contractKey = "org.aurorabot/tool-contract"

// contract has a difference in what the tool observes and publishes count as one of authority, wherever in _meta it is.
func (i *Item) contract() {
	was, is := contractIn(i.Admitted.Definition), contractIn(i.Offered.Definition)
	if len(drift.Diff(was, is)) == 0 {
		return
	}
	const field = "/_meta/org.aurorabot~1tool-contract"
	if !slices.Contains(i.Fields, field) {
		i.Fields = append(i.Fields, field)
		slices.Sort(i.Fields)
	}
	i.Class = Authority
}

// contractIn is what a definition says of its contract, if it says anything.
func contractIn(definition []byte) map[string][]byte {
	tool, _ := drift.Members(definition)
	meta, _ := drift.Members(tool["_meta"])
	if said, ok := meta[contractKey]; ok {
		return map[string][]byte{contractKey: said}
	}
	return nil
}

// fields names the members that differ. Two definitions whose digests differ always differ in something.
func fields(before, after []byte) []string {
	d := drift.Diff(map[string][]byte{"": before}, map[string][]byte{"": after})
	if len(d) == 0 || len(d[0].Fields) == 0 || bytes.Equal(before, after) {
		return []string{"/"}
	}
	return d[0].Fields
}
