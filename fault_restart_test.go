package ostiary_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary/ostiary"
)

// eventful has a gateway go through all that must outlive it: a tool in quarantine, a grant that waits for its call, one
// that was spent, one that was refused, and a result that is held.
func eventful(t *testing.T) *gateway {
	t.Helper()
	g := startGateway(t, `
[provider.ex.policy.tools.read_notes]
effect = "READ_ONLY"
[provider.ex.firewall.tools.write_note]
codes = { provider_token = "accept", known_secret = "accept" }
[export.default]
tools  = ["aur.mcp.ex.echo", "aur.mcp.ex.count", "aur.mcp.ex.drift", "aur.mcp.ex.write_note", "aur.mcp.ex.read_notes", "aur.mcp.ex.fail"]
naming = "raw"
[approval]
hold_seconds = 0
[rule.notes]
effect = "ask"
tools = ["aur.mcp.ex.write_note", "aur.mcp.ex.fail"]
`)
	decide := func(arguments string, grant bool) {
		must(t, g.ask("write_note", arguments), `"code":"approval_pending"`)
		if _, err := g.Decide(t.Context(), ostiary.ApprovalDecision{ID: g.wait().ID, Grant: grant}); err != nil {
			t.Fatal(err)
		}
	}
	const spent = `{"text":"the key is ` + aSecret + `"}`
	decide(spent, true)
	must(t, g.ask("write_note", spent), `"status":"succeeded"`)
	must(t, g.ask("read_notes", `{}`), `"code":"withheld"`)
	decide(`{"text":"no"}`, false)
	decide(`{"text":"waits for its call"}`, true)
	g.drift("count", "description")
	must(t, g.ask("count", `{}`), `"code":"schema_drift"`)
	return g
}

// stillSo checks that a gateway after [eventful] behaves as one that remembers.
func (g *gateway) stillSo() {
	g.t.Helper()
	must(g.t, g.ask("count", `{}`), `"code":"schema_drift"`)
	must(g.t, g.ask("write_note", `{"text":"the key is `+aSecret+`"}`), `"code":"approval_pending"`) // that one is spent
	must(g.t, g.ask("write_note", `{"text":"no"}`), `"code":"approval_declined"`)
	must(g.t, g.ask("write_note", `{"text":"waits for its call"}`), `"status":"succeeded"`)
	must(g.t, g.ask("echo", `{}`), `"status":"succeeded"`)
}

// tryStart starts another gateway on the same configuration and a data directory, and ends it again.
func (g *gateway) tryStart(data string) error {
	g.t.Helper()
	o := g.options()
	o.DataDir = data
	h, err := ostiary.New(o)
	if err != nil {
		return err
	}
	if err := h.Start(context.Background()); err != nil {
		return errors.Join(err, h.Stop(context.Background()))
	}
	return h.Stop(context.Background())
}

// copyOf copies a data directory that nobody holds.
func copyOf(t *testing.T, data string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(to, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	return to
}

// F-06, I5: a data directory that is damaged is refused, with words that say which file, and is not touched: above all no
// empty one is put in its place, which would let everything in quarantine go.
func TestF06_Damaged(t *testing.T) {
	t.Parallel()
	g := eventful(t)
	before := g.remembered()
	g.stop()
	data := filepath.Join(g.dir, "data")
	db := func(change func([]byte) []byte) func(string) error {
		return func(dir string) error {
			b, err := os.ReadFile(filepath.Join(dir, "ostiary.db"))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "ostiary.db"), change(b), 0o600)
		}
	}
	for what, damage := range map[string]func(dir string) error{
		"empty":         db(func([]byte) []byte { return nil }),
		"missing":       func(dir string) error { return os.Remove(filepath.Join(dir, "ostiary.db")) },
		"half":          db(func(b []byte) []byte { return b[:len(b)/2] }),
		"a page less":   db(func(b []byte) []byte { return b[:len(b)-4096] }),
		"within a page": db(func(b []byte) []byte { return b[:len(b)-100] }),
		"no database":   db(func(b []byte) []byte { return append([]byte("not a database\n\n"), b[16:]...) }),
		"a page": db(func(b []byte) []byte {
			return append(append(bytes.Clone(b[:8192]), bytes.Repeat([]byte{0xff}, 4096)...), b[12288:]...)
		}),
		"no key":     func(dir string) error { return os.Remove(filepath.Join(dir, "ledger.key")) },
		"half a key": func(dir string) error { return os.Truncate(filepath.Join(dir, "ledger.key"), 20) },
		"another key": func(dir string) error {
			b, err := os.ReadFile(filepath.Join(dir, "ledger.pub"))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "ledger.pub"), bytes.ToUpper(b), 0o600)
		},
	} {
		dir := copyOf(t, data)
		if err := damage(dir); err != nil {
			t.Fatal(err)
		}
		was, _ := os.ReadFile(filepath.Join(dir, "ostiary.db")) // it may be missing
		err := g.tryStart(dir)
		if err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", what, err)
		}
		if is, err := os.ReadFile(filepath.Join(dir, "ostiary.db")); !bytes.Equal(is, was) || was == nil != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the database was touched: %v", what, err)
		}
	}
	g.start()
	if now := g.remembered(); now != before {
		t.Errorf("I5: what was known was\n%s\nand is\n%s", before, now)
	}
	g.stillSo()
}

// F-07: a second gateway on the same directory is told who has it, starts no provider and takes nothing from the first.
func TestF07_SecondGateway(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	g := startGateway(t, exported, "-counter", ran)
	before := g.remembered()
	err := g.tryStart(filepath.Join(g.dir, "data"))
	if !errors.Is(err, ostiary.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("a second gateway: %v", err)
	}
	must(t, g.ask("count", `{}`), `"status":"succeeded"`)
	if now := g.remembered(); now != before {
		t.Errorf("what was known was\n%s\nand is\n%s", before, now)
	}
	if n := strings.Count(g.records(), "ledger.opened"); n != 1 {
		t.Errorf("the ledger was opened %d times", n)
	}
}

// F-51, I7: whatever somebody changes in a ledger at rest who has no key: the verification names the first record that is
// not as it was, and a gateway does not go on from there. An older copy of the whole directory is a good ledger; a
// checkpoint that was kept elsewhere shows that something is missing.
func TestF51_TamperedDirectory(t *testing.T) {
	t.Parallel()
	g := eventful(t)
	g.stop()
	data := filepath.Join(g.dir, "data")
	old := copyOf(t, data)
	for what, c := range map[string]struct {
		sql   string
		first int64 // that may be named
	}{
		"edit":      {`UPDATE ledger SET body = CAST(replace(CAST(body AS TEXT), 'schema_drift', 'schema_drafts') AS BLOB) WHERE CAST(body AS TEXT) LIKE '%schema_drift%'`, 1},
		"principal": {`UPDATE ledger SET principal = 'somebody' WHERE seq = 5`, 5},
		"time":      {`UPDATE ledger SET time = time + 1 WHERE seq = 7`, 7},
		"delete":    {`DELETE FROM ledger WHERE seq = 6`, 6},
		"reorder":   {`UPDATE ledger SET seq = -4 WHERE seq = 4; UPDATE ledger SET seq = 4 WHERE seq = 5; UPDATE ledger SET seq = 5 WHERE seq = -4`, 4},
		"truncate":  {`DELETE FROM ledger WHERE seq > 8`, 9},
		"insert":    {`INSERT INTO ledger (seq, time, kind, call, session, principal, body, prev, hash) SELECT (SELECT max(seq) + 1 FROM ledger), time, kind, call, session, principal, body, prev, hash FROM ledger WHERE seq = 5`, 1},
		"signature": {`UPDATE checkpoint SET note = CAST(replace(CAST(note AS TEXT), char(10), char(10) || 'x') AS BLOB) WHERE seq = (SELECT max(seq) FROM checkpoint)`, 0},
	} {
		dir := copyOf(t, data)
		db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(dir, "ostiary.db")))
		if err != nil {
			t.Fatal(err)
		}
		r, err := db.ExecContext(t.Context(), c.sql)
		if err != nil {
			t.Fatal(what, err)
		}
		if n, _ := r.RowsAffected(); n == 0 {
			t.Fatalf("%s: nothing was changed", what)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		l, err := ostiary.OpenLedger(t.Context(), dir)
		if err != nil {
			t.Fatal(what, err)
		}
		report, err := l.Verify(t.Context())
		if err != nil || report.OK || report.BadSeq < c.first || report.Fault == "" {
			t.Errorf("%s: %+v, %v", what, report, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := g.tryStart(dir); err == nil {
			t.Errorf("%s: a gateway goes on from it", what)
		}
	}
	g.start()
	g.stillSo()
	l, err := ostiary.OpenLedger(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	known, err := l.Checkpoint(t.Context())
	if err := errors.Join(err, l.Close()); err != nil || len(known) == 0 {
		t.Fatal(err)
	}
	g.stop()
	if l, err = ostiary.OpenLedger(t.Context(), data); err != nil {
		t.Fatal(err)
	}
	newest, err := l.Checkpoint(t.Context())
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	if l, err = ostiary.OpenLedger(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if r, err := l.Verify(t.Context()); err != nil || !r.OK {
		t.Errorf("an older copy by itself: %+v, %v", r, err)
	}
	if r, err := l.Verify(t.Context(), newest); err != nil || r.OK {
		t.Errorf("an older copy against a checkpoint that was kept elsewhere: %+v, %v", r, err)
	}
}

// F-09: the clock jumps ahead and back, by an hour and by years. Calls go on, the ledger keeps its order, and what has
// expired once stays so.
func TestF09_ClockJumps(t *testing.T) {
	t.Parallel()
	g := startGateway(t, needsApproval(0))
	g.stop()
	var off atomic.Int64
	o := g.options()
	o.Now = func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
	g.startWith(o)
	stop := g.stop
	g.stop = func() {
		off.Store(0)
		stop()
	}
	grant := func(arguments, text string) {
		must(t, g.ask("write_note", arguments), `"code":"approval_pending"`)
		for _, r := range waitingNow(g) { // others may wait, too
			if strings.Contains(r.Arguments, text) {
				if _, err := g.Decide(t.Context(), ostiary.ApprovalDecision{ID: r.ID, Grant: true}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	const years = 10 * 365 * 24 * time.Hour
	for i, jump := range []time.Duration{time.Hour, -time.Hour, years, -years, 0} {
		off.Store(0)
		text := fmt.Sprintf("grant %d", i)
		once := `{"text":"` + text + `"}`
		grant(once, text)
		off.Store(int64(jump))
		must(t, g.ask("count", `{}`), `"status":"succeeded"`)
		if err := g.SweepNow(t.Context()); err != nil {
			t.Error(err)
		}
		answer := g.ask("write_note", once)
		if over := jump >= time.Hour; over == strings.Contains(answer, `"status":"succeeded"`) && jump >= 0 { // a clock that goes back may end a grant, too
			t.Errorf("after %v: %s", jump, answer)
		}
		// Spent, or over: whatever the clock says now, it is not good for another call.
		off.Store(0)
		must(t, g.ask("write_note", once), `!"status":"succeeded"`)
	}
}

// F-53: of many who decide at once one decides; of many calls that want one grant one goes out.
func TestF53_ApprovalRaces(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	g := startGateway(t, needsApproval(0), "-counter", ran)
	for round := range 4 {
		arguments := fmt.Sprintf(`{"text":"round %d"}`, round)
		must(t, g.ask("write_note", arguments), `"code":"approval_pending"`)
		request := g.wait()
		before := count(t, ran)
		var granted, declined atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				_, err := g.Decide(t.Context(), ostiary.ApprovalDecision{ID: request.ID, Grant: i%2 == round%2})
				switch {
				case err == nil && i%2 == round%2:
					granted.Add(1)
				case err == nil:
					declined.Add(1)
				case ostiary.FaultOf(err) != ostiary.FaultDecided:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if granted.Load()+declined.Load() != 1 {
			t.Errorf("granted %d times, declined %d times", granted.Load(), declined.Load())
		}
		var through atomic.Int64
		for range 8 {
			wg.Go(func() {
				if strings.Contains(g.ask("write_note", arguments), `"status":"succeeded"`) {
					through.Add(1)
				}
			})
		}
		wg.Wait()
		if n := count(t, ran) - before; through.Load() != granted.Load() || int64(n) != granted.Load() {
			t.Errorf("granted %d times: %d calls went through, and %d ran", granted.Load(), through.Load(), n)
		}
		for _, r := range waitingNow(g) { // of those that came too late
			if _, err := g.Decide(t.Context(), ostiary.ApprovalDecision{ID: r.ID}); err != nil {
				t.Error(err)
			}
		}
	}
}

func waitingNow(g *gateway) []ostiary.ApprovalInfo {
	g.t.Helper()
	all, err := g.Approvals(g.t.Context(), false)
	if err != nil {
		g.t.Fatal(err)
	}
	return all
}
