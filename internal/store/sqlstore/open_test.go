package sqlstore

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/storetest"
)

// F-07: the second gateway on a data directory learns who has it.
func TestF07_SecondGatewayIsLockedOut(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	_, err := Open(t.Context(), Options{Dir: dir})
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d on host", os.Getpid())) {
		t.Errorf("got %v, want ErrLocked that names the process", err)
	}
	closeTest(t, s)
	closeTest(t, openTest(t, Options{Dir: dir}))
}

func TestFileModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes on Windows")
	}
	dir := filepath.Join(t.TempDir(), "a b", "data#1?%41")
	s := openTest(t, Options{Dir: dir})
	if err := s.Update(t.Context(), storetest.OpenCall("c")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("data directory: %v, %v, want mode 0700", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", e.Name(), info.Mode(), err)
		}
	}
	if want := "ledger.key ledger.pub ostiary.db ostiary.db-shm ostiary.db-wal ostiary.lock"; strings.Join(names, " ") != want {
		t.Errorf("got files %v, want %s", names, want)
	}
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	for round := range 4 {
		s := openTest(t, Options{Dir: dir, CheckpointEvery: 10, CheckSize: int64(1 + round%2*1<<30)})
		for i := range 25 {
			if err := s.Update(t.Context(), storetest.OpenCall(benchID(int64(round*100+i)))); err != nil {
				t.Fatal(err)
			}
		}
		var open []ledger.Intent
		if err := s.Update(t.Context(), func(tx store.Tx) (err error) { open, err = tx.OpenIntents(); return err }); err != nil {
			t.Fatal(err)
		}
		if len(open) != round*20+25 {
			t.Errorf("round %d: %d open intents, want %d", round, len(open), round*20+25)
		}
		for _, in := range open[:5] {
			if err := s.Update(t.Context(), storetest.CloseCall(in.CallID)); err != nil {
				t.Fatal(err)
			}
		}
		closeTest(t, s)
		report, _ := verifyDir(t, dir)
		if report.Last != int64(round+1)*30 || report.Signed != report.Last {
			t.Errorf("round %d: %+v, want all records signed after a close", round, report)
		}
	}
}

// The ledger can be read beside a running gateway, and its lock does not matter.
func TestReadOnlyBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	if err := s.Update(t.Context(), storetest.OpenCall("c")); err != nil {
		t.Fatal(err)
	}
	if report, _ := verifyDir(t, dir); report.Last != 1 {
		t.Errorf("got %+v, want one record", report)
	}
	if _, err := OpenReadOnly(t.Context(), t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}

// What a killed gateway leaves can be read before another start has put it in order.
func TestReadOnlyAfterACrash(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	for i := range 5 {
		if err := s.Update(t.Context(), storetest.OpenCall(benchID(int64(i)))); err != nil {
			t.Fatal(err)
		}
	}
	crashed := filepath.Join(t.TempDir(), "crashed")
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(crashed, dbFile+"-shm")); err != nil {
		t.Fatal(err)
	}
	if report, _ := verifyDir(t, crashed); report.Last != 5 {
		t.Errorf("got %+v, want five records", report)
	}
}

// A record waits for its signature no longer than CheckpointAfter, even when no other follows.
func TestCheckpointAfterAWhile(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir(), CheckpointAfter: time.Millisecond})
	ch := s.Watch(t.Context())
	if err := s.Update(t.Context(), storetest.OpenCall("c")); err != nil {
		t.Fatal(err)
	}
	for signed := false; !signed; {
		select {
		case <-ch:
		case <-time.After(30 * time.Second):
			t.Fatal("no checkpoint")
		}
		if err := s.View(t.Context(), func(v store.View) error {
			return v.Checkpoints(func(int64, []byte) error { signed = true; return nil })
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// fill makes a store with some records, closes it and returns its directory.
func fill(t *testing.T, records int) string {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir, CheckpointEvery: 16})
	for i := range records {
		if err := s.Enqueue(t.Context(), storetest.OpenCall(benchID(int64(i)))); err != nil {
			t.Fatal(err)
		}
	}
	closeTest(t, s)
	return dir
}

// F-06: an emptied, cut or removed database is refused, and nothing is made in its place.
func TestF06_DamagedDatabaseIsRefused(t *testing.T) {
	dir := fill(t, 200)
	path := filepath.Join(dir, dbFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 99, 100, 4095, 4096, 4097, 3 * 4096, len(whole) / 2, len(whole) - 4096, len(whole) - 1} {
		damage := whole[:size]
		if err := os.WriteFile(path, damage, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), Options{Dir: dir})
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), dir) {
			t.Errorf("cut to %d of %d bytes: got %v, want ErrDamaged with the path", size, len(whole), err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, damage) {
			t.Errorf("cut to %d bytes: the file was changed (%v)", size, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Dir: dir}); !errors.Is(err, ErrDamaged) {
		t.Errorf("removed: got %v, want ErrDamaged", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: a new one was made")
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	closeTest(t, openTest(t, Options{Dir: dir}))
}

// F-06: a bit that flipped on any page is found at the start, or changes nothing that is read.
func TestF06_BitFlipOnEachPage(t *testing.T) {
	dir := fill(t, 60)
	path := filepath.Join(dir, dbFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, want := verifyDir(t, dir)
	rnd := rand.New(rand.NewPCG(6, 6))
	refused := 0
	for page := range len(whole) / 4096 {
		for range 3 {
			damage := bytes.Clone(whole)
			at := page*4096 + rnd.IntN(4096)
			damage[at] ^= 1 << rnd.IntN(8)
			if err := os.WriteFile(path, damage, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				refused++
				continue
			}
			closeTest(t, s)
			if _, got := verifyDir(t, dir); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("byte %d: the store opens, but reads otherwise", at)
			}
		}
	}
	if refused == 0 {
		t.Error("no flip was found")
	}
	t.Logf("%d of %d flips refused, the others changed nothing", refused, len(whole)/4096*3)
}

// The key belongs to the database.
func TestKeyIsMissingOrAnother(t *testing.T) {
	dir := fill(t, 3)
	key := filepath.Join(dir, ledger.KeyFile)
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Dir: dir}); !errors.Is(err, ErrDamaged) {
		t.Errorf("missing: got %v, want ErrDamaged", err)
	}
	if _, err := ledger.CreateKey(dir, DefaultOptions().Random); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Dir: dir}); !errors.Is(err, ErrDamaged) {
		t.Errorf("another: got %v, want ErrDamaged", err)
	}
	if err := os.WriteFile(key, []byte("PRIVATE+KEY+nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Dir: dir}); err == nil || strings.Contains(err.Error(), "nonsense") {
		t.Errorf("nonsense: got %v, want an error that does not quote the key", err)
	}
}

// F-60: an older program refuses a newer schema, for writing and for reading.
func TestF60_NewerSchemaIsRefused(t *testing.T) {
	dir := fill(t, 3)
	db, err := sql.Open("sqlite", dsn(dir, writeParameters))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Options{Dir: dir})
	if !errors.Is(err, ErrNewerSchema) || !strings.Contains(err.Error(), "version 9999") {
		t.Errorf("open: got %v, want ErrNewerSchema with the version", err)
	}
	if _, err := OpenReadOnly(t.Context(), dir); !errors.Is(err, ErrNewerSchema) {
		t.Errorf("open for reading: got %v, want ErrNewerSchema", err)
	}
}

// F-60: a migration that ends in the middle leaves the schema as it was and a backup; the next start runs it again.
func TestF60_MigrationResumes(t *testing.T) {
	dir := fill(t, 3)
	now, err := newestSchema()
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(sqliteDialect.files(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, name := range names {
		data, err := fs.ReadFile(sqliteDialect.files(), name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: data}
	}
	next := fmt.Sprintf("%05d_next.sql", now+1)
	files[next] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE next (a TEXT);\nINSERT INTO nowhere VALUES (1);\n")}
	up := func() error {
		db, err := sql.Open("sqlite", dsn(dir, writeParameters))
		if err != nil {
			return err
		}
		defer db.Close()
		if err := migrate(t.Context(), db, sqliteDialect, files, dir, slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
		_, err = db.Exec(`SELECT a FROM next`)
		return err
	}
	if err := up(); err == nil {
		t.Fatal("a bad migration succeeds")
	}
	if _, err := os.Stat(filepath.Join(dir, fmt.Sprintf("ostiary-schema-%d.db", now))); err != nil {
		t.Errorf("no backup: %v", err)
	}
	closeTest(t, openTest(t, Options{Dir: dir})) // still the version that it was
	files[next] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE next (a TEXT);\n")}
	if err := up(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Dir: dir}); !errors.Is(err, ErrNewerSchema) {
		t.Errorf("got %v, want ErrNewerSchema", err)
	}
}

func TestOptionsAreValidated(t *testing.T) {
	for _, o := range []Options{{}, {Dir: t.TempDir(), MaxQueue: -1}} {
		if _, err := Open(t.Context(), o); err == nil {
			t.Errorf("options %+v are taken", o)
		}
	}
}
