// Package endpoint is the inbound side: Ostiary as an MCP server, both eras on one path, and stdio.
//
// It owns bearer, Origin and Host rules, strict reading of what clients send, the modern hot methods (tools/call,
// tools/list, subscriptions/listen), progress, cancellation, limits and panic safety; the SDK's server does the rest.
// internal/httpd mounts it; it hands calls to the gate. It must not know providers' connections, SQL or policy rules.
//
// A request walks through the files in this order: http.go (who may speak, and in which era), then modern_http.go or
// legacy_http.go, then core.go (the methods, whatever the wire), call.go (one tools/call) and reply.go (what its outcome
// looks like to a client). export.go holds what is rendered once. stdio.go is the same for a pipe. resources.go has the world
// as resources, whose reads are calls too; watch.go tells who subscribed to them.
//
// Locks: sessions.mu, legacy.mu, slots.mu, hub.mu, watchers.mu, relay.mu, mailbox.mu, stream.mu, livelyWriter.mu, asked.mu, pipe.mu and
// pipe.outMu guard their own struct. relay.mu is held while mailbox.mu is taken; else none is taken while another is held.
package endpoint
