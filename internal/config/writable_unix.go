//go:build unix

package config

import (
	"os"
	"path/filepath"
	"syscall"
)

// writable says whether everybody on this machine, or everybody of a group, could put another configuration in the place of
// the one that is open: by writing it, or by replacing it in its directory. A sticky directory lets nobody replace
// what is not theirs.
func writable(f *os.File, path string) (everybody, group bool, err error) {
	file, err := f.Stat()
	if err != nil {
		return false, false, err
	}
	if !file.Mode().IsRegular() { // a pipe has no place
		return false, false, nil
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return false, false, err
	}
	everybody, group = writers(file)
	if dir.Mode()&os.ModeSticky == 0 {
		e, g := writers(dir)
		everybody, group = everybody || e, group || g
	}
	return everybody, group, nil
}

// writers says who else than its owner may write something. A group of the number of the owner is the owner's alone, as many
// systems make one for each user.
func writers(fi os.FileInfo) (everybody, group bool) {
	mode := fi.Mode().Perm()
	st, ok := fi.Sys().(*syscall.Stat_t)
	own := ok && st.Uid == st.Gid
	return mode&0o002 != 0, mode&0o020 != 0 && !own
}
