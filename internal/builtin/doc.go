// Package builtin is what the gateway offers of its own beside the tools of providers (R2.5): reading the world, as tools that
// exports may list and as the resource of each scope (R5.7). Calls of it walk the same path as all others and are answered in
// process, from the store's rows; it knows neither who calls nor MCP's wire, and has no effect on anything.
package builtin
