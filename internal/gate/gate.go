package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/admission"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/drift"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/world"
)

// Options are what a gate needs. What says nothing of a default is required.
type Options struct {
	Store    store.Store
	Registry *provider.Registry
	Policy   *policy.Policy
	Upstream Upstream
	Logger   *slog.Logger
	Now      func() time.Time
	NewID    func() call.ID // never repeats

	// Budgets bound what callers of exports may do in a while; nil: nothing does. The operator's own calls are not
	// counted.
	Budgets *policy.Budgets

	// Book says whether a tool is the one that was admitted (R6.6). Isolate keeps a quarantine that a call has found a
	// ground for, and has the book know of it.
	Book    *admission.Book
	Isolate func(context.Context, admission.Quarantine)

	// Approvals, Hub and Hold are how someone agrees: a call is held for Hold at most, and ends as pending then.
	Approvals *approval.Rules
	Hub       *approval.Hub
	Hold      time.Duration
	// Operator is the principal who agrees: its own calls, to which nobody can, are not held; "": there is none.
	Operator string

	// Elicit says whether calls of a provider's tools may be agreed to by the person behind the client that makes them (R7.6);
	// nil: none may. Offers remembers what was put to such people; nil: nothing is.
	Elicit func(pkg string) bool
	Offers *approval.Offers

	// Readable are the scopes of the world whose commits a caller through an export may be told of; nil: all of them.
	Readable func(export string) world.Readable

	// Firewall judges what leaves and what enters, by the rules that FirewallRules has for a tool; nil: the defaults.
	Firewall      Firewall
	FirewallRules func(*call.Descriptor) firewall.Rules
	// Sealer and Evidence are how what was held is kept. Opener opens what somebody has released; nil: it reaches no caller.
	Sealer   evidence.Sealer
	Opener   evidence.Opener
	Evidence evidence.Limits

	// CommitTimeout bounds the commit of an outcome, which goes on when the caller has gone; 0: 10 s.
	CommitTimeout time.Duration
	// Failpoint is called between the steps from 9 to 12 with the step just done; tests stop the process there. nil: none.
	Failpoint func(step string)
}

// Gate lets calls through, or not. It is safe for concurrent use.
type Gate struct {
	o      Options
	taints taints
	late   late
}

// New makes a gate.
func New(o Options) (*Gate, error) {
	if o.Store == nil || o.Registry == nil || o.Policy == nil || o.Upstream == nil || o.Logger == nil || o.Now == nil || o.NewID == nil {
		return nil, errors.New("gate: Store, Registry, Policy, Upstream, Logger, Now and NewID are needed")
	}
	if o.Book == nil || o.Isolate == nil || o.Approvals == nil || o.Hub == nil || o.Firewall == nil || o.Sealer == nil {
		return nil, errors.New("gate: Book, Isolate, Approvals, Hub, Firewall and Sealer are needed")
	}
	if o.CommitTimeout == 0 {
		o.CommitTimeout = 10 * time.Second
	}
	if o.Failpoint == nil {
		o.Failpoint = func(string) {}
	}
	if o.Readable == nil {
		o.Readable = func(string) world.Readable { return world.Readable{"*"} }
	}
	if o.FirewallRules == nil {
		o.FirewallRules = func(*call.Descriptor) firewall.Rules { return firewall.Rules{} }
	}
	return &Gate{o: o, taints: taints{known: map[reader]policy.Taint{}}}, nil
}

// Call is the path of a call. The steps are numbered as in docs/DESIGN.md; their order is the product. It returns when the
// outcome is known and recorded, and never sends a request twice (R3.3).
func (g *Gate) Call(ctx context.Context, r call.Request) call.Reply {
	p := &passage{gate: g, request: &r, id: g.o.NewID(), started: g.o.Now()}
	p.current = p.started

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

	// 3. Callable at all: the provider is active, the tool is the one that was admitted, the arguments satisfy the frozen
	// schema. In this order, because what is wrong with the arguments may be told in words of the schema.
	generation, reason, ok := tool.Provider.Route()
	if !ok {
		return p.refuse(ctx, call.CodeProviderUnavailable, string(reason.Code))
	}
	p.generation = generation
	if no := p.asAdmitted(ctx); no != nil {
		return p.turnBack(ctx, no)
	}
	if err := tool.Schema.Validate(r.Arguments, tool.Provider.Profile.NullIsAbsent); err != nil {
		return p.refuseSaying(ctx, call.CodeInvalidArguments, "the arguments do not satisfy the input schema", err.Error())
	}

	// 4. May they. A visible tool or a healthy connection grants nothing (R7.3), nor does it grant calls without end.
	if no := p.withinBudget(); no != nil {
		return p.turnBack(ctx, no)
	}
	if no := p.judge(ctx); no != nil {
		return p.turnBack(ctx, no)
	}

	// A result of the same call that was held and may have been released since: nothing leaves.
	if r.Collect != "" {
		return p.collect(ctx)
	}

	// 5. Scopes and frontier: what the call is based on still stands (R5.6).
	if no := p.barrier(ctx); no != nil {
		return p.turnBack(ctx, no)
	}

	// 6. The arguments may leave, or someone has to look at them, or they stay.
	if no := p.screenArguments(ctx); no != nil {
		return p.turnBack(ctx, no)
	}

	// 7. Someone agrees, if policy or the firewall asks for it. A no is a no, even if nobody need have been asked.
	if p.decision.Verdict != policy.Allow || r.Answered != nil {
		if no := p.agree(ctx); no != nil {
			return p.turnBack(ctx, no)
		}
		p.current = g.o.Now()
	}

	// 8. Still the tool that was admitted. Once more, because it may have changed while the call waited.
	if no := p.asAdmitted(ctx); no != nil {
		return p.turnBack(ctx, no)
	}

	// 9. Commit the intent, and spend the grant with it. From here on the call has exactly one outcome, whatever happens.
	if no, uncertain := p.commitIntent(ctx); uncertain {
		return p.turnBackLater(no)
	} else if no != nil {
		return p.turnBack(ctx, no)
	}
	g.o.Failpoint("intent")

	// 10. Call out, once.
	answer := p.callOut(ctx)
	p.foreign = answer.Foreign
	g.o.Failpoint("answer")

	// 11. What came may enter, or not.
	reply := p.conclude(answer)
	reply = p.screenReply(ctx, reply, answer)
	g.o.Failpoint("verdict")

	// 12. Commit outcome and verdict, chained to the intent. What is not recorded is not released.
	at, err := p.commitOutcome(ctx, reply, answer)
	if err != nil {
		g.o.Logger.Error("commit outcome", "call", p.id, "tool", tool.ID, "err", err)
		told := p.unrecorded(reply.Outcome)
		if passing(err) {
			p.writeLater(reply.Outcome, told.Outcome.Code, answer)
		} else if p.fact(reply.Outcome) != nil {
			g.lose()
		}
		return told
	}
	g.o.Failpoint("outcome")
	if p.owes {
		p.howToCollect(&reply.Outcome)
	}

	// 13. Answer, with what the caller has seen of the world now. A result that somebody is asked about waits for them a while,
	// and goes out if they release it.
	reply = p.awaitRelease(ctx, reply)
	reply.Frontier = p.seenAfter(at)
	if reply.Result != nil && answer.Frontier != nil { // it was read out of the world itself
		reply.Frontier = answer.Frontier
	}
	return reply
}

// passage is one call on its way.
type passage struct {
	gate       *Gate
	request    *call.Request
	id         call.ID
	started    time.Time
	current    time.Time // what the server offers must be known as of then: the start, or the end of a wait
	tool       *provider.Tool
	generation provider.Generation
	taint      policy.Taint // of the session, when the call was judged
	decision   policy.Decision
	scopes     world.Resolved
	asked      approval.ID // the request that the call waited for, or found
	askedBy    call.ID     // the call that asked first
	grant      approval.ID // to be spent; "": none is needed
	foreign    bool        // the result has words of strangers in it
	finding    *finding    // of step 6 or 11; nil: nothing was screened

	redacted bool // a reviewer is not shown all of the arguments

	owes   bool // a result was held
	unkept bool // and could not be kept

	asking  *approval.Question // about the release of the result; nil: none is asked
	release approval.Request   // what came of it
}

// refusal says why a call goes no further. The detail is for operators; saying is told to the caller as well, in words that
// are our own or the caller's.
type refusal struct {
	code           call.Code
	detail, saying string
	news           *world.News // what a stale frontier has missed; nil for any other refusal

	question *call.Question // for the person behind the client; nil: none
	state    string         // that goes with it
}

func (r *refusal) Error() string { return string(r.code) + ": " + r.detail }

// turnBack ends a call before its intent.
func (p *passage) turnBack(ctx context.Context, no *refusal) call.Reply {
	reply := p.refuseSaying(ctx, no.code, no.detail, no.saying)
	if no.news != nil {
		reply = p.tell(ctx, reply, no.news)
	}
	if no.question != nil {
		reply.Question, reply.State, reply.Outcome.Status = no.question, no.state, call.InputRequired
	}
	return reply
}

// asAdmitted says whether the tool is the one that was admitted, as far as anything can be known of it now: what its server
// has announced is looked at first, and its list is read again if that was too long ago. What is found for the first time puts it into quarantine (R6.6).
func (p *passage) asAdmitted(ctx context.Context) *refusal {
	t := p.tool
	if err := t.Provider.Settle(ctx, p.current); err != nil {
		return &refusal{code: call.CodeProviderUnavailable, detail: err.Error()}
	}
	if t.Provider.Gone(t.RawName) {
		return &refusal{code: call.CodeToolNotAllowed, detail: "the server does not offer the tool any more"}
	}
	if drift.Compare(t.Descriptor, t.Expected) != nil {
		p.isolate(ctx, "", "the input schema of a tool does not have the digest that the configuration gives")
		return &refusal{code: call.CodeSchemaDrift, detail: "the input schema does not have the expected digest"}
	}
	err := p.gate.o.Book.Check(t.Descriptor)
	if err == nil {
		return nil
	}
	no, ok := errors.AsType[*admission.Refusal](err)
	if !ok {
		return &refusal{code: call.CodeInternal, detail: err.Error()}
	}
	if now, ok := p.gate.o.Registry.Tool(t.ID); no.Drift && ok && now == t { // else the call has outlived its catalog
		p.isolate(ctx, t.RawName, no.Text)
	}
	return &refusal{code: no.Code, detail: no.Text, saying: no.Text}
}

// isolate takes a tool, or its provider if rawName is "", out of use until an operator has looked.
func (p *passage) isolate(ctx context.Context, rawName, detail string) {
	p.gate.o.Logger.Warn("quarantine", "provider", p.tool.Package, "tool", p.tool.ID, "whole", rawName == "", "reason", detail)
	p.gate.o.Isolate(context.WithoutCancel(ctx), admission.Quarantine{Provider: p.tool.Package, Tool: rawName, Reason: admission.SchemaDrift,
		Detail: detail, Since: p.gate.o.Now()})
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
	return p.gate.o.Upstream.Call(ctx, Cleared{id: p.id, generation: p.generation, tool: p.tool.Descriptor, request: p.screenedRequest(ctx)})
}
