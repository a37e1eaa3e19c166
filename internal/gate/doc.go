// Package gate is the path of a call: one function, [Gate.Call], with a numbered comment a step.
//
// It owns the order of the steps, what must be atomic, and what may be concluded of a call's effect. Edges drive it; it
// asks provider, policy and firewall, commits to the store, and hands the call to an [Upstream]. It must not know JSON-RPC,
// the MCP SDK, SQL, HTTP or a terminal.
//
// Only the gate can fill a [Cleared] ticket, and an upstream takes nothing else: no other code can place an outbound tool
// call.
package gate
