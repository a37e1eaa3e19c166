//go:build unix

package adminapi

import (
	"fmt"
	"os"
	"syscall"
)

// ownDir refuses a directory in a shared place that is not this user's alone: somebody else could answer in it.
func ownDir(dir string) error {
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !fi.IsDir() || fi.Mode().Perm() != 0o700 || !ok || int(st.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a directory of this user's alone (mode 0700)", dir)
	}
	return nil
}
