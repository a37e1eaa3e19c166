// Package transport puts JSON-RPC messages on a wire and takes them off it again: a child's pipes, or HTTP.
//
// It owns processes and their groups, HTTP clients and their guards, strict frames, sizes, rates and times, and the mark
// that says how far a request got ([Delivery]). internal/mcpwire/session drives it. It must not know tools, policy, what
// a method means, or which era a server speaks beyond what it is told.
package transport
