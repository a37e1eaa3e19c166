package ostiary_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ostiary/ostiary"
)

// breakLog puts another file under the descriptor through which this process writes the ledger, until mend is called. The
// descriptors through which it is read stay.
func (g *gateway) breakLog(with string, flags int) (mend func()) {
	g.t.Helper()
	f, err := os.OpenFile(with, flags, 0)
	if err != nil {
		g.t.Fatal(err)
	}
	defer f.Close()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		g.t.Fatal(err)
	}
	for _, e := range fds {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || target != filepath.Join(g.dir, "data", "ostiary.db-wal") {
			continue
		}
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			g.t.Fatal(err)
		}
		was, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 100)
		if err != nil {
			g.t.Fatal(err)
		}
		if err := unix.Dup3(int(f.Fd()), fd, unix.O_CLOEXEC); err != nil {
			g.t.Fatal(err)
		}
		mend = func() {
			if err := unix.Dup3(was, fd, unix.O_CLOEXEC); err != nil {
				g.t.Error(err)
			}
			_ = unix.Close(was)
		}
		if g.Write(context.Background()) != nil {
			return mend
		}
		mend() // this one is for reading
	}
	g.t.Fatal("the write-ahead log is not open")
	return nil
}

// F-05: after an fsync that failed nothing is served any more that would have to be recorded, though the disk takes writes
// again: what the kernel has kept is not known. The next start goes on with all that was acknowledged.
func TestF05_FsyncFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		flags int
	}{{"fsync", os.O_RDWR}, {"write", os.O_RDONLY}} { // /dev/null takes writes, and refuses fsync
		t.Run(c.name, func(t *testing.T) {
			ran := filepath.Join(t.TempDir(), "ran")
			g := startGateway(t, withSlow, "-counter", ran)
			must(t, g.ask("read_notes", `{}`), `"code":"approval_pending"`)
			if _, err := g.Decide(t.Context(), ostiary.ApprovalDecision{ID: g.wait().ID, Grant: true}); err != nil {
				t.Fatal(err)
			}
			before := g.remembered()
			acked := g.records()
			mend := g.breakLog("/dev/null", c.flags)
			sent := count(t, ran)
			must(t, g.ask("count", `{}`), `"code":"ledger_unavailable"`, `"delivery":"not_sent"`)
			mend()
			for range 3 {
				must(t, g.ask("count", `{}`), `"code":"ledger_unavailable"`, `"delivery":"not_sent"`)
			}
			if n := count(t, ran); n != sent {
				t.Errorf("%d calls were sent", n-sent)
			}
			stopped := g.Host
			g.stop = func() { _ = stopped.Stop(context.Background()) } // it cannot be recorded
			g.restart()
			if now := g.remembered(); now != before {
				t.Errorf("I5: what was known was\n%s\nand is\n%s", before, now)
			}
			if now := g.records(); !strings.HasPrefix(now, acked) {
				t.Errorf("I3: on record was\n%s\nand is\n%s", acked, now)
			}
			must(t, g.ask("read_notes", `{}`), `"status":"succeeded"`)
			must(t, g.ask("read_notes", `{}`), `"code":"approval_pending"`)
		})
	}
}
