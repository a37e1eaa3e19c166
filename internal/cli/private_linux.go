package cli

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// keepPrivate has the kernel keep this process's memory to itself, for there are secrets in it (F-63): no core is dumped,
// whatever the limits and GOTRACEBACK say, and no other process of this user can read the memory or the environment, the
// providers among them. Children inherit the former alone: a program that is executed begins with a clean slate.
func keepPrivate() error {
	if err := noCore(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep the memory of this process private: %w", err)
	}
	return nil
}
