// Package evidence is what the firewall held, kept until someone has looked at it or its time is over (R8.1, R8.6).
//
// It owns the [Item] and its states, what of it is sealed and what may be seen without the key, and its bounds. The gate
// holds and keeps, in the transaction that commits the call's outcome; reviewers release, reject and read through the
// edges; the host sweeps. All of it works on transactions of the store ([Tx], [View]). It must not know how a verdict
// comes about, a clock, a store, MCP or how a reviewer is reached.
//
// # The states
//
//	HELD ─┬─ Release ─→ RELEASED ─┐
//	      ├─ Reject ──→ REJECTED ─┼─ Purge ─→ PURGED
//	      └───────────────────────┘
//
// A result whose caller can still be told of it (its Claim says who that is) is delivered at most once, and only while it is
// RELEASED: [Deliver].
//
// No other step exists, and none leads back: what was rejected or purged is never released, and each step names who took
// it. To purge takes the payload and the excerpt away; that there was something, its hash and what was decided stay.
//
// # What is secret
//
// The payload is sealed before it comes near a transaction, to a recipient whose key only the vault has, and bound to the
// item: a payload that was moved to another item does not open. Evidence can be kept while the vault is locked; to read it
// takes the vault's key. The excerpt is kept in clear, so it must come redacted.
package evidence
