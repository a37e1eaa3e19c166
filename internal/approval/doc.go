// Package approval is how someone agrees to a call before it is made: ask, grant, decline, expire, spend (R7.4, R7.5).
//
// It owns the request and its states, what a grant is bound to ([Bind]), the words that a reviewer reads ([Describe]), the
// bounds that keep reviewers from being worn out, and the [Hub] in which calls wait for a decision. The gate asks and
// spends, both in transactions of the store ([Tx]); the edges show requests and hand decisions in. It must not know a
// clock, a store, MCP or how a reviewer is reached.
//
// # The states
//
//	WAITING ─ Grant ──→ GRANTED ─ Spend ──→ SPENT      (once; a grant for a session stays GRANTED)
//	   │                   ├──── Expire ──→ LAPSED
//	   │                   └──── Revoke ──→ REVOKED
//	   ├──── Decline, Block ─────────────→ DECLINED
//	   └──── Expire ─────────────────────→ EXPIRED
//
// A request to release a result ([Rules.AskRelease]) goes from WAITING to SPENT at once when it is granted: what was agreed to
// is done by agreeing.
//
// No other step exists, and none leads back: exactly one decision is made on a request, and a grant for one call is spent
// at most once, because Spend stands in the transaction that commits the call's intent.
package approval
