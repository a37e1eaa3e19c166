package sqlstore

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

// state is what transactions work on: the end of the chain and the open intents, with all that the present group has done
// to them and not committed yet. Only the writer goroutine touches it.
type state struct {
	chain   ledger.Chain
	edge    ledger.Edge // of the committed records
	intents map[call.ID]*intent
	nextID  int64 // of intents

	records []ledger.Record // of this group
	bodies  []byte          // the memory that their bodies are in, used again for each group
	changes []change        // of this group, to undo them
	buried  []ledger.Record // tombstones that this group puts in the place of records

	taints taintState
	held   heldState // evidence
	kept   kept      // approvals, pins, quarantine
	world  worldState
}

// intent is one open intent. stored says that its row is in the database.
type intent struct {
	ledger.Intent
	id     int64
	stored bool
}

type change struct {
	intent *intent
	opened bool // else closed
}

// mark is a place to go back to.
type mark struct {
	records, bodies, changes, held int
	seq                            int64
	hash                           ledger.Hash
	taints, kept, world, buried    int
}

func (s *state) mark() mark {
	return mark{len(s.records), len(s.bodies), len(s.changes), len(s.held.changes), s.chain.Seq, s.chain.Hash, len(s.taints.changes), len(s.kept.changes), len(s.world.facts), len(s.buried)}
}

func (s *state) rewind(m mark) {
	s.records = s.records[:m.records]
	s.bodies = s.bodies[:m.bodies]
	s.chain.Seq, s.chain.Hash = m.seq, m.hash
	for i := len(s.changes) - 1; i >= m.changes; i-- {
		if c := s.changes[i]; c.opened {
			delete(s.intents, c.intent.CallID)
		} else {
			s.intents[c.intent.CallID] = c.intent
		}
	}
	s.changes = s.changes[:m.changes]
	s.taints.rewind(m.taints)
	s.held.rewind(m.held)
	s.kept.rewind(m.kept)
	s.world.rewind(m.world)
	s.buried = s.buried[:m.buried]
}

// empty says that the group has nothing to write.
func (s *state) empty() bool {
	return len(s.records) == 0 && len(s.changes) == 0 && len(s.taints.changes) == 0 && len(s.held.changes) == 0 &&
		len(s.kept.changes) == 0 && len(s.world.facts) == 0
}

// settle makes what the group has done the committed state.
func (s *state) settle(edge ledger.Edge) {
	s.edge = edge
	s.taints.settle()
	s.world.settle()
	for _, c := range s.changes {
		c.intent.stored = true // of no interest for those that are closed
	}
	s.clear()
}

const keepBodies = 1 << 20 // memory for bodies that is kept from group to group

func (s *state) clear() {
	clear(s.records)
	s.records = s.records[:0]
	clear(s.changes)
	s.changes = s.changes[:0]
	clear(s.buried)
	s.buried = s.buried[:0]
	s.taints.clear()
	s.held.clear()
	s.kept.clear()
	s.world.clear()
	if s.bodies = s.bodies[:0]; cap(s.bodies) > keepBodies {
		s.bodies = nil
	}
}

// apply runs fn on the state. On error nothing of it is left.
func (s *state) apply(fn func(store.Tx) error, now func() time.Time) (err error) {
	m := s.mark()
	t := &tx{s: s, start: m.records, now: now}
	defer func() {
		if p := recover(); p != nil {
			err = &panicked{p, debug.Stack()}
		}
		t.s = nil
		if err != nil {
			s.rewind(m)
		}
	}()
	if err = fn(t); err == nil {
		err = t.broken
	}
	return err
}

// panicked is the error of a function that did. The stack is for the log.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("transaction panicked: %v", p.value) }

// tx is one function's transaction.
type tx struct {
	s      *state // nil once it is over
	start  int    // index in s.records of the first record of this transaction
	now    func() time.Time
	broken error // an append failed: the transaction must not commit without it, whatever fn makes of the error
}

var _ store.Tx = (*tx)(nil)

var errOver = errors.New("transaction is used after its function has returned")

func (t *tx) Append(e ledger.Entry) error {
	if t.s == nil {
		return errOver
	}
	if e.Time.IsZero() {
		e.Time = t.now()
	}
	r, err := t.s.chain.Append(e, &t.s.bodies)
	if err != nil {
		t.broken = fmt.Errorf("append %s: %w", e.Kind, err)
		return t.broken
	}
	t.s.records = append(t.s.records, r)
	if r.Kind == ledger.KindCallIntent {
		if i := t.s.intents[r.CallID]; i != nil && i.Seq == 0 && !i.stored {
			i.Seq = r.Seq // the intent was opened first
		}
	}
	return nil
}

func (t *tx) OpenIntent(i ledger.Intent) error {
	if t.s == nil {
		return errOver
	}
	if t.s.intents[i.CallID] != nil {
		return fmt.Errorf("open intent of call %q: %w", i.CallID, store.ErrConflict)
	}
	if i.Started.IsZero() {
		i.Started = t.now()
	}
	i.Seq = 0
	for n := len(t.s.records) - 1; n >= t.start; n-- {
		if r := &t.s.records[n]; r.Kind == ledger.KindCallIntent && r.CallID == i.CallID {
			i.Seq = r.Seq
			break
		}
	}
	t.s.nextID++
	in := &intent{Intent: i, id: t.s.nextID}
	t.s.intents[i.CallID] = in
	t.s.changes = append(t.s.changes, change{in, true})
	return nil
}

func (t *tx) CloseIntent(id call.ID) error {
	if t.s == nil {
		return errOver
	}
	in := t.s.intents[id]
	if in == nil {
		return fmt.Errorf("close intent of call %q: %w", id, store.ErrNotFound)
	}
	delete(t.s.intents, id)
	t.s.changes = append(t.s.changes, change{in, false})
	return nil
}

func (t *tx) OpenIntents() ([]ledger.Intent, error) {
	if t.s == nil {
		return nil, errOver
	}
	open := make([]*intent, 0, len(t.s.intents))
	for _, in := range t.s.intents {
		open = append(open, in)
	}
	slices.SortFunc(open, func(a, b *intent) int { return cmp.Compare(a.id, b.id) })
	out := make([]ledger.Intent, len(open))
	for i, in := range open {
		out[i] = in.Intent
	}
	return out, nil
}
