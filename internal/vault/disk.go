package vault

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// disk is what the vault does to files. Tests put one in its place that loses power between any two steps.
type disk interface {
	// read reads a file of at most limit bytes. A private one must not be readable by others.
	read(path string, limit int64, private bool) ([]byte, error)
	// create makes a new file with mode 0600.
	create(path string) (writable, error)
	rename(from, to string) error
	remove(path string) error
	// syncDir makes what was renamed in dir durable.
	syncDir(dir string) error
}

type writable interface {
	io.WriteCloser
	Sync() error
}

// replace writes a file whole or not at all, and durably. The caller has the lock, so the temporary name is its own.
func replace(d disk, path string, data []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	tmp := path + ".tmp"
	if err := d.remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // left by a crash
	}
	f, err := d.create(tmp)
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
		err = d.rename(tmp, path)
	}
	if err != nil {
		_ = d.remove(tmp) // the first error is the one to tell
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

// osDisk is the disk of the operating system.
type osDisk struct{}

func (osDisk) read(path string, limit int64, private bool) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path) // to open a pipe would wait for its other end
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if private {
		if err := checkPrivate(path, info); err != nil {
			return nil, err
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, damaged("%s has more than %d bytes", path, limit)
	}
	return b, nil
}

func (osDisk) create(path string) (writable, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osDisk) rename(from, to string) error { return os.Rename(from, to) }
func (osDisk) remove(path string) error     { return os.Remove(path) }
func (osDisk) syncDir(dir string) error     { return syncDir(dir) }
