//go:build unix

package cli

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// noCore forbids core dumps to this process and to its children.
func noCore() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	return nil
}
