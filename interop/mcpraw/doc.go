// Package mcpraw is a plain MCP client that keeps every byte: what the checks of interop compare servers and the gateway
// with. It shares nothing with the gateway's own wire code and nothing with an SDK, so that a fault of either is seen.
//
// A client has one request under way at a time. Requests of the server to the client are answered with an error.
package mcpraw
