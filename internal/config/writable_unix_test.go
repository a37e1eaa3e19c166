//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// a configuration that everybody could write, or put another in the place of, is not read.
func TestA34_WritableByOthers(t *testing.T) {
	for name, c := range map[string]struct {
		dir, file os.FileMode
		fault     string
	}{
		"mine alone":             {0o700, 0o600, ""},
		"read by all":            {0o755, 0o644, ""},
		"written by all":         {0o700, 0o666, "everybody"},
		"in everybody's":         {0o777, 0o600, "everybody"},
		"in a sticky one":        {0o777 | os.ModeSticky, 0o600, ""},
		"written by all, sticky": {0o777 | os.ModeSticky, 0o602, "everybody"},
	} {
		dir := filepath.Join(t.TempDir(), "d")
		path := filepath.Join(dir, "ostiary.toml")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.file); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		if err := os.Chmod(dir, c.dir); err != nil {
			t.Fatal(err)
		}
		got, err := Load(path, func(string) (string, bool) { return "", false })
		switch {
		case c.fault != "":
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case len(got.Warnings) > 0:
			t.Errorf("%s: warned of %v", name, got.Warnings)
		}
	}
}

// a group that may write counts unless it is the owner's own.
func TestA34_Writers(t *testing.T) {
	for name, c := range map[string]struct {
		mode             os.FileMode
		uid, gid         uint32
		everybody, group bool
	}{
		"another group":  {0o660, 1000, 100, false, true},
		"the own group":  {0o660, 1000, 1000, false, false},
		"it may read":    {0o640, 1000, 100, false, false},
		"everybody":      {0o602, 1000, 1000, true, false},
		"everybody else": {0o662, 1000, 100, true, true},
	} {
		e, g := writers(info{c.mode, &syscall.Stat_t{Uid: c.uid, Gid: c.gid}})
		if e != c.everybody || g != c.group {
			t.Errorf("%s: everybody %v, group %v", name, e, g)
		}
	}
}

// info is a file that there need not be.
type info struct {
	mode os.FileMode
	st   *syscall.Stat_t
}

func (info) Name() string        { return "f" }
func (info) Size() int64         { return 0 }
func (i info) Mode() os.FileMode { return i.mode }
func (info) ModTime() time.Time  { return time.Time{} }
func (info) IsDir() bool         { return false }
func (i info) Sys() any          { return i.st }
