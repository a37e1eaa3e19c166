package cli

import (
	"testing"

	"golang.org/x/sys/unix"
)

// F-63: no core, and no look into the memory for others.
func TestF63_KeepPrivate(t *testing.T) {
	if err := keepPrivate(); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || n != 0 {
		t.Errorf("dumpable: %d, %v", n, err)
	}
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil || l.Cur != 0 || l.Max != 0 {
		t.Errorf("limit of cores: %+v, %v", l, err)
	}
}
