package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

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
	urgent   chan struct{} // capacity 1: the writer shall not wait for company
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
	soiled          bool // something was deleted that an earlier page of the write-ahead log may still have
	scrubNow        bool // it is time to try to empty the log
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
	lookups, err := openReaders(o.Dir)
	if err != nil {
		return nil, err
	}
	undo = append(undo, lookups.Close)
	lookups.SetMaxOpenConns(1)
	s := &Store{
		o: o, whole: whole, lock: lock, conn: c, readers: readers, health: newHealth(o.StallAfter, o.Logger),
		queue: make(chan *op, o.MaxQueue), urgent: make(chan struct{}, 1), closing: make(chan struct{}), finished: make(chan struct{}),
		state:        state{intents: map[call.ID]*intent{}, taints: newTaintState(c), held: newHeldState(lookups), world: newWorldState(lookups, c)},
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
