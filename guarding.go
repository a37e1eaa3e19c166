package ostiary

import (
	"fmt"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/config"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/gate"
	"github.com/ostiary/ostiary/internal/policy"
)

// maxHeld is how many calls are held open for a decision at a time; more end as overloaded.
const maxHeld = 256

// approvalRules are the configured times over the documented bounds. The operator decides, and where the configuration says so
// the person behind the client that makes the call; else nobody decides on a request of their own (F-53).
func approvalRules(c *config.Config) (approval.Rules, error) {
	r := approval.DefaultRules()
	elicit := eliciting(c)
	r.Entitled = func(decider string, q *approval.Request) bool {
		return decider == operator.ID || decider == approval.ByElicitation(q.Principal) && q.Evidence == "" && elicit(q.Provider)
	}
	if c.Approval.Expiry > 0 {
		r.RequestLife, r.OnceLife = c.Approval.Expiry, c.Approval.Expiry
	}
	if c.Approval.Session > 0 {
		r.SessionLife = c.Approval.Session
	}
	return r, r.Validate()
}

// eliciting says of which providers' tools calls may be agreed to by the person behind the client that makes them (R7.6).
func eliciting(c *config.Config) func(pkg string) bool {
	return func(pkg string) bool {
		p, ok := c.Provider(pkg)
		return ok && p.Policy.Elicit
	}
}

// newGate makes the path with all that its steps ask.
func (h *Host) newGate() (*gate.Gate, error) {
	c := h.o.Config
	budgets, err := policy.NewBudgets(c.Budget.Principal, c.Budget.Session)
	if err != nil {
		return nil, fmt.Errorf("budgets: %w", err)
	}
	hold := c.Approval.Hold
	if h.o.NoEndpoint { // nobody else can reach this process to decide
		hold = 0
	}
	offers, err := approval.NewOffers()
	if err != nil {
		return nil, err
	}
	rules := map[string]config.Firewall{}
	for _, p := range c.Providers {
		rules[p.Profile.Package] = p.Firewall
	}
	return gate.New(gate.Options{Store: h.store, Registry: h.registry, Policy: h.policy, Upstream: h.builtIns,
		Logger: h.log.With("component", "gate"), Now: h.o.Now, NewID: h.o.newID, Failpoint: h.o.failpoint,
		Budgets: budgets, Book: &h.admitted.book, Isolate: h.isolate, Approvals: &h.rules, Hub: h.hub, Hold: hold, Operator: operator.ID, Elicit: eliciting(c), Offers: offers,
		Firewall: h.firewall, FirewallRules: func(d *call.Descriptor) firewall.Rules { return rules[d.Package].Tool(d.Name) },
		Sealer: h.vault, Opener: h.vault, Readable: h.readable, Evidence: evidenceLimits(c)})
}

func evidenceLimits(c *config.Config) evidence.Limits {
	return evidence.Limits{MaxPayload: c.Evidence.MaxPayload, MaxTotal: c.Evidence.MaxBytes, Retention: c.Evidence.Retention}
}
