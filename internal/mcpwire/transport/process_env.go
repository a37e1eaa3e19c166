package transport

import (
	"maps"
	"os"
	"runtime"
	"slices"
)

// baseEnv names what every child gets from the gateway's environment: enough to find programs, a home and a place for
// temporary files, and nothing that could be a secret (R1.12).
var baseEnv = map[string][]string{
	"windows": {
		"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "PATH", "PATHEXT",
		"PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME",
		"USERPROFILE", "WINDIR",
	},
	"": {"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"},
}

// ChildEnv is the complete environment of a child: the base, the literal values, and the names to copy from the
// gateway's environment (R1.12). Literal values win over copied ones, both over the base. The result is sorted. A nil
// lookup is [os.LookupEnv].
func ChildEnv(env map[string]string, envFrom []string, lookup func(string) (string, bool)) []string {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	base, ok := baseEnv[runtime.GOOS]
	if !ok {
		base = baseEnv[""]
	}
	all := make(map[string]string, len(base)+len(env)+len(envFrom))
	for _, names := range [][]string{base, envFrom} {
		for _, name := range names {
			if v, ok := lookup(name); ok {
				all[name] = v
			}
		}
	}
	maps.Copy(all, env)
	out := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, name+"="+all[name])
	}
	return out
}
