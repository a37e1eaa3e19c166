// Package provider holds what the runtime knows of the external MCP servers that it admits: their profiles, their
// lifecycle states with typed reasons, the generations of their connections, their frozen catalogs, and the one registry
// of tools that listing and routing both read.
//
// It owns the start transaction (connect, negotiate, listen, list, validate, under one deadline) and change detection
// after it. The root package drives it; it hands connections to a [Connector], which internal/mcpwire implements. The gate
// reads its [Registry]. It must not know JSON-RPC, the MCP SDK, HTTP, processes, SQL or policy.
//
// A connection is a [Generation] from its first line on. A catalog belongs to one generation and is never swapped in
// place (R2.6).
package provider
