// Package session is one connection's life with an MCP server: negotiate the era, listen for changes, list the tools,
// call them, close.
//
// It owns the meaning of methods towards a provider in both eras, the ids of our requests, and whether changes are being
// heard. internal/mcpwire drives it; it drives one transport.Carrier, and the SDK's client session for legacy handshakes.
// It must not know exports, principals, policy or the ledger.
package session
