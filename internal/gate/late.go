package gate

import (
	"context"
	"errors"
	"sync"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/world"
)

// Bounds of what waits for a store that cannot be written. What is beyond them is closed as interrupted by the next start.
const (
	maxLate      = 1024
	maxLateBytes = 64 << 20 // of payloads of evidence
)

// late are outcomes that could not be written when they were known (F-04). Their callers have been told so already.
type late struct {
	writing sync.Mutex // one goes through them at a time

	mu      sync.Mutex // guards what follows
	waiting []*lateOutcome
	bytes   int
	dropped bool // the log has said that the bounds are reached
	lost    bool // a fact of the world was among what was dropped; until the next start, which writes it
}

type lateOutcome struct {
	entry   ledger.Entry
	refused *ledger.Entry // what is written instead if there is no intent; nil: nothing
	held    *evidence.Sealed
	fact    *world.Fact
	reads   policy.Taint
}

func (o *lateOutcome) bytes() int {
	if o.held == nil {
		return 0
	}
	return len(o.held.Payload)
}

// write closes the intent. A store that did not answer in time may have written the outcome after all: then there is no
// intent any more, and nothing to write.
func (o *lateOutcome) write(tx store.Tx) error {
	if err := tx.CloseIntent(o.entry.CallID); err != nil {
		switch {
		case !errors.Is(err, store.ErrNotFound):
			return err
		case o.refused != nil:
			return tx.Append(*o.refused)
		}
		return nil
	}
	if err := (reader{o.entry.Principal, o.entry.Session}).put(tx, o.reads); err != nil {
		return err
	}
	_, _, err := putOutcome(tx, o.entry, o.held, o.fact)
	return err
}

// passing says that a write may succeed later. Any other error is the transaction's own, and would come again.
func passing(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// writeLater keeps an outcome that could not be written, together with what the caller was told in its place.
func (p *passage) writeLater(o call.Outcome, told call.Code, answer call.Answer) {
	l := &lateOutcome{entry: p.entry(ledger.KindCallOutcome, outcomeBody(call.Reply{Outcome: o}, answer, p.finding, told)), held: p.held(), fact: p.fact(o), reads: p.reads(o)}
	p.gate.keepLate(l)
}

// turnBackLater ends a call of which it is not known whether its intent was written. If it was, it has to be closed: as
// what it is, a call of which nothing was sent.
func (p *passage) turnBackLater(no *refusal) call.Reply {
	o := p.notSent(no.code, no.detail, no.saying)
	refused := p.entry(ledger.KindCallRefused, p.refusedBody(o))
	p.gate.keepLate(&lateOutcome{entry: p.entry(ledger.KindCallOutcome, outcomeBody(call.Reply{Outcome: o}, call.Answer{}, p.finding, "")), refused: &refused})
	return call.Reply{Outcome: o}
}

func (g *Gate) keepLate(l *lateOutcome) {
	g.late.mu.Lock()
	defer g.late.mu.Unlock()
	if len(g.late.waiting) >= maxLate || g.late.bytes+l.bytes() > maxLateBytes {
		if !g.late.dropped {
			g.o.Logger.Error("too many outcomes wait for the ledger: the next start records the others as interrupted", "waiting", len(g.late.waiting))
		}
		g.late.dropped = true
		g.late.lost = g.late.lost || l.fact != nil
		return
	}
	g.late.waiting = append(g.late.waiting, l)
	g.late.bytes += l.bytes()
}

// lose says that a call has changed the world and its fact will not be written before the next start.
func (g *Gate) lose() {
	g.late.mu.Lock()
	defer g.late.mu.Unlock()
	g.late.lost = true
}

// Late is how many outcomes wait for the store to be writable again.
func (g *Gate) Late() int {
	g.late.mu.Lock()
	defer g.late.mu.Unlock()
	return len(g.late.waiting)
}

// WriteLate writes what could not be written before, in the order in which it was known. It ends at the first that the
// store does not take; that one and those after it go on waiting.
func (g *Gate) WriteLate(ctx context.Context) error {
	g.late.writing.Lock()
	defer g.late.writing.Unlock()
	for {
		g.late.mu.Lock()
		if len(g.late.waiting) == 0 {
			g.late.dropped = false
			g.late.mu.Unlock()
			return nil
		}
		o := g.late.waiting[0]
		g.late.mu.Unlock()

		err := g.o.Store.Update(ctx, o.write)
		if err != nil && (passing(err) || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			g.o.Logger.Error("write a late outcome", "call", o.entry.CallID, "err", err)
		}
		g.late.mu.Lock()
		g.late.waiting[0] = nil
		g.late.waiting = g.late.waiting[1:]
		g.late.bytes -= o.bytes()
		g.late.lost = g.late.lost || err != nil && o.fact != nil
		g.late.mu.Unlock()
	}
}
