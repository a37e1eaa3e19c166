package sqlstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ostiary/ostiary/internal/store"
)

const lockFile = "ostiary.lock"

// dirLock keeps the data directory for this process. The lock is the kernel's, on the open file: it ends with the process
// however that ends, and a stopped process that wakes still has it (F-07, F-08).
type dirLock struct{ f *os.File }

// lockDir takes the data directory or says who has it.
func lockDir(dir string) (*dirLock, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	held, err := tryLock(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	}
	if !held {
		holder, _ := io.ReadAll(io.LimitReader(f, 512)) // it is only for the message
		f.Close()
		who := strings.TrimSpace(string(holder))
		if who == "" {
			who = "another process"
		}
		return nil, fmt.Errorf("lock data directory %s: it is held by %s: %w", dir, who, store.ErrLocked)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	text := fmt.Sprintf("process %d on host %s\n", os.Getpid(), host)
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(text), 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	}
	return &dirLock{f}, nil
}

// release lets go. The file stays: to remove it would let two processes lock two files of one name.
// The lock is given back in so many words, because to close the file does not end it while a child that is just being
// started still has a copy of it.
func (l *dirLock) release() error { return errors.Join(unlock(l.f), l.f.Close()) }
