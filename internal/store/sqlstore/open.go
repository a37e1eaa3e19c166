package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

// ErrDamaged says that the data directory is not what a store leaves behind: pages or files are missing, changed or cut
// off. Nothing in it was changed (F-06).
var ErrDamaged = errors.New("store is damaged")

var errClosed = unavailable("it is closed")

// metaProbe is the row that a try to write rewrites.
const metaProbe = "probe"

// Store is a store.Store in a SQLite file. All methods may be called concurrently.
type Store struct {
	o        Options
	lock     *dirLock
	readers  *sql.DB
	health   *health
	watchers watchers
	verifier string
	whole    bool // the database was small enough to be checked as a whole

	mu     sync.RWMutex // guards closed, and the sending on queue
	closed bool

	queue    chan *op
	closing  chan struct{} // closed when Close begins
	finished chan struct{} // closed when the writer goroutine has ended

	closeOnce sync.Once
	closeErr  error

	// The rest belongs to the writer goroutine, and to Open and Close when that does not run.
	conn            *conn
	state           state
	key             ledger.Key
	origin          string
	signed          signedPoint
	ran             []*op // scratch
	kept            []*op // enqueued, and not committed because of a passing fault
	lost            int   // enqueued, and given up
	fatal           bool
	unflushed       int // pages in the write-ahead log, roughly
	companyTimer    *time.Timer
	checkpointTimer *time.Timer
	checkpointArmed bool
}

var _ store.Store = (*Store)(nil)

// Open takes the data directory, brings its schema up to date, verifies the end of the ledger, and starts the writer. It
// never makes a new database where one was: a missing, empty or damaged file beside a ledger's key is ErrDamaged.
func Open(ctx context.Context, o Options) (*Store, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s, err := open(ctx, o)
	if damaged(err) {
		err = fmt.Errorf("%w: %s: %w: restore a backup, or save what can be read with `ostiary ledger export`", ErrDamaged, filepath.Join(o.Dir, dbFile), err)
	}
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Dir, err)
	}
	return s, nil
}

func open(ctx context.Context, o Options) (_ *Store, err error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	var undo []func() error
	defer func() {
		if err == nil {
			return
		}
		for i := len(undo) - 1; i >= 0; i-- {
			_ = undo[i]() // the first error is the one to tell
		}
	}()
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	undo = append(undo, lock.release)
	if err := prepareFile(o.Dir); err != nil {
		return nil, err
	}
	whole, err := prepareSchema(ctx, o)
	if err != nil {
		return nil, err
	}
	c, err := openConn(ctx, dsn(o.Dir, writeParameters))
	if err != nil {
		return nil, err
	}
	undo = append(undo, c.close)
	readers, err := openReaders(o.Dir)
	if err != nil {
		return nil, err
	}
	undo = append(undo, readers.Close)
	s := &Store{
		o: o, whole: whole, lock: lock, conn: c, readers: readers, health: newHealth(o.StallAfter, o.Logger),
		queue: make(chan *op, o.MaxQueue), closing: make(chan struct{}), finished: make(chan struct{}),
		state:        state{intents: map[call.ID]*intent{}},
		companyTimer: stoppedTimer(), checkpointTimer: stoppedTimer(),
	}
	if err := s.loadKey(ctx); err != nil {
		return nil, err
	}
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	s.armCheckpoint() // for what a crash has left without one
	go s.write()
	return s, nil
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// prepareFile makes an empty database file with its mode if this is a new data directory. SQLite gives its companions the
// mode of the database file.
func prepareFile(dir string) error {
	path := filepath.Join(dir, dbFile)
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && info.Size() > 0 {
		return checkHeader(path, info.Size())
	}
	if _, kerr := os.Stat(filepath.Join(dir, ledger.KeyFile)); kerr == nil {
		what := "empty"
		if err != nil {
			what = "missing"
		}
		return fmt.Errorf("%w: %s is %s, but %s shows that there was a ledger: restore a backup, or move the key away to begin anew", ErrDamaged, path, what, ledger.KeyFile)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// checkHeader finds what SQLite takes for an empty database or reads past: a file that is shorter than a header, or that
// ends within a page. The latter may be so while there is a write-ahead log that has the page.
func checkHeader(path string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var head [100]byte
	if _, err := io.ReadFull(f, head[:]); err != nil || !bytes.HasPrefix(head[:], []byte("SQLite format 3\x00")) {
		return fmt.Errorf("%w: %s is not a database, or cut off: restore a backup", ErrDamaged, path)
	}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 1 << 16
	}
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		return nil
	}
	if page == 0 || size%page != 0 {
		return fmt.Errorf("%w: %s ends within a page: restore a backup, or save what can be read with `ostiary ledger export`", ErrDamaged, path)
	}
	return nil
}

// prepareSchema checks the database and migrates it, with a connection of its own. It tells whether all of it was checked.
func prepareSchema(ctx context.Context, o Options) (whole bool, err error) {
	info, err := os.Stat(filepath.Join(o.Dir, dbFile))
	if err != nil {
		return false, err
	}
	db, err := sql.Open("sqlite", dsn(o.Dir, writeParameters))
	if err != nil {
		return false, err
	}
	defer func() {
		if cerr := db.Close(); err == nil {
			err = cerr
		}
	}()
	db.SetMaxOpenConns(1)
	whole = info.Size() <= o.CheckSize
	if info.Size() > 0 {
		if err := check(ctx, db, whole); err != nil {
			return false, err
		}
	}
	return whole, migrate(ctx, db, sqliteDialect, sqliteDialect.files(), o.Dir, o.Logger)
}

// check asks SQLite whether the database is sound. For a large one that takes too long at a start: then only the tables
// that decisions are made on are checked, and the ledger's end is verified anyway; `ostiary ledger verify` reads the rest.
func check(ctx context.Context, db *sql.DB, whole bool) error {
	if whole {
		return checkWith(ctx, db, `PRAGMA integrity_check(1)`)
	}
	rows, err := db.QueryContext(ctx, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('ledger', 'checkpoint')`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		tables = append(tables, name)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, name := range tables {
		if err := checkWith(ctx, db, `PRAGMA integrity_check("`+name+`")`); err != nil {
			return err
		}
	}
	return nil
}

func checkWith(ctx context.Context, db *sql.DB, pragma string) error {
	var result string
	if err := db.QueryRowContext(ctx, pragma).Scan(&result); err != nil {
		return err
	}
	if result != "ok" {
		return fmt.Errorf("%w: %s", ErrDamaged, result)
	}
	return nil
}

// Verifier is the public key of the ledger, as ledger.Verify and ledger.Export take it.
func (s *Store) Verifier() string { return s.verifier }

// Healthy implements store.Store.
func (s *Store) Healthy() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	return s.health.now.Load().err
}

// closePatience is how long Close waits for a disk that does not answer.
const closePatience = 10 * time.Second

// Close implements store.Store. If the disk does not answer it gives up waiting; the data directory stays locked then.
func (s *Store) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Store) close() error {
	close(s.closing)
	s.mu.Lock()
	s.closed = true
	close(s.queue)
	s.mu.Unlock()
	patience := time.NewTimer(closePatience)
	defer patience.Stop()
	select {
	case <-s.finished:
	case <-patience.C:
		return fmt.Errorf("close store %s: %w", s.o.Dir, unavailable("the disk does not answer"))
	}
	var errs []error
	if s.lost > 0 {
		errs = append(errs, unavailable("%d enqueued transactions were not written", s.lost))
	}
	errs = append(errs, s.readers.Close())
	if !s.fatal {
		if err := s.conn.truncate.exec(); err != nil && !passing(err) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, s.conn.close(), s.lock.release())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close store %s: %w", s.o.Dir, err)
	}
	return nil
}
