//go:build unix && !linux

package transport

import (
	"os"
	"os/exec"
	"syscall"
)

func setProcAttr(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// awaitExit has no portable way to wait without reaping; the wait that follows does it.
func awaitExit(int) bool { return false }

// record has nothing to read relations from: the group is what is known of descendants.
func (p *process) record() {}

func (p *process) sweep(force bool) {
	if force && !p.waitFor(0) {
		p.group.kill()
	}
}

func pipeInode(*os.File) uint64 { return 0 }
