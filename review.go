package ostiary

import (
	"context"
	"time"
)

// Review is what an operator decides with: admissions, quarantine, approvals, evidence, policy and secrets. A running
// gateway serves all of it; the data directory alone, without a gateway, serves what needs no connection.
type Review interface {
	// Admissions lists what is new or changed at the providers (all of them if provider is ""), with both texts and the
	// findings. It reads what the last listing showed.
	Admissions(ctx context.Context, provider string) ([]Admission, error)
	// Admit decides on definitions that were shown, each named by its exact digest. Refuse keeps them out.
	Admit(ctx context.Context, d AdmissionDecision) ([]Admission, error)
	// Quarantined lists providers and tools that are out of use until somebody has looked.
	Quarantined(ctx context.Context) ([]QuarantineInfo, error)
	// Release takes a provider ("" tool) or a tool out of quarantine. It admits nothing.
	Release(ctx context.Context, provider, tool, reason string) (QuarantineInfo, error)
	// Lock renders the lock file of everything that is admitted now (R6.11).
	Lock(ctx context.Context) ([]byte, error)

	// Approvals lists requests: those that wait, or all that are kept.
	Approvals(ctx context.Context, all bool) ([]ApprovalInfo, error)
	// Approval is one request.
	Approval(ctx context.Context, id string) (ApprovalInfo, error)
	// Decide grants (once, or for the session) or declines a request. To decide on one about a result is to decide on the
	// evidence, and the other way round.
	Decide(ctx context.Context, d ApprovalDecision) (ApprovalInfo, error)
	// Revoke takes a grant back that is not spent, or that is for a session; or all of them.
	Revoke(ctx context.Context, d Revocation) ([]ApprovalInfo, error)

	// Taints lists what sessions have read, as far as policy asks.
	Taints(ctx context.Context) ([]TaintInfo, error)
	// DropTaint forgets what a principal's session has read, or for the session "" what the principal has read without one.
	// The operator answers for it: a call that carries data out is not asked about because of it any more. The taint is as it
	// was.
	DropTaint(ctx context.Context, d TaintDrop) (TaintInfo, error)

	// Evidence lists what the firewall held.
	Evidence(ctx context.Context, f EvidenceFilter) ([]EvidenceInfo, error)
	// EvidenceContent is one item with its content, which needs the vault's key.
	EvidenceContent(ctx context.Context, id string) (EvidenceInfo, error)
	// DecideEvidence releases, rejects or purges an item.
	DecideEvidence(ctx context.Context, id, verb, reason string) (EvidenceInfo, error)

	// Prune takes the content of old records out of the ledger, but for what is open, in force or still to be decided, and
	// that of the last day. It goes in small transactions, each with its own record.
	Prune(ctx context.Context, r PruneRequest) (PruneReport, error)

	// Explain says which rule decides about a call, and why; nothing is called.
	Explain(ctx context.Context, q ExplainRequest) (JSON, error)
}

// Admission is one definition that waits for a decision, or was decided.
type Admission struct {
	Provider string    `json:"provider"`
	Tool     string    `json:"tool,omitempty"`   // the raw name; "" is the provider itself: its instructions and its origin
	Standing string    `json:"standing"`         // new, changed, removed, admitted, refused
	Class    string    `json:"class,omitempty"`  // of a change: cosmetic, behavioural, authority
	Fields   []string  `json:"fields,omitempty"` // that differ
	Digest   string    `json:"digest"`           // of the definition as offered now
	From     string    `json:"from,omitempty"`   // of the definition that is admitted
	Old      string    `json:"old,omitempty"`    // the admitted definition, as JSON
	New      string    `json:"new,omitempty"`    // the offered one
	Findings []Finding `json:"findings,omitempty"`
	// Observe and Publish are the scopes of a tool, as templates (R4.3); ScopesFault is why it has none.
	Observe     []string  `json:"observe,omitempty"`
	Publish     []string  `json:"publish,omitempty"`
	ScopesFault string    `json:"scopes_fault,omitempty"`
	Decider     string    `json:"decider,omitempty"`
	Decided     time.Time `json:"decided,omitzero"`
	Side        string    `json:"side_by_side,omitempty"` // old and new beside each other, hidden characters made visible
}

// Finding is what an inspector saw in a text.
type Finding struct {
	Code        string `json:"code"`
	Class       string `json:"class"`
	Sensitivity string `json:"sensitivity"`
	Place       string `json:"place"`   // JSON pointer
	Excerpt     string `json:"excerpt"` // redacted
}

// AdmissionDecision admits or refuses.
type AdmissionDecision struct {
	Provider string            `json:"provider"`
	Tools    map[string]string `json:"tools"`         // raw name ("" for the provider itself) → the digest that was shown
	All      bool              `json:"all,omitempty"` // everything that waits; only for the first admission of a provider
	Refuse   bool              `json:"refuse,omitempty"`
	Reason   string            `json:"reason,omitempty"`
}

// QuarantineInfo is a provider, or one tool of it, that is out of use.
type QuarantineInfo struct {
	Provider string    `json:"provider"`
	Tool     string    `json:"tool,omitempty"`
	Reason   string    `json:"reason"`
	Text     string    `json:"text,omitempty"`
	Since    time.Time `json:"since"`
	By       string    `json:"by"`
}

// ApprovalInfo is one request for approval.
type ApprovalInfo struct {
	ID          string    `json:"id"`
	Evidence    string    `json:"evidence,omitempty"` // the held result that it asks to release; "": it asks to let a call out
	Call        string    `json:"call"`
	State       string    `json:"state"`
	Principal   string    `json:"principal"`
	Session     string    `json:"session,omitempty"`
	Export      string    `json:"export,omitempty"`
	Provider    string    `json:"provider"`
	Tool        string    `json:"tool"`
	Effect      string    `json:"effect"`
	Sensitivity string    `json:"sensitivity,omitempty"`
	Summary     string    `json:"summary"`
	Arguments   string    `json:"arguments,omitempty"` // for a reviewer: redacted and bounded
	Created     time.Time `json:"created"`
	Expires     time.Time `json:"expires"`
	Decision    string    `json:"decision,omitempty"`
	Decider     string    `json:"decider,omitempty"`
	Decided     time.Time `json:"decided,omitzero"`
	Reason      string    `json:"reason,omitempty"`
}

// ApprovalDecision decides on a request.
type ApprovalDecision struct {
	ID         string `json:"id"`
	Grant      bool   `json:"grant"`
	ForSession bool   `json:"for_session,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// Revocation takes one grant back, or all.
type Revocation struct {
	ID     string `json:"id,omitempty"`
	All    bool   `json:"all,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// TaintInfo is what one session has read.
type TaintInfo struct {
	Principal string   `json:"principal"`
	Session   string   `json:"session,omitempty"` // "": all that the principal does without one
	Taints    []string `json:"taints"`
}

// TaintDrop forgets what a session has read.
type TaintDrop struct {
	Principal string `json:"principal"`
	Session   string `json:"session,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// EvidenceFilter chooses items.
type EvidenceFilter struct {
	Call     string `json:"call,omitempty"`
	Provider string `json:"provider,omitempty"`
	State    string `json:"state,omitempty"`
	Limit    int    `json:"limit,omitempty"`
}

// EvidenceInfo is one item that the firewall held.
type EvidenceInfo struct {
	ID          string    `json:"id"`
	Call        string    `json:"call"`
	Provider    string    `json:"provider"`
	Tool        string    `json:"tool"`
	Direction   string    `json:"direction"`
	Verdict     string    `json:"verdict"`
	Reasons     []string  `json:"reasons,omitempty"`
	Sensitivity string    `json:"sensitivity"`
	Excerpt     string    `json:"excerpt,omitempty"`
	SHA256      string    `json:"sha256"`
	Size        int64     `json:"size"`
	State       string    `json:"state"`
	Created     time.Time `json:"created"`
	Expires     time.Time `json:"expires"`
	Decider     string    `json:"decider,omitempty"`
	Decided     time.Time `json:"decided,omitzero"`
	Reason      string    `json:"reason,omitempty"`
	Delivered   time.Time `json:"delivered,omitzero"` // when its caller was given it
	Content     JSON      `json:"content,omitempty"`  // of EvidenceContent alone
}

// ExplainRequest is a call that is not placed.
type ExplainRequest struct {
	Tool      string `json:"tool"`
	Arguments JSON   `json:"arguments,omitempty"`
	Principal string `json:"principal,omitempty"` // "": the operator
	Export    string `json:"export,omitempty"`
	Session   string `json:"session,omitempty"`
}
