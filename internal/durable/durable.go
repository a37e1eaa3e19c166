// Package durable writes files that are whole or not there at all, whenever the power goes.
//
// It owns the order of the steps: a file beside the other, its bytes on disk, the new name, the name on disk. The vault and
// the ledger's keys are written with it. It must not know what is in a file, or who may write it when.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Disk is what is done to files. Tests put one in its place that loses power between any two steps.
type Disk interface {
	// Create makes a new file with mode 0600.
	Create(path string) (File, error)
	Rename(from, to string) error
	Remove(path string) error
	// SyncDir makes what was renamed in dir durable.
	SyncDir(dir string) error
}

// File is a file that is being written.
type File interface {
	io.WriteCloser
	Sync() error
}

// Unfinished is where a file is written until it is whole.
func Unfinished(path string) string { return path + ".tmp" }

// CleanUp removes what a crash in the midst of [Replace] has left of these files. Nobody else may write them meanwhile.
func CleanUp(d Disk, paths ...string) error {
	for _, path := range paths {
		if err := d.Remove(Unfinished(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what is left of %s: %w", path, err)
		}
	}
	return nil
}

// Replace writes a file, with mode 0600, in place of the one that may be there. Nobody else may do so at the same time, for
// the temporary name is always the same.
func Replace(d Disk, path string, data []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	tmp := Unfinished(path)
	if err := d.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // left by a crash
	}
	f, err := d.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = d.Rename(tmp, path)
	}
	if err != nil {
		_ = d.Remove(tmp) // the first error is the one to tell
		return err
	}
	return d.SyncDir(filepath.Dir(path))
}

// OS is the disk of the operating system.
type OS struct{}

// Create implements [Disk].
func (OS) Create(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Rename implements [Disk].
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements [Disk].
func (OS) Remove(path string) error { return os.Remove(path) }
