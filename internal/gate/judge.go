package gate

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/store"
)

// withinBudget counts the call.
func (p *passage) withinBudget() *refusal {
	b, r := p.gate.o.Budgets, p.request
	if b == nil || r.Export == "" {
		return nil
	}
	h := sha256.New()
	_, _ = h.Write([]byte(r.Tool)) // a hash takes everything
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(r.Arguments)
	if no := b.Take(r.Principal.ID, r.Session, call.Digest(h.Sum(nil)), p.started); no.Refused() {
		p.decision = policy.Decision{Verdict: policy.Deny, Rule: no.Rule, Reason: no.Reason}
		return &refusal{code: call.CodeBudgetExceeded, detail: no.Reason, saying: no.Reason}
	}
	return nil
}

// judge asks policy, with what the session has read so far.
func (p *passage) judge(ctx context.Context) *refusal {
	var err error
	if p.taint, err = p.gate.taint(ctx, p.reader()); err != nil {
		return approvalRefusal(err)
	}
	if p.decision = p.gate.o.Policy.Judge(p.question(p.taint)); p.decision.Verdict == policy.Deny {
		return &refusal{code: call.CodeDenied, detail: p.decision.Reason}
	}
	return nil
}

func (p *passage) question(t policy.Taint) policy.Question {
	return policy.Question{Principal: p.request.Principal, Export: p.request.Export, Tool: p.tool.Descriptor, Arguments: p.request.Arguments, Taint: t}
}

// stillAllowed judges again, in the transaction of the intent, if the session has read more since.
func (p *passage) stillAllowed(tx store.Tx) error {
	r := p.reader()
	now, err := tx.Taint(r.principal, r.session)
	if err != nil || now&^p.taint == 0 {
		return err
	}
	p.gate.taints.add(r, now) // what was forgotten a moment ago may have been read once more: the next call is judged with it
	switch d := p.gate.o.Policy.Judge(p.question(now | p.taint)); {
	case d.Verdict == policy.Deny:
		return &refusal{code: call.CodeDenied, detail: d.Reason}
	case d.Verdict == policy.Ask && (p.grant == "" || d.ArgumentBound && !p.decision.ArgumentBound):
		return &refusal{code: call.CodeApprovalPending, detail: d.Reason, saying: "the session has read more while the call was on its way; repeat the call to ask for approval"}
	}
	return nil
}

// relaxed says whether the ledger may lag behind the call: READ_ONLY tools of a profile that says so, never others, never
// one that spends a grant, none that could carry out what its session has read, and none that states a frontier: these are
// judged again at the intent.
func (p *passage) relaxed() bool {
	return !p.tool.Effect.Durable() && p.tool.Provider.Profile.RelaxedLedger && p.grant == "" && p.request.Frontier == nil &&
		p.gate.o.Policy.Labels(p.tool.Descriptor)&policy.Egress == 0
}

func (p *passage) reader() reader { return reader{p.request.Principal.ID, p.request.Session} }

// reader is who has read something: a principal's session.
type reader struct{ principal, session string }

// put writes what has been read beside what is written already.
func (r reader) put(tx store.Tx, t policy.Taint) error {
	if t == 0 { // else the store would look it up
		return nil
	}
	return tx.PutTaint(r.principal, r.session, t)
}

// taints are those that this gate has seen or set. A taint is in here before it is handed to the store, which may write it
// later; what is not in here is in the store.
type taints struct {
	mu    sync.Mutex // guards what follows
	known map[reader]policy.Taint
	drops uint64 // how often something was forgotten: what was read before that must not be kept after it
}

const maxKnownTaints = 1 << 16

// taint is what a session has read so far.
func (g *Gate) taint(ctx context.Context, r reader) (policy.Taint, error) {
	g.taints.mu.Lock()
	t, ok := g.taints.known[r]
	drops := g.taints.drops
	full := len(g.taints.known) >= maxKnownTaints
	g.taints.mu.Unlock()
	if ok {
		return t, nil
	}
	if full { // what was handed over is on disk before it is forgotten here
		if err := g.o.Store.Update(ctx, func(store.Tx) error { return nil }); err != nil {
			return 0, err
		}
		g.taints.mu.Lock()
		clear(g.taints.known)
		g.taints.mu.Unlock()
	}
	err := g.o.Store.View(ctx, func(v store.View) (err error) {
		t, err = v.Taint(r.principal, r.session)
		return err
	})
	if err != nil {
		return 0, err
	}
	return g.taints.learn(r, t, drops), nil
}

// DropTaint forgets what a principal's session has read, and says what that was, with a record of who said so.
func (g *Gate) DropTaint(ctx context.Context, principal, session string, record func(policy.Taint) (ledger.Entry, error)) (was policy.Taint, err error) {
	err = g.o.Store.Update(ctx, func(tx store.Tx) (err error) {
		if was, err = tx.Taint(principal, session); err != nil {
			return err
		}
		if was == 0 {
			return fmt.Errorf("what %q has read in session %q: %w", principal, session, store.ErrNotFound)
		}
		if err := tx.DropTaint(principal, session); err != nil {
			return err
		}
		e, err := record(was)
		if err != nil {
			return err
		}
		return tx.Append(e)
	})
	if err != nil {
		return 0, err
	}
	g.taints.forget(reader{principal, session}) // after it is on disk: until then calls are judged with it
	return was, nil
}

// add adds to what is known of a reader, and says what that is now.
func (s *taints) add(r reader, t policy.Taint) policy.Taint {
	s.mu.Lock()
	defer s.mu.Unlock()
	t |= s.known[r]
	s.known[r] = t
	return t
}

// learn keeps what was read from the store, unless something was forgotten since.
func (s *taints) learn(r reader, t policy.Taint, drops uint64) policy.Taint {
	s.mu.Lock()
	defer s.mu.Unlock()
	t |= s.known[r]
	if s.drops == drops {
		s.known[r] = t
	}
	return t
}

func (s *taints) forget(r reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, r)
	s.drops++
}

// reads adds what the call has brought to the session, or is about to, and says what is to be written. A taint is taken
// back by an operator alone, so it is known before it is written. To write what is written already costs nothing on disk.
func (p *passage) reads(o call.Outcome) policy.Taint {
	t := p.gate.o.Policy.AfterCall(0, p.tool.Descriptor, o)
	if p.foreign {
		t |= policy.Untrusted | policy.Private
	}
	if t&^p.taint != 0 {
		p.gate.taints.add(p.reader(), t)
	}
	return t
}
