// Package httpd is the listener of the gateway: one http.Server, its bounds, and who answers on which path.
//
// It owns time-outs, the number of connections, the perimeter and credential checks of paths that nobody mounted, health
// and readiness, recovery from panics, and shutdown. The host drives it and mounts handlers (internal/mcpwire/endpoint,
// the admin API, the console); it must not know what they speak.
package httpd
