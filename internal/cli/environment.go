package cli

import (
	"slices"
	"strings"
)

// refuseDebugSwitches refuses an environment that would change from outside how messages, certificates and connections are
// checked. The runtime and the MCP SDK have read it before anything of ours ran, so clearing it here would be too
// late.
func refuseDebugSwitches(env func(string) (string, bool)) error {
	if v, ok := env("MCPGODEBUG"); ok && v != "" {
		return usage("unset MCPGODEBUG", "the environment variable MCPGODEBUG is set: it changes how MCP messages are checked")
	}
	v, _ := env("GODEBUG")
	for setting := range strings.SplitSeq(v, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(setting), "=")
		if name != "" && !slices.Contains(harmlessDebug, name) {
			return usage("unset GODEBUG, or leave in it only "+join(harmlessDebug), "the environment variable GODEBUG sets %q: it could change how connections and certificates are checked", clip(name))
		}
	}
	return nil
}

// harmlessDebug are the settings of GODEBUG that say how the runtime works, and nothing of what it accepts.
var harmlessDebug = []string{"asyncpreemptoff", "gctrace", "inittrace", "madvdontneed", "netdns", "scheddetail", "schedtrace"}

// clip bounds a word of the environment in a message.
func clip(s string) string {
	if len(s) > 60 {
		return s[:60]
	}
	return s
}
