package admission

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/drift"
	"github.com/ostiary/ostiary/internal/review"
)

// lockVersion is the only version of the file that there is.
const lockVersion = 1

// Lock is a whole set of catalogs, pinned for review and version control (R6.11). Its order does not matter; the file's is
// fixed.
type Lock struct{ Providers []LockedProvider }

// LockedProvider is one provider of a lock.
type LockedProvider struct {
	Package      string
	Instructions call.Digest
	ToolContract bool // tool-contract v1 holds; its tools mean other scopes without it
	Tools        []LockedTool
}

// LockedTool is one tool of a lock.
type LockedTool struct {
	RawName    string
	Schema     call.Digest
	Descriptor call.Digest
}

// LockOf locks what is offered.
func LockOf(offers []Offer) (Lock, error) {
	var l Lock
	for _, o := range offers {
		text, err := appendText(nil, o.Instructions)
		if err != nil {
			return Lock{}, fmt.Errorf("lock %s: %w", o.Provider, err)
		}
		p := LockedProvider{Package: o.Provider, ToolContract: o.ToolContract}
		if p.Instructions, err = drift.Digest(text); err != nil {
			return Lock{}, fmt.Errorf("lock %s: %w", o.Provider, err)
		}
		for _, t := range o.Tools {
			p.Tools = append(p.Tools, LockedTool{t.RawName, t.SchemaDigest, t.DescriptorDigest})
		}
		l.Providers = append(l.Providers, p)
	}
	l.sort()
	return l, l.validate()
}

func (l *Lock) sort() {
	slices.SortFunc(l.Providers, func(a, b LockedProvider) int { return cmp.Compare(a.Package, b.Package) })
	for _, p := range l.Providers {
		slices.SortFunc(p.Tools, func(a, b LockedTool) int { return cmp.Compare(a.RawName, b.RawName) })
	}
}

// validate expects a sorted lock.
func (l *Lock) validate() error {
	var faults []error
	for i, p := range l.Providers {
		if err := call.CheckPackage(p.Package); err != nil {
			faults = append(faults, err)
		}
		if i > 0 && p.Package == l.Providers[i-1].Package {
			faults = append(faults, fmt.Errorf("provider %s is there twice", p.Package))
		}
		if p.Instructions.IsZero() {
			faults = append(faults, fmt.Errorf("provider %s: no digest of its instructions", p.Package))
		}
		for k, t := range p.Tools {
			switch {
			case t.RawName == "" || !utf8.ValidString(t.RawName):
				faults = append(faults, fmt.Errorf("provider %s: a tool without a name", p.Package))
			case k > 0 && t.RawName == p.Tools[k-1].RawName:
				faults = append(faults, fmt.Errorf("provider %s: tool %q is there twice", p.Package, review.Clip(t.RawName, 120)))
			case t.Schema.IsZero() || t.Descriptor.IsZero():
				faults = append(faults, fmt.Errorf("provider %s: tool %q lacks a digest", p.Package, review.Clip(t.RawName, 120)))
			}
		}
	}
	return errors.Join(faults...)
}

// Render writes the lock file: sorted, a value a line, the same bytes for the same lock. l is sorted by it.
func (l *Lock) Render() ([]byte, error) {
	l.sort()
	if err := l.validate(); err != nil {
		return nil, fmt.Errorf("write lock file: %w", err)
	}
	var b bytes.Buffer
	b.WriteString("# What is admitted of each provider. Written by `ostiary lock`; a start with --locked refuses anything else.\n")
	fmt.Fprintf(&b, "version = %d\n", lockVersion)
	for _, p := range l.Providers {
		fmt.Fprintf(&b, "\n[[provider]]\npackage      = %q\ninstructions = %q\n", p.Package, p.Instructions)
		if p.ToolContract {
			b.WriteString("tool_contract = true\n")
		}
		for _, t := range p.Tools {
			fmt.Fprintf(&b, "\n[[provider.tool]]\nname       = %s\nschema     = %q\ndescriptor = %q\n", tomlString(t.RawName), t.Schema, t.Descriptor)
		}
	}
	return b.Bytes(), nil
}

// tomlString writes a basic string in which nothing hides.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case review.Hidden(r):
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// ParseLock reads a lock file. Unknown keys, wrong digests and doubles are faults.
func ParseLock(text []byte) (Lock, error) {
	var f struct {
		Version   int `toml:"version"`
		Providers []struct {
			Package      string `toml:"package"`
			Instructions string `toml:"instructions"`
			ToolContract bool   `toml:"tool_contract"`
			Tools        []struct {
				Name       string `toml:"name"`
				Schema     string `toml:"schema"`
				Descriptor string `toml:"descriptor"`
			} `toml:"tool"`
		} `toml:"provider"`
	}
	dec := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return Lock{}, fmt.Errorf("read lock file: %w", whereInLock(err))
	}
	if f.Version != lockVersion {
		return Lock{}, fmt.Errorf("read lock file: it has version %d, this program knows %d", f.Version, lockVersion)
	}
	var l Lock
	var faults []error
	digest := func(s string) call.Digest {
		d, err := parseDigest(s)
		if err != nil {
			faults = append(faults, err)
		}
		return d
	}
	for _, p := range f.Providers {
		lp := LockedProvider{Package: p.Package, Instructions: digest(p.Instructions), ToolContract: p.ToolContract}
		for _, t := range p.Tools {
			lp.Tools = append(lp.Tools, LockedTool{t.Name, digest(t.Schema), digest(t.Descriptor)})
		}
		l.Providers = append(l.Providers, lp)
	}
	l.sort()
	if err := errors.Join(append(faults, l.validate())...); err != nil {
		return Lock{}, fmt.Errorf("read lock file: %w", err)
	}
	return l, nil
}

// whereInLock says of a fault of the file where it is.
func whereInLock(err error) error {
	if s, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		var all []error
		for i := range s.Errors {
			line, _ := s.Errors[i].Position()
			all = append(all, fmt.Errorf("line %d: %s: a lock has no such key; write the file with ostiary lock", line, review.Clip(strings.Join(s.Errors[i].Key(), "."), 100)))
		}
		return errors.Join(all...)
	}
	if d, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := d.Position()
		return fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	return err
}

func parseDigest(s string) (d call.Digest, err error) {
	text, ok := strings.CutPrefix(s, "sha256:")
	if ok && len(text) == 2*len(d) {
		if _, err = hex.Decode(d[:], []byte(text)); err == nil && d.String() == s {
			return d, nil
		}
	}
	return call.Digest{}, fmt.Errorf("%q is no digest: expected sha256: and 64 lower-case hex digits", review.Clip(s, 100))
}

// Difference is one way in which what is offered is not what was locked.
type Difference struct {
	Provider string
	Tool     string // raw name; "" for the provider itself
	What     string // "missing", "not locked", "instructions", "tool contract", "schema", "descriptor"
	Locked   call.Digest
	Found    call.Digest
}

func (d Difference) String() string {
	s := "provider " + d.Provider
	if d.Tool != "" {
		s += ", tool " + review.Clip(d.Tool, 120)
	}
	switch d.What {
	case "missing":
		return s + ": is locked, but not offered"
	case "not locked":
		return s + ": is offered, but not locked"
	case "tool contract":
		return s + ": tool-contract is negotiated where it is not locked, or the other way round"
	}
	return fmt.Sprintf("%s: %s is %s, locked is %s", s, d.What, d.Found, d.Locked)
}

// CheckLocked compares what is offered with a lock. With --locked a gateway starts only if there is no difference.
func CheckLocked(l Lock, offers []Offer) ([]Difference, error) {
	now, err := LockOf(offers)
	if err != nil {
		return nil, fmt.Errorf("check lock: %w", err)
	}
	l.sort()
	var out []Difference
	merge(l.Providers, now.Providers, func(p LockedProvider) string { return p.Package }, func(was, is *LockedProvider) {
		switch {
		case is == nil:
			out = append(out, Difference{Provider: was.Package, What: "missing"})
		case was == nil:
			out = append(out, Difference{Provider: is.Package, What: "not locked"})
		default:
			if was.Instructions != is.Instructions {
				out = append(out, Difference{was.Package, "", "instructions", was.Instructions, is.Instructions})
			}
			if was.ToolContract != is.ToolContract {
				out = append(out, Difference{Provider: was.Package, What: "tool contract"})
			}
			out = append(out, differingTools(was, is)...)
		}
	})
	return out, nil
}

func differingTools(was, is *LockedProvider) (out []Difference) {
	merge(was.Tools, is.Tools, func(t LockedTool) string { return t.RawName }, func(a, b *LockedTool) {
		switch {
		case b == nil:
			out = append(out, Difference{Provider: was.Package, Tool: a.RawName, What: "missing", Locked: a.Descriptor})
		case a == nil:
			out = append(out, Difference{Provider: was.Package, Tool: b.RawName, What: "not locked", Found: b.Descriptor})
		case a.Schema != b.Schema:
			out = append(out, Difference{was.Package, a.RawName, "schema", a.Schema, b.Schema})
		case a.Descriptor != b.Descriptor:
			out = append(out, Difference{was.Package, a.RawName, "descriptor", a.Descriptor, b.Descriptor})
		}
	})
	return out
}

// merge walks two sorted lists side by side; what one of them lacks is nil.
func merge[T any](a, b []T, key func(T) string, pair func(a, b *T)) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && key(a[0]) < key(b[0]):
			pair(&a[0], nil)
			a = a[1:]
		case len(a) == 0 || key(b[0]) < key(a[0]):
			pair(nil, &b[0])
			b = b[1:]
		default:
			pair(&a[0], &b[0])
			a, b = a[1:], b[1:]
		}
	}
}
