package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/drift"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/store"
)

// Options are what a gate needs. All but Failpoint are required.
type Options struct {
	Store    store.Store
	Registry *provider.Registry
	Policy   *policy.Policy
	Upstream Upstream
	Logger   *slog.Logger
	Now      func() time.Time
	NewID    func() call.ID // never repeats

	// CommitTimeout bounds the commit of an outcome, which goes on when the caller has gone; 0: 10 s.
	CommitTimeout time.Duration
	// Failpoint is called between the steps from 9 to 12 with the step just done; tests stop the process there.
	Failpoint func(step string)
}

// Gate lets calls through, or not. It is safe for concurrent use.
type Gate struct{ o Options }

// New makes a gate.
func New(o Options) (*Gate, error) {
	if o.Store == nil || o.Registry == nil || o.Policy == nil || o.Upstream == nil || o.Logger == nil || o.Now == nil || o.NewID == nil {
		return nil, errors.New("gate: Store, Registry, Policy, Upstream, Logger, Now and NewID are needed")
	}
	if o.CommitTimeout == 0 {
		o.CommitTimeout = 10 * time.Second
	}
	if o.Failpoint == nil {
		o.Failpoint = func(string) {}
	}
	return &Gate{o}, nil
}

// Call is the path of a call. The steps are numbered as in docs/DESIGN.md; their order is the product. It returns when the
// outcome is known and recorded, and never sends a request twice (R3.3).
func (g *Gate) Call(ctx context.Context, r call.Request) call.Reply {
	p := &passage{gate: g, request: &r, id: g.o.NewID(), started: g.o.Now()}

	// 1. Who. An edge has authenticated the caller; a call of nobody goes no further.
	if r.Principal.ID == "" {
		return p.refuse(ctx, call.CodeUnauthenticated, "no principal")
	}

	// 2. Translated: the edge has read the request strictly, arguments and _meta are raw objects. The tool must exist.
	tool, ok := g.o.Registry.Tool(r.Tool)
	if !ok {
		return p.refuse(ctx, call.CodeToolNotAllowed, "no such tool")
	}
	p.tool = tool

	// 3. Callable at all: the provider is active, the arguments satisfy the frozen schema.
	generation, reason, ok := tool.Provider.Route()
	if !ok {
		return p.refuse(ctx, call.CodeProviderUnavailable, string(reason.Code))
	}
	p.generation = generation
	if err := tool.Schema.Validate(r.Arguments, tool.Provider.Profile.NullIsAbsent); err != nil {
		return p.refuseSaying(ctx, call.CodeInvalidArguments, "the arguments do not satisfy the input schema", err.Error())
	}

	// 4. May they. A visible tool or a healthy connection grants nothing (R7.3).
	p.decision = g.o.Policy.Judge(policy.Question{Principal: r.Principal, Export: r.Export, Tool: tool.Descriptor, Arguments: r.Arguments})
	if p.decision.Verdict == policy.Deny {
		return p.refuse(ctx, call.CodeDenied, p.decision.Reason)
	}

	// 5. Scopes and frontier, 6. arguments may leave: nothing to decide without the extensions and the inspectors.

	// 7. Someone agrees. There is no queue to ask, so a call that needs approval waits for nobody.
	if p.decision.Verdict != policy.Allow {
		return p.refuse(ctx, call.CodeApprovalPending, p.decision.Reason)
	}

	// 8. Still the tool that was expected. After the approval, because a tool may change while a call waits.
	if err := drift.Compare(tool.Descriptor, tool.Expected); err != nil {
		g.quarantine(tool, err)
		return p.refuse(ctx, call.CodeSchemaDrift, err.Error())
	}

	// 9. Commit the intent. From here on the call has exactly one outcome, whatever happens.
	if err := p.commitIntent(ctx); err != nil {
		if ctx.Err() != nil { // the caller has gone before the intent's turn came: nothing of it is written
			return p.refuse(ctx, goneCode(ctx), "the caller has gone")
		}
		return p.refuse(ctx, call.CodeLedgerUnavailable, err.Error())
	}
	g.o.Failpoint("intent")

	// 10. Call out, once.
	answer := p.callOut(ctx)
	g.o.Failpoint("answer")

	// 11. The result may enter, or not.
	reply := p.conclude(answer)
	if reply.Result != nil {
		if err := firewall.CheckKinds(reply.Result, tool.Provider.Profile.Content); err != nil {
			reply = p.withhold(reply.Outcome, call.CodeUnsupportedContent, err.Error())
		}
	}
	g.o.Failpoint("verdict")

	// 12. Commit the outcome, chained to the intent. What is not recorded is not released.
	if err := p.commitOutcome(ctx, reply, answer); err != nil {
		g.o.Logger.Error("commit outcome", "call", p.id, "tool", tool.ID, "err", err)
		return p.unrecorded(reply.Outcome)
	}
	g.o.Failpoint("outcome")

	// 13. Answer.
	return reply
}

// passage is one call on its way.
type passage struct {
	gate       *Gate
	request    *call.Request
	id         call.ID
	started    time.Time
	tool       *provider.Tool
	generation provider.Generation
	decision   policy.Decision
}

// relaxed says whether the ledger may lag behind the call (READ_ONLY tools of a profile that says so, never others).
func (p *passage) relaxed() bool {
	return !p.tool.Effect.Durable() && p.tool.Provider.Profile.RelaxedLedger
}

func (p *passage) commitIntent(ctx context.Context) error {
	entry := ledger.Entry{Time: p.started, Kind: ledger.KindCallIntent, CallID: p.id, Session: p.request.Session,
		Principal: p.request.Principal.ID, Body: p.intentBody()}
	intent := ledger.Intent{CallID: p.id, Started: p.started, Principal: p.request.Principal.ID, Session: p.request.Session, Tool: p.tool.ID}
	return p.write(ctx, func(tx store.Tx) error {
		if err := tx.Append(entry); err != nil {
			return err
		}
		return tx.OpenIntent(intent)
	})
}

func (p *passage) commitOutcome(ctx context.Context, reply call.Reply, answer call.Answer) error {
	// The caller may have gone; what happened is recorded all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.gate.o.CommitTimeout)
	defer cancel()
	entry := ledger.Entry{Time: p.gate.o.Now(), Kind: ledger.KindCallOutcome, CallID: p.id, Session: p.request.Session,
		Principal: p.request.Principal.ID, Body: outcomeBody(reply.Outcome, answer)}
	return p.write(ctx, func(tx store.Tx) error {
		if err := tx.Append(entry); err != nil {
			return err
		}
		return tx.CloseIntent(p.id)
	})
}

func (p *passage) write(ctx context.Context, fn func(store.Tx) error) error {
	if p.relaxed() {
		return p.gate.o.Store.Enqueue(ctx, fn)
	}
	return p.gate.o.Store.Update(ctx, fn)
}

// callOut places the call within its time. A panic of the upstream is this call's fault alone.
func (p *passage) callOut(ctx context.Context) (answer call.Answer) {
	limit := p.tool.Provider.Profile.Limits.Call
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			p.gate.o.Logger.Error("panic in a provider call", "call", p.id, "tool", p.tool.ID, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			answer = call.Answer{Delivery: call.DeliveryUnknown, Fault: call.CodeInternal, Detail: "panic"}
		}
	}()
	return p.gate.o.Upstream.Call(ctx, Cleared{id: p.id, generation: p.generation, tool: p.tool.Descriptor, request: p.request})
}

// goneCode says how a caller has gone: it gave up, or its time was up.
func goneCode(ctx context.Context) call.Code {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return call.CodeDeadlineExceeded
	}
	return call.CodeCancelled
}

// quarantine takes the tool's provider out of use until an operator has looked (R6.6).
func (g *Gate) quarantine(tool *provider.Tool, cause error) {
	if tool.Provider.Quarantine(cause.Error(), g.o.Now()) {
		g.o.Logger.Warn("provider quarantined", "provider", tool.Package, "tool", tool.ID, "reason", cause)
	}
}
