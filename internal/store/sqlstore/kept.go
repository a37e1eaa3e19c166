package sqlstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/admission"
	"github.com/ostiary/ostiary/internal/approval"
)

// kept is what transactions know of approvals, pins and quarantine. They are few and calls are decided on them, so all of
// them are in memory, as the present group has left them. Only the writer goroutine touches it.
type kept struct {
	approvals   map[approval.ID]approval.Request
	under       map[call.Digest][]approval.ID // by what a grant may be bound to
	pins        map[admission.Key]admission.Pin
	quarantines map[quarantineKey]admission.Quarantine

	changes []rowChange // of this group, to undo and to write them
}

type quarantineKey struct{ provider, tool string }

// rowChange is one change of a row. To write it is to write the row as the group leaves it, so several changes of one row
// may be written in any order.
type rowChange interface {
	undo(*kept)
	write(*kept, *conn) error
}

func (k *kept) change(c rowChange) { k.changes = append(k.changes, c) }

// rewind undoes all but the first n changes.
func (k *kept) rewind(n int) {
	for i := len(k.changes) - 1; i >= n; i-- {
		k.changes[i].undo(k)
	}
	clear(k.changes[n:])
	k.changes = k.changes[:n]
}

// clear forgets how to undo what is committed.
func (k *kept) clear() {
	clear(k.changes)
	k.changes = k.changes[:0]
}

// write writes what the group has done.
func (k *kept) write(c *conn) error {
	for _, change := range k.changes {
		if err := change.write(k, c); err != nil {
			return err
		}
	}
	return nil
}

// set puts a row into a table, or takes it out if row is nil, and returns what was there.
func set[K comparable, R any](table *map[K]R, key K, row *R) (old *R) {
	if r, ok := (*table)[key]; ok {
		old = &r
	}
	if row == nil {
		delete(*table, key)
		return old
	}
	if *table == nil {
		*table = map[K]R{}
	}
	(*table)[key] = *row
	return old
}

type approvalChange struct {
	id  approval.ID
	old *approval.Request
}

// setApproval keeps the index with the rows.
func (k *kept) setApproval(id approval.ID, row *approval.Request) (old *approval.Request) {
	old = set(&k.approvals, id, row)
	if k.under == nil {
		k.under = map[call.Digest][]approval.ID{}
	}
	if old != nil {
		for _, d := range [...]call.Digest{old.CallDigest, old.GrantDigest} {
			if ids := slices.DeleteFunc(k.under[d], func(i approval.ID) bool { return i == id }); len(ids) == 0 {
				delete(k.under, d)
			} else {
				k.under[d] = ids
			}
		}
	}
	if row != nil {
		k.under[row.CallDigest] = append(k.under[row.CallDigest], id)
		if row.GrantDigest != row.CallDigest {
			k.under[row.GrantDigest] = append(k.under[row.GrantDigest], id)
		}
	}
	return old
}

func (k *kept) putApproval(id approval.ID, row *approval.Request) {
	k.change(&approvalChange{id, k.setApproval(id, row)})
}

func (c *approvalChange) undo(k *kept) { k.setApproval(c.id, c.old) }

func (c *approvalChange) write(k *kept, to *conn) error {
	if r, ok := k.approvals[c.id]; ok {
		return to.upsertApproval.exec(approvalValues(&r)...)
	}
	return to.deleteApproval.exec(string(c.id))
}

type pinChange struct {
	key admission.Key
	old *admission.Pin
}

func (k *kept) putPin(key admission.Key, row *admission.Pin) {
	k.change(&pinChange{key, set(&k.pins, key, row)})
}

func (c *pinChange) undo(k *kept) { set(&k.pins, c.key, c.old) }

func (c *pinChange) write(k *kept, to *conn) error {
	p, ok := k.pins[c.key]
	if !ok {
		return to.deletePin.exec(c.key.Provider, c.key.RawName, c.key.Digest[:])
	}
	values, err := pinValues(&p)
	if err != nil {
		return err
	}
	return to.upsertPin.exec(values...)
}

type quarantineChange struct {
	key quarantineKey
	old *admission.Quarantine
}

func (k *kept) putQuarantine(key quarantineKey, row *admission.Quarantine) {
	k.change(&quarantineChange{key, set(&k.quarantines, key, row)})
}

func (c *quarantineChange) undo(k *kept) { set(&k.quarantines, c.key, c.old) }

func (c *quarantineChange) write(k *kept, to *conn) error {
	if q, ok := k.quarantines[c.key]; ok {
		return to.upsertQuarantine.exec(quarantineValues(&q)...)
	}
	return to.deleteQuarantine.exec(c.key.provider, c.key.tool)
}

// loadKept reads all rows.
func (s *Store) loadKept(v *view) error {
	k := &s.state.kept
	if err := v.EachApproval(func(r approval.Request) bool {
		k.setApproval(r.ID, &r)
		return true
	}); err != nil {
		return err
	}
	pins, err := v.Pins("")
	if err != nil {
		return err
	}
	for _, p := range pins {
		set(&k.pins, p.Key(), &p)
	}
	quarantines, err := v.Quarantines()
	if err != nil {
		return err
	}
	for _, q := range quarantines {
		set(&k.quarantines, quarantineKey{q.Provider, q.Tool}, &q)
	}
	return nil
}

// upsertSQL writes a row whatever was there. The first keys of the columns are the key.
func upsertSQL(table, columns string, keys int) string {
	names := strings.Split(columns, ", ")
	places, sets := make([]string, len(names)), make([]string, 0, len(names))
	for i, n := range names {
		places[i] = fmt.Sprintf("$%d", i+1)
		if i >= keys {
			sets = append(sets, n+" = excluded."+n)
		}
	}
	return "INSERT INTO " + table + " (" + columns + ") VALUES (" + strings.Join(places, ", ") + ") ON CONFLICT (" +
		strings.Join(names[:keys], ", ") + ") DO UPDATE SET " + strings.Join(sets, ", ")
}
