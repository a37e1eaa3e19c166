// Package mcpwire is the adapter between MCP and the path of a call: only this tree speaks MCP with others.
//
// It owns the outbound side ([Upstreams]: it connects providers and places cleared calls) and, in its parts, everything
// that knows the wire: transport (child processes, guarded HTTP, frames, limits), session (one connection's life),
// content (wire bytes to call nouns and back, pure) and endpoint (the inbound side). The host drives it; it hands calls to
// the gate and takes only [gate.Cleared] tickets from it. It must not know SQL, policy rules or configuration files.
//
// The official SDK does the control plane, through its public seams. tools/call, tools/list and subscriptions/listen
// travel as raw bytes beside it, with string ids of our own, because the SDK's typed path loses data.
package mcpwire
