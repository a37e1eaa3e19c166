package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A file is replaced as a whole; what a crash has left of an earlier try is no hindrance, and nothing is left beside it.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path+".tmp", []byte("half of an earl"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first, and longer", "second"} {
		if err := Replace(OS{}, path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if err := Replace(OS{}, filepath.Join(dir, "none", "f"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a directory that does not exist: %v", err)
	}
}

// faultyDisk fails at one step.
type faultyDisk struct {
	OS
	renames, syncs error
}

type faultyFile struct {
	*os.File
	err error
}

func (f faultyFile) Sync() error { return f.err }

func (d faultyDisk) Create(path string) (File, error) {
	f, err := os.Create(path)
	return faultyFile{f, d.syncs}, err
}

func (d faultyDisk) Rename(from, to string) error {
	if d.renames != nil {
		return d.renames
	}
	return os.Rename(from, to)
}

// What could not be written whole leaves the old file as it was.
func TestReplaceFails(t *testing.T) {
	full := errors.New("disk full")
	for name, d := range map[string]faultyDisk{"sync": {syncs: full}, "rename": {renames: full}} {
		dir := t.TempDir()
		path := filepath.Join(dir, "f")
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Replace(d, path, []byte("new")); !errors.Is(err, full) {
			t.Errorf("%s: got %v", name, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
			t.Errorf("%s: the file has %q, %v", name, got, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
}
