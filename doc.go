// Package ostiary is the embeddable host of the doorkeeper: it puts the parts together, starts and stops them, and has one
// method an operation.
//
// [New] opens the store and checks the configuration, [Host.Start] starts every provider and lets calls through,
// [Host.Stop] drains and closes in reverse order. Edges (the HTTP server, the admin API, the command line) only translate to
// the methods of [Host]. It must not know HTML or a terminal.
package ostiary
