package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/drift"
)

// memory is a store of pins and quarantine without transactions: a test that wants a function undone does not use it.
type memory struct {
	pins        map[Key]Pin
	quarantines map[tool]Quarantine
}

func newMemory() *memory { return &memory{map[Key]Pin{}, map[tool]Quarantine{}} }

func (m *memory) PutPin(p Pin) error    { m.pins[p.Key()] = p; return nil }
func (m *memory) DeletePin(k Key) error { delete(m.pins, k); return nil }
func (m *memory) Pins(provider string) (out []Pin, err error) {
	for _, p := range m.pins {
		if provider == "" || p.Provider == provider {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b Pin) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.RawName, b.RawName), a.FirstSeen.Compare(b.FirstSeen), cmp.Compare(a.DescriptorDigest.String(), b.DescriptorDigest.String()))
	})
	return out, nil
}
func (m *memory) PutQuarantine(q Quarantine) error {
	m.quarantines[tool{q.Provider, q.Tool}] = q
	return nil
}
func (m *memory) DeleteQuarantine(p, t string) error { delete(m.quarantines, tool{p, t}); return nil }
func (m *memory) Quarantines() ([]Quarantine, error) {
	return slices.SortedFunc(maps.Values(m.quarantines), func(a, b Quarantine) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Tool, b.Tool))
	}), nil
}

var (
	_ Tx   = (*memory)(nil)
	_ View = (*memory)(nil)
)

var noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// aTool is a frozen tool with the given rest of its definition.
func aTool(t testing.TB, name, rest string) *call.Descriptor {
	t.Helper()
	def := fmt.Appendf(nil, `{"name":%q,"inputSchema":{"type":"object"}%s}`, name, rest)
	d, err := drift.Digest(def)
	if err != nil {
		t.Fatal(err)
	}
	return &call.Descriptor{ID: call.NewToolID("files", name), Package: "files", RawName: name, Name: name, Definition: def, DescriptorDigest: d, SchemaDigest: call.Digest{9}}
}

func offer(t testing.TB, instructions string, tools ...*call.Descriptor) Offer {
	t.Helper()
	return Offer{Provider: "files", Instructions: instructions, Origin: call.Digest{7}, Tools: tools}
}

func (m *memory) compare(t testing.TB, o Offer) Plan {
	t.Helper()
	pins, _ := m.Pins(o.Provider)
	p, err := Compare(pins, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// see is what the host does with a listing.
func (m *memory) see(t testing.TB, o Offer, mode Mode) Plan {
	t.Helper()
	p := m.compare(t, o)
	if _, err := Record(m, &p, mode, noon); err != nil {
		t.Fatal(err)
	}
	return p
}

// usable are the tools of an offer that the book lets through.
func (m *memory) usable(t testing.TB, o Offer) string {
	t.Helper()
	var b Book
	if err := b.Load(m); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range o.Tools {
		if b.Check(d) == nil {
			names = append(names, d.RawName)
		}
	}
	return fmt.Sprint(names)
}

// admitAll admits what waits.
func (m *memory) admitAll(t testing.TB) {
	t.Helper()
	pins, _ := m.Pins("")
	for _, p := range pins {
		if p.State == Waiting {
			if _, err := Decide(m, "bob", noon, Verdict{Key: p.Key(), Admit: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
