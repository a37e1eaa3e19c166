// Package config turns ostiary.toml and the environment into one typed, validated value, before anything is started.
//
// It owns the keys (their types, defaults, bounds and meaning in one table, from which the JSON Schema and
// docs/CONFIG.md are generated), every check that needs no running provider, and the rendering of a configuration
// without its secrets. The command line and the host read a [Config]; nothing hands anything back. It must not know how
// a provider is started, SQL, HTTP serving, the MCP SDK or a terminal.
//
// A file is refused as a whole, with all its faults at once, each with file, line, key and what was expected. Secrets
// are never in the file: it names environment variables, whose values are read when they are needed.
package config
