//go:build unix

package transport

import (
	"os/exec"
	"syscall"
)

func setSession(cmd *exec.Cmd, own bool) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: own} }
