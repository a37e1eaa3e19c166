// Package world knows scopes, commits and frontiers: the append-only journal of facts that agents act on. It says what a
// legal scope is, which scopes a call observes and publishes, what an event must be to become a fact, and which commits
// somebody who knows a frontier has missed.
//
// The gate asks it before a call and hands it what a call has changed; the host hands it the events of providers. It keeps
// its rows through [Tx], which the store provides. It must not know MCP's wire, the store, or who decides.
package world
