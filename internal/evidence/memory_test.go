package evidence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
)

var errConflict = errors.New("conflict")

// memory is a store of one transaction.
type memory struct {
	items  []Item
	sealed map[ID][]byte
}

var (
	_ Tx   = (*memory)(nil)
	_ View = (*memory)(nil)
)

func newMemory() *memory { return &memory{sealed: map[ID][]byte{}} }

func (m *memory) at(id ID) int {
	return slices.IndexFunc(m.items, func(i Item) bool { return i.ID == id })
}

func (m *memory) InsertEvidence(i Item, sealed []byte) error {
	if m.at(i.ID) >= 0 {
		return errConflict
	}
	m.items = append(m.items, i)
	if sealed != nil {
		m.sealed[i.ID] = sealed
	}
	return nil
}

func (m *memory) Evidence(id ID) (Item, bool, error) {
	n := m.at(id)
	if n < 0 {
		return Item{}, false, nil
	}
	return m.items[n], true, nil
}

func (m *memory) DecideEvidence(from State, i Item) error {
	n := m.at(i.ID)
	if n < 0 || m.items[n].State != from {
		return errConflict
	}
	m.items[n] = i
	if i.State == Purged {
		delete(m.sealed, i.ID)
	}
	return nil
}

func (m *memory) EvidenceSize() (size int64, _ error) {
	for _, b := range m.sealed {
		size += int64(len(b))
	}
	return size, nil
}

func (m *memory) EvidenceShare(provider string) (s Share, _ error) {
	for id, b := range m.sealed {
		i := m.items[m.at(id)]
		if i.Provider != provider {
			continue
		}
		s.All += int64(len(b))
		if i.Direction == Event {
			s.Events += int64(len(b))
		}
	}
	return s, nil
}

func (m *memory) ListEvidence(f Filter) (out []Item, _ error) {
	for n := len(m.items) - 1; n >= 0 && len(out) < f.Page(); n-- {
		if f.Matches(&m.items[n]) {
			out = append(out, m.items[n])
		}
	}
	return out, nil
}

func (m *memory) SealedEvidence(id ID) ([]byte, bool, error) {
	b, ok := m.sealed[id]
	return b, ok, nil
}

// fakeSeal hides nothing, but is bound to the associated bytes as a seal is.
type fakeSeal struct{ err error }

func (s fakeSeal) Seal(plain, associated []byte) ([]byte, error) {
	sum := sha256.Sum256(associated)
	return append(sum[:], plain...), s.err
}

func (s fakeSeal) Unseal(_ context.Context, sealed, associated []byte) ([]byte, error) {
	sum := sha256.Sum256(associated)
	plain, ok := bytes.CutPrefix(sealed, sum[:])
	if !ok {
		return nil, errors.New("sealed for something else")
	}
	return plain, s.err
}
