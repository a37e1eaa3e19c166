// Package identity turns the credential of an inbound caller into a [call.Principal].
//
// It owns bearer tokens ([Tokens]), the bound on guessing them ([Throttle]), the one place that reads a credential off an
// HTTP request ([Guard]), and the check that no web page calls in its user's place ([Perimeter]), so that no route can
// forget a part of it. internal/mcpwire/endpoint and internal/httpd drive it; it hands on a principal and never the
// credential. It must not know MCP, exports, policy or the store.
package identity
