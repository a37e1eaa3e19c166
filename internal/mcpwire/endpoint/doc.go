// Package endpoint is the inbound side: Ostiary as an MCP server, both eras on one path, and stdio.
//
// It owns bearer, Origin and Host rules, strict reading of what clients send, the modern hot methods (tools/call,
// tools/list, subscriptions/listen), progress, cancellation, limits and panic safety; the SDK's server does the rest.
// internal/httpd mounts it; it hands calls to the gate. It must not know providers' connections, SQL or policy rules.
package endpoint
