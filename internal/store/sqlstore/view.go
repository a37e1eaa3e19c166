package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

const maxReaders = 4

func openReaders(dir string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(dir, readParameters))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(maxReaders)
	db.SetMaxIdleConns(maxReaders)
	return db, nil
}

// View implements store.Store. It reads even while the store cannot be written.
func (s *Store) View(ctx context.Context, fn func(store.View) error) error {
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return errClosed
	}
	return readTx(ctx, s.readers, func(v *view) error { return fn(v) })
}

// view is one read transaction. Its snapshot is that of its first statement, which readTx runs.
type view struct {
	ctx  context.Context // of the View call: a view does not outlive it
	tx   *sql.Tx
	seq  int64
	hash ledger.Hash
}

var _ store.View = (*view)(nil)

func readTx(ctx context.Context, db *sql.DB, fn func(*view) error) (err error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return readError(ctx, "begin", err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	v := &view{ctx: ctx, tx: tx}
	var hash []byte
	err = tx.QueryRowContext(ctx, sqlHead).Scan(&v.seq, &hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return readError(ctx, "read head", err)
	}
	copy(v.hash[:], hash)
	return fn(v)
}

// readError keeps the end of the context apart from a fault of the store.
func readError(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return unavailable("%s: %w", what, err)
}

func (v *view) Head() (int64, ledger.Hash, error) { return v.seq, v.hash, nil }

func (v *view) Records(after int64, limit int, yield func(ledger.Record) error) error {
	if limit > 0 {
		return v.records(yield, sqlRecordsLimit, after, limit)
	}
	return v.records(yield, sqlRecords, after)
}

func (v *view) RecordsOfCall(id call.ID, yield func(ledger.Record) error) error {
	return v.records(yield, sqlRecordsOfCall, string(id))
}

func (v *view) RecordsOfKind(kind ledger.Kind, yield func(ledger.Record) error) error {
	return v.records(yield, sqlRecordsOfKind, string(kind))
}

func (v *view) records(yield func(ledger.Record) error, query string, args ...any) error {
	rows, err := v.tx.QueryContext(v.ctx, query, args...)
	if err != nil {
		return readError(v.ctx, "read records", err)
	}
	defer rows.Close()
	for rows.Next() {
		var r ledger.Record
		var at int64
		var kind, id string
		var prev, hash []byte
		if err := rows.Scan(&r.Seq, &at, &kind, &id, &r.Session, &r.Principal, &r.Body, &prev, &hash, &r.Pruned); err != nil {
			return readError(v.ctx, "read record", err)
		}
		if len(prev) != len(r.Prev) || len(hash) != len(r.Hash) {
			return fmt.Errorf("%w: record %d has a hash of a wrong length", ErrDamaged, r.Seq)
		}
		r.Time, r.Kind, r.CallID = time.Unix(0, at).UTC(), ledger.Kind(kind), call.ID(id)
		r.Prev, r.Hash = ledger.Hash(prev), ledger.Hash(hash)
		if len(r.Body) == 0 {
			r.Body = nil // a tombstone
		}
		if err := yield(r); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return readError(v.ctx, "read records", err)
	}
	return nil
}

func (v *view) Checkpoints(yield func(seq int64, note []byte) error) error {
	rows, err := v.tx.QueryContext(v.ctx, sqlCheckpoints)
	if err != nil {
		return readError(v.ctx, "read checkpoints", err)
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var msg []byte
		if err := rows.Scan(&seq, &msg); err != nil {
			return readError(v.ctx, "read checkpoint", err)
		}
		if err := yield(seq, msg); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return readError(v.ctx, "read checkpoints", err)
	}
	return nil
}
