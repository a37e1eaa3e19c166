//go:build unix

package transport

import (
	"os"
	"syscall"
)

// processGroup is the child's own process group; its number is the child's pid.
type processGroup struct{ pgid int }

func (g *processGroup) adopt(p *os.Process) { g.pgid = p.Pid }

func (g *processGroup) release() {}

func (g *processGroup) terminate() { g.signal(syscall.SIGTERM) }

func (g *processGroup) kill() { g.signal(syscall.SIGKILL) }

func (g *processGroup) signal(s syscall.Signal) {
	if g.pgid > 1 { // never 0 or 1: that would be ourselves, or everyone
		_ = syscall.Kill(-g.pgid, s)
	}
}
