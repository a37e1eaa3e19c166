package cli

import (
	"os"
	"runtime"
)

// ballast is how much garbage may gather before the collector runs, at the least. What a gateway keeps is a few MiB, while
// one call with a large result leaves half a MiB behind: with nothing but the default the collector would run every dozen
// calls. It is address space alone: its pages are never touched, so they are never resident.
var ballast []byte

const ballastSize = 24 << 20

// calmCollector is for commands that serve. A GOGC in the environment says that somebody has decided otherwise.
func calmCollector() {
	if os.Getenv("GOGC") == "" {
		ballast = make([]byte, ballastSize)
		runtime.KeepAlive(ballast)
	}
}
