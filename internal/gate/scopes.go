package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/world"
)

// missedBound is how much of what it has missed a caller is told at once.
var missedBound = world.Bound{Commits: 50, Bytes: 16 << 10}

// errStale ends the transaction of an intent whose scopes have moved on.
var errStale = errors.New("a scope has moved past the frontier")

// barrier resolves the scopes of the call (R4.5), and holds what it states to have seen against what there is (R5.6).
func (p *passage) barrier(ctx context.Context) *refusal {
	var err error
	if p.scopes, err = p.tool.Scopes.Resolve(p.request.Arguments); err != nil { // whose words may quote an argument
		return &refusal{code: call.CodeScopeInvalid, detail: "a scope of the tool is none with these arguments", saying: err.Error()}
	}
	if p.request.Frontier == nil {
		if rule, needs := p.gate.o.Policy.NeedsFrontier(p.tool.Descriptor); needs {
			p.decision.Rule = rule
			return &refusal{code: call.CodeFrontierRequired, detail: rule, saying: "scopes: " + named(p.scopes.Observe)}
		}
		return nil
	}
	return p.againstWorld(ctx)
}

// againstWorld compares the stated frontier with what is committed. What it has missed is read with it.
func (p *passage) againstWorld(ctx context.Context) *refusal {
	if no := p.withLate(ctx); no != nil {
		return no
	}
	stated := p.request.Frontier
	seen := make(call.Frontier, len(p.scopes.Observe))
	for _, s := range p.scopes.Observe {
		seen[s] = stated[s]
	}
	var news world.News
	if err := p.gate.o.Store.View(ctx, func(v store.View) (err error) {
		news, err = world.Since(v, seen, missedBound)
		return err
	}); err != nil {
		return approvalRefusal(err)
	}
	for _, s := range p.scopes.Observe { // of one that it only publishes to, nobody has agreed to tell how far it is
		if head := news.Heads[s]; head < stated[s] {
			return &refusal{code: call.CodeFrontierUnknown, detail: "the frontier is ahead of the world",
				saying: fmt.Sprintf("scope %s has %d commits, not %d", s, head, stated[s])}
		}
	}
	if len(news.Commits) > 0 {
		return p.stale(&news)
	}
	return nil
}

// withLate writes the outcomes that wait for the disk: the calls that they are of have changed the world already. With those
// that could never be written, the world is not what there is on disk, and no frontier can be held against it.
func (p *passage) withLate(ctx context.Context) *refusal {
	if p.gate.Late() > 0 {
		if err := p.gate.WriteLate(ctx); err != nil {
			return approvalRefusal(err)
		}
	}
	return p.gate.behind()
}

// behind is a refusal while calls have changed the world and their facts are not on disk.
func (g *Gate) behind() *refusal {
	g.late.mu.Lock()
	defer g.late.mu.Unlock()
	switch {
	case g.late.lost:
		return &refusal{code: call.CodeLedgerUnavailable, detail: "facts of calls could not be kept until the disk was back; the next start records them as unknown",
			saying: "until the gateway starts again no frontier can be held against the world"}
	case len(g.late.waiting) > 0:
		return &refusal{code: call.CodeLedgerUnavailable, detail: "outcomes of calls wait to be written"}
	}
	return nil
}

// stale is the refusal of a call that has missed something.
func (p *passage) stale(news *world.News) *refusal {
	n := int64(len(news.Commits)) + news.More
	saying := fmt.Sprintf("commits missed: %d", n)
	if news.More > 0 {
		saying += fmt.Sprintf(", of which the first %d are told here; aur.world.delta, or ostiary world delta, has the others", len(news.Commits))
	}
	p.unreadable(news.Commits)
	return &refusal{code: call.CodeStaleFrontier, detail: fmt.Sprintf("%d commits were missed", n), saying: saying, news: news}
}

// notShown stands for the words of a commit that may not be read.
const notShown = "what it says cannot be read here"

// unreadable takes out of commits what the caller may not read (R5.7): that something has happened in a scope is all that
// the barrier has to tell.
func (p *passage) unreadable(commits []call.Commit) {
	readable := p.gate.o.Readable(p.request.Export)
	for i := range commits {
		if c := &commits[i]; !readable.Has(c.Scope) {
			*c = call.Commit{Scope: c.Scope, Seq: c.Seq, Kind: c.Kind, Time: c.Time, Summary: notShown}
		}
	}
}

// tell adds to the reply what its caller has missed. What strangers say in it counts as read by the session, and that
// is on disk before it is said.
func (p *passage) tell(ctx context.Context, reply call.Reply, news *world.News) call.Reply {
	if slices.ContainsFunc(news.Commits, func(c call.Commit) bool { return c.CallID == "" && c.Summary != notShown }) {
		const texts = policy.Untrusted | policy.Private
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.gate.o.CommitTimeout)
		defer cancel()
		p.gate.taints.add(p.reader(), texts)
		err := p.gate.o.Store.Update(ctx, func(tx store.Tx) error { return tx.PutTaint(p.request.Principal.ID, p.request.Session, texts) })
		p.gate.taints.add(p.reader(), texts) // an operator may have had it forgotten meanwhile
		if err != nil {
			p.gate.o.Logger.Warn("what was missed is not told: that it was read cannot be written", "call", p.id, "err", err)
			return reply
		}
	}
	reply.Missed, reply.Frontier = news.Commits, news.UpTo
	return reply
}

// stillCurrent looks again, in the transaction of the intent: the world may have moved while the call waited. What was late
// was written just before; an outcome that has come to wait since must not be passed by.
func (p *passage) stillCurrent(tx store.Tx) error {
	if p.request.Frontier == nil {
		return nil
	}
	if no := p.gate.behind(); no != nil {
		return no
	}
	for _, s := range p.scopes.Observe {
		if head, err := tx.ScopeHead(s); err != nil {
			return err
		} else if head > p.request.Frontier[s] {
			return errStale
		}
	}
	return nil
}

// overtaken is the refusal of a call that was found stale in the transaction of its intent. What that has seen may not be on
// disk yet, and nobody is told what is not.
func (p *passage) overtaken(ctx context.Context) *refusal {
	if err := p.gate.o.Store.Update(ctx, func(store.Tx) error { return nil }); err != nil {
		return approvalRefusal(err)
	}
	if no := p.againstWorld(ctx); no != nil {
		return no
	}
	return p.stale(&world.News{UpTo: p.request.Frontier}) // what it saw could not be written after all
}

// touched are the scopes that the call observes or publishes.
func (p *passage) touched() []call.Scope {
	all := slices.Concat(p.scopes.Observe, p.scopes.Publish)
	slices.Sort(all)
	return slices.Compact(all)
}

// fact is what the call has changed in the world; nil: nothing. A result that was not let in does not undo its effect.
func (p *passage) fact(o call.Outcome) *world.Fact {
	if len(p.scopes.Publish) == 0 {
		return nil
	}
	switch {
	case o.Status == call.StatusUnknown:
	case o.Status == call.Succeeded, o.Effect == call.EffectDone:
	default:
		return nil
	}
	return factOf(p.id, p.tool.ID, p.tool.Package, p.scopes.Publish, o)
}

// factOf words the fact of a call. It is for whoever has missed it: the tool and how it ended, and nothing that a caller or
// a provider has said.
func factOf(id call.ID, tool call.ToolID, pkg string, publish []call.Scope, o call.Outcome) *world.Fact {
	f := &world.Fact{ID: "call:" + string(id), Scopes: publish, Provider: pkg, Kind: "tool.succeeded", Summary: string(tool) + " succeeded", CallID: id}
	switch {
	case o.Status == call.StatusUnknown:
		f.Kind, f.Summary = "tool.unknown", string(tool)+": it is not known whether the call had its effect"
	case o.Status != call.Succeeded:
		f.Summary += "; its result was not let in"
	}
	return f
}

// putOutcome appends the outcome of a call, with what was held of it, and puts its fact: the record says where. What was held
// may be lost.
func putOutcome(tx store.Tx, outcome ledger.Entry, held *evidence.Sealed, fact *world.Fact) (at world.Place, lost bool, err error) {
	if fact != nil {
		fact.Time = outcome.Time
		if at, _, err = tx.PutFact(*fact); err != nil {
			return nil, false, err
		}
		outcome.Body = worldBody(outcome.Body, fact.ID, fact.Scopes, at)
	}
	lost, err = appendHolding(tx, outcome, held)
	return at, lost, err
}

// seenAfter is what the caller has seen after the call (R5.6): what it stated, and the call's own commit where nothing
// stands between the two.
func (p *passage) seenAfter(at world.Place) call.Frontier {
	if p.request.Frontier == nil {
		return nil
	}
	f := call.Frontier{}
	for _, s := range p.touched() {
		f[s] = p.request.Frontier[s]
		if at[s] == f[s]+1 {
			f[s] = at[s]
		}
	}
	return f
}

func named(scopes []call.Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}
