package sqlstore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/storetest"
)

// replaceLog puts another file under the descriptors through which this process writes the write-ahead log of dir.
func replaceLog(t *testing.T, dir, with string, flags int) {
	t.Helper()
	f, err := os.OpenFile(with, flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	replaced := 0
	for _, e := range fds {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || target != filepath.Join(dir, dbFile+"-wal") {
			continue
		}
		fd := 0
		for _, c := range e.Name() {
			fd = 10*fd + int(c-'0')
		}
		if err := unix.Dup3(int(f.Fd()), fd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		replaced++
	}
	if replaced == 0 {
		t.Fatal("the write-ahead log is not open")
	}
}

// F-05: after a failed fsync, or a write error of any kind but "no space", nothing is written any more, even if the disk
// would take it again: what the kernel kept of the lost pages is not known. Another start, which verifies the end of the
// ledger, is what helps.
func TestF05_WriteErrorIsFinal(t *testing.T) {
	for _, c := range []struct {
		name, with string
		flags      int
	}{
		{"fsync", "/dev/null", os.O_RDWR},    // takes writes, refuses fsync
		{"write", "/dev/null", os.O_RDONLY},  // refuses writes
		{"no space", "/dev/full", os.O_RDWR}, // passing, and the descriptor stays what it is
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := openTest(t, Options{Dir: dir})
			if err := s.Update(t.Context(), storetest.OpenCall("acked")); err != nil {
				t.Fatal(err)
			}
			replaceLog(t, dir, c.with, c.flags)
			if err := s.Update(t.Context(), storetest.OpenCall("lost")); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("got %v, want ErrUnavailable", err)
			}
			err := s.Update(t.Context(), storetest.OpenCall("lost"))
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("afterwards: got %v, want ErrUnavailable", err)
			}
			t.Log(err)
			if got, want := passing(err), c.with == "/dev/full"; got != want {
				t.Errorf("passing: %t, want %t", got, want)
			}
			s.Close()
			again := openTest(t, Options{Dir: dir})
			if err := again.Update(t.Context(), storetest.CloseCall("acked")); err != nil {
				t.Errorf("after another start: %v", err)
			}
			closeTest(t, again)
			if _, records := verifyDir(t, dir); len(records) != 2 {
				t.Errorf("got %d records, want 2", len(records))
			}
		})
	}
}

// F-04 on a real file system: 4 MiB that run full, and are made free again.
func TestF04_SmallFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, Options{Dir: dir})
	body := []byte(`{"a":"` + strings.Repeat("x", 10000) + `"}`)
	acked := 0
	var err error
	for ; err == nil; acked++ {
		err = s.Update(t.Context(), func(tx store.Tx) error {
			return tx.Append(ledger.Entry{Kind: ledger.KindCallRefused, Body: body})
		})
	}
	acked--
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v, want ErrUnavailable", err)
	}
	t.Logf("after %d records: %v", acked, err)
	if err := s.View(t.Context(), func(v store.View) error { _, _, err := v.Head(); return err }); err != nil {
		t.Errorf("reading on a full disk: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	waitHealthy(t, s)
	if err := s.Update(t.Context(), storetest.OpenCall("after")); err != nil {
		t.Errorf("after room was made: %v", err)
	}
	closeTest(t, s)
	_, records := verifyDir(t, dir)
	if len(records) != acked+1 || !bytes.Equal(records[0].Body, body) {
		t.Errorf("got %d records, want %d", len(records), acked+1)
	}
}
