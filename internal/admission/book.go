package admission

import (
	"sync/atomic"

	"github.com/ostiary/ostiary/call"
)

// Refusal says why a tool may not be used, in words that are our own.
type Refusal struct {
	Code   call.Code
	Text   string
	Reason Reason // of its quarantine, if it is in quarantine
	// Drift says that this is news: the tool is not the one that was admitted, and is to be put into quarantine (R6.6).
	Drift bool
}

func (r *Refusal) Error() string { return r.Text }

// Book answers before every call whether a tool is the one that was admitted. It is a snapshot of the rows that is replaced
// after each commit that changes them; reading takes no lock. Its zero value admits nothing.
type Book struct {
	pages   atomic.Pointer[pages]
	builtIn map[tool]call.Digest // of what is a part of the program; set before anything is checked
}

type pages struct {
	admitted   map[tool]call.Digest // the provider itself under the name ""
	refused    map[Key]bool
	quarantine map[tool]Quarantine
}

type tool struct{ provider, rawName string }

// Vouch admits what is a part of the program (R2.5): it was compiled in, so there is nobody to admit it, no row that stands
// for it, and no quarantine. It is to be called before anything is checked.
func (b *Book) Vouch(own ...*call.Descriptor) {
	if b.builtIn == nil {
		b.builtIn = map[tool]call.Digest{}
	}
	for _, d := range own {
		b.builtIn[tool{d.Package, d.RawName}] = d.DescriptorDigest
	}
}

// Load reads the rows again. It is to be called at the start and after each commit that may have changed pins or
// quarantine; calls of it must not overlap, or an older state may stay.
func (b *Book) Load(v View) error {
	pins, err := v.Pins("")
	if err != nil {
		return err
	}
	quarantines, err := v.Quarantines()
	if err != nil {
		return err
	}
	p := &pages{map[tool]call.Digest{}, map[Key]bool{}, map[tool]Quarantine{}}
	for i := range pins {
		switch pin := &pins[i]; pin.State {
		case Admitted:
			p.admitted[tool{pin.Provider, pin.RawName}] = pin.DescriptorDigest
		case Refused:
			p.refused[pin.Key()] = true
		}
	}
	for _, q := range quarantines {
		p.quarantine[tool{q.Provider, q.Tool}] = q
	}
	b.pages.Store(p)
	return nil
}

// CheckProvider is nil if a provider was admitted, as far as it goes without its tools, and is not in quarantine as a whole;
// otherwise a *Refusal.
func (b *Book) CheckProvider(provider string) error {
	p := b.pages.Load()
	if p == nil {
		return &Refusal{Code: call.CodeProviderUnavailable, Text: "nothing has been admitted yet"}
	}
	if q, ok := p.quarantine[tool{provider, ""}]; ok {
		return &Refusal{Code: call.CodeProviderUnavailable, Text: "the provider is in quarantine", Reason: q.Reason}
	}
	if _, ok := p.admitted[tool{provider, ""}]; !ok {
		return &Refusal{Code: call.CodeProviderUnavailable, Text: "the provider waits for admission"}
	}
	return nil
}

// Check is nil if the tool is the one that was admitted and neither it nor its provider is in quarantine; otherwise a
// *Refusal. A provider whose instructions nobody has admitted has no usable tool.
func (b *Book) Check(d *call.Descriptor) error {
	if digest, ok := b.builtIn[tool{d.Package, d.RawName}]; ok && digest == d.DescriptorDigest && !digest.IsZero() {
		return nil
	}
	p := b.pages.Load()
	if p == nil {
		return &Refusal{Code: call.CodeProviderUnavailable, Text: "nothing has been admitted yet"}
	}
	if q, ok := p.quarantine[tool{d.Package, ""}]; ok {
		return &Refusal{Code: call.CodeProviderUnavailable, Text: "the provider is in quarantine", Reason: q.Reason}
	}
	if q, ok := p.quarantine[tool{d.Package, d.RawName}]; ok && d.RawName != "" {
		return &Refusal{Code: call.CodeSchemaDrift, Text: "the tool is in quarantine", Reason: q.Reason}
	}
	if _, ok := p.admitted[tool{d.Package, ""}]; !ok {
		return &Refusal{Code: call.CodeProviderUnavailable, Text: "the provider waits for admission"}
	}
	digest, ok := p.admitted[tool{d.Package, d.RawName}]
	switch {
	case ok && d.RawName != "" && digest == d.DescriptorDigest && !digest.IsZero():
		return nil
	case p.refused[Key{d.Package, d.RawName, d.DescriptorDigest}]:
		return &Refusal{Code: call.CodeSchemaDrift, Text: "the tool was refused"}
	case ok:
		return &Refusal{Code: call.CodeSchemaDrift, Text: "the tool is not the one that was admitted", Drift: true}
	}
	return &Refusal{Code: call.CodeToolNotAllowed, Text: "the tool waits for admission"}
}
