//go:build unix

package sqlstore

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ostiary/ostiary/internal/store"
)

// F-07: a data directory that was let go is free at once, though a child that is just being started still has a copy of the
// open file; until then nobody else gets it.
func TestF07_ReleasedIsFree(t *testing.T) {
	dir := t.TempDir()
	l, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := unix.Dup(int(l.f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(copied)
	if _, err := lockDir(dir); !errors.Is(err, store.ErrLocked) {
		t.Errorf("taken twice: %v", err)
	}
	if err := l.release(); err != nil {
		t.Fatal(err)
	}
	again, err := lockDir(dir)
	if err != nil {
		t.Fatalf("after it was let go: %v", err)
	}
	if err := again.release(); err != nil {
		t.Error(err)
	}
}
