// Package exampleserver is the MCP server that comes with Ostiary: for a first try, for the demo and for the tests.
//
// It owns one small server that speaks both eras (2026-07-28 and the handshake revisions before it) over stdio and over
// Streamable HTTP, and whose tools do on request what real servers do by accident: hang, die in the middle of a call,
// change their own definition, answer with a kind of content that nobody knows, write junk on standard output. It is
// written on raw bytes and a strict parser so that every one of these is exact: what echo returns is what it was sent, byte
// for byte.
//
// The hidden command `ostiary example-server` drives it through [Run]; tests use [ServeStdio] and [Handler]. It knows
// nothing of the gateway, and the gateway knows nothing of it.
package exampleserver
