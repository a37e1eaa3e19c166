// Package cli is the command line: one file a command, each made by newXCommand(app).
//
// It owns flags, arguments, what is printed and the exit code. A command parses and prints; [ostiary.Host], or the gateway
// that runs on the data directory already, does. It must not know SQL, the MCP SDK, the gate or how a provider is
// connected.
//
// Rules that hold for every command: stdout is the result and stderr is the talk; every command that reads has --json;
// nothing is asked without a terminal; no colours; text that comes from a server is shown without control, bidirectional
// and invisible characters, whatever the output is; an error is lower case, says what to do in a hint, and ends with an
// exit code of the one table in [call.Exit].
package cli
