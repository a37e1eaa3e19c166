package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/store"
)

// heldState is what transactions know of evidence: what the present group has done to it, over what is committed. Only the
// writer goroutine touches it.
//
// Items are many and are rarely touched, so unlike intents they are not in memory: a transaction reads those it names from
// the database, which no other than the writer changes, unless the group has touched them.
type heldState struct {
	committed *sql.DB                   // reads what is committed; of the writer alone, so that it never waits for readers that wait for it
	size      int64                     // bytes of sealed payloads, with what the group has done
	shares    map[string]evidence.Share // of size, by provider
	nextSeq   int64
	rows      map[evidence.ID]*heldRow // touched by this group; a row is never changed, only replaced
	changes   []heldChange             // of this group, to undo them
}

// heldRow is an item as the group leaves it.
type heldRow struct {
	item   evidence.Item
	kept   int64  // bytes of the sealed payload
	seq    int64  // of an item that is new in this group; else 0
	sealed []byte // of such an item
}

// heldChange is what was there before a change.
type heldChange struct {
	id            evidence.ID
	row           *heldRow // nil: the group had not touched it
	size, nextSeq int64
	provider      string
	share         evidence.Share
}

func newHeldState(committed *sql.DB) heldState {
	return heldState{committed: committed, shares: map[string]evidence.Share{}, rows: map[evidence.ID]*heldRow{}}
}

func (h *heldState) put(id evidence.ID, row *heldRow) {
	pkg := row.item.Provider
	h.changes = append(h.changes, heldChange{id, h.rows[id], h.size, h.nextSeq, pkg, h.shares[pkg]})
	h.rows[id] = row
}

// grow counts n bytes more, or fewer, of an item's payload.
func (h *heldState) grow(i *evidence.Item, n int64) {
	h.size += n
	s := h.shares[i.Provider]
	s.All += n
	if i.Direction == evidence.Event {
		s.Events += n
	}
	h.shares[i.Provider] = s
}

// rewind undoes all but the first n changes.
func (h *heldState) rewind(n int) {
	for i := len(h.changes) - 1; i >= n; i-- {
		c := h.changes[i]
		h.size, h.nextSeq = c.size, c.nextSeq
		h.shares[c.provider] = c.share
		if c.row == nil {
			delete(h.rows, c.id)
		} else {
			h.rows[c.id] = c.row
		}
	}
	clear(h.changes[n:])
	h.changes = h.changes[:n]
}

func (h *heldState) clear() {
	clear(h.rows)
	clear(h.changes)
	h.changes = h.changes[:0]
}

// find reads an item as this group sees it; nil if there is none.
func (h *heldState) find(id evidence.ID) (*heldRow, error) {
	if row := h.rows[id]; row != nil {
		return row, nil
	}
	row := &heldRow{}
	err := scanHeld(h.committed.QueryRow(sqlEvidence, string(id)), row)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case errors.Is(err, ErrDamaged):
		return nil, err
	case err != nil:
		return nil, unavailable("read evidence %q: %w", id, err)
	}
	return row, nil
}

// pages is how many pages of the write-ahead log the group's payloads take, roughly.
func (h *heldState) pages() int {
	n := 0
	for _, row := range h.rows {
		n += 1 + len(row.sealed)>>12
	}
	return n
}

// purges says that the group has taken a payload away.
func (h *heldState) purges() bool {
	for _, row := range h.rows {
		if row.item.State == evidence.Purged && row.seq == 0 {
			return true
		}
	}
	return false
}

func (t *tx) InsertEvidence(i evidence.Item, sealed []byte) error {
	if t.s == nil {
		return errOver
	}
	h := &t.s.held
	switch row, err := h.find(i.ID); {
	case err != nil:
		return err
	case row != nil:
		return fmt.Errorf("insert evidence %q: %w", i.ID, store.ErrConflict)
	}
	h.put(i.ID, &heldRow{item: i, kept: int64(len(sealed)), seq: h.nextSeq + 1, sealed: sealed})
	h.nextSeq++
	h.grow(&i, int64(len(sealed)))
	return nil
}

func (t *tx) Evidence(id evidence.ID) (evidence.Item, bool, error) {
	if t.s == nil {
		return evidence.Item{}, false, errOver
	}
	row, err := t.s.held.find(id)
	if err != nil || row == nil {
		return evidence.Item{}, false, err
	}
	return row.item, true, nil
}

func (t *tx) DecideEvidence(from evidence.State, i evidence.Item) error {
	if t.s == nil {
		return errOver
	}
	h := &t.s.held
	row, err := h.find(i.ID)
	if err != nil {
		return err
	}
	if row == nil {
		return fmt.Errorf("decide on evidence %q: %w", i.ID, store.ErrNotFound)
	}
	if row.item.State != from {
		return fmt.Errorf("decide on evidence %q: %w: it is %s, not %s", i.ID, store.ErrConflict, row.item.State, from)
	}
	next := *row
	next.item.State, next.item.Excerpt, next.item.Decision, next.item.Purge, next.item.Delivery = i.State, i.Excerpt, i.Decision, i.Purge, i.Delivery
	if i.State == evidence.Purged {
		next.kept, next.sealed = 0, nil
	}
	h.put(i.ID, &next)
	h.grow(&row.item, next.kept-row.kept)
	return nil
}

func (t *tx) EvidenceSize() (int64, error) {
	if t.s == nil {
		return 0, errOver
	}
	return t.s.held.size, nil
}

func (t *tx) EvidenceShare(provider string) (evidence.Share, error) {
	if t.s == nil {
		return evidence.Share{}, errOver
	}
	return t.s.held.shares[provider], nil
}

// writeHeld writes what the group has done to evidence.
func (s *Store) writeHeld() error {
	for _, c := range s.state.held.changes {
		if c.row != nil {
			continue // the first change of an item writes what became of it
		}
		if err := s.conn.held(s.state.held.rows[c.id]); err != nil {
			return err
		}
	}
	return nil
}

// loadHeld reads how much evidence there is, and of whom.
func (s *Store) loadHeld(v *view) error {
	h := &s.state.held
	if err := v.tx.QueryRowContext(v.ctx, sqlEvidenceSeq).Scan(&h.nextSeq); err != nil {
		return fmt.Errorf("read size of evidence: %w", err)
	}
	rows, err := v.tx.QueryContext(v.ctx, sqlEvidenceShares)
	if err != nil {
		return fmt.Errorf("read size of evidence: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var pkg string
		var share evidence.Share
		if err := rows.Scan(&pkg, &share.All, &share.Events); err != nil {
			return fmt.Errorf("read size of evidence: %w", err)
		}
		h.shares[pkg] = share
		h.size += share.All
	}
	return rows.Err()
}
