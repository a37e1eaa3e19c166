package vault

import (
	"fmt"
	"io"
	"os"

	"github.com/ostiary/ostiary/internal/durable"
)

// disk is what the vault does to files. Tests put one in its place that loses power between any two steps.
type disk interface {
	durable.Disk
	// read reads a file of at most limit bytes. A private one must not be readable by others.
	read(path string, limit int64, private bool) ([]byte, error)
}

// osDisk is the disk of the operating system.
type osDisk struct{ durable.OS }

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
