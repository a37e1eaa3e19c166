package vault

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// checkPrivate does nothing: Windows has access lists in place of modes, and the data directory inherits those of the
// user's profile.
func checkPrivate(string, fs.FileInfo) error { return nil }

func tryLock(f *os.File) (bool, error) {
	var at windows.Overlapped
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return false, nil
	}
	return false, err
}
