// Package adminapi is how another process on the same machine asks a running gateway: one request and one answer an
// operation, as JSON over a socket in the data directory.
//
// It owns the routes, the socket and its permissions; whoever may open the socket is the operator. The command line serves
// it beside the gateway and calls it through [Dial]. It only translates to [ostiary.Operations] and [ostiary.Review]: it
// must not know SQL, the MCP SDK or policy.
package adminapi
