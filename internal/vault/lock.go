package vault

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lockEvery is how often a writer looks whether the lock is free: the kernel's locks on files give no signal that can be
// waited for together with a context.
const lockEvery = 20 * time.Millisecond

// takeLock waits until this is the only writer, in this process and in others. The lock is on the open file, so it ends
// with the process however that ends. The file stays: to remove it would let two writers lock two files of one name.
func takeLock(ctx context.Context, path string, patience time.Duration) (release func() error, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrBusy)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
			err = fmt.Errorf("lock %s: %w", path, err)
		}
	}()
	tick := time.NewTicker(lockEvery)
	defer tick.Stop()
	for {
		held, err := tryLock(f)
		if err != nil {
			return nil, err
		}
		if held {
			return f.Close, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
