package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

// Reader reads a store without taking its data directory, beside a running gateway or without one.
type Reader struct {
	readers  *sql.DB
	verifier string
}

// OpenReadOnly opens the store in dir for reading. It refuses a schema that it does not know, and checks nothing else: to
// look at a damaged store is what it is for.
func OpenReadOnly(ctx context.Context, dir string) (*Reader, error) {
	r, err := openReadOnly(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("open store %s for reading: %w", dir, err)
	}
	return r, nil
}

func openReadOnly(ctx context.Context, dir string) (_ *Reader, err error) {
	if _, err := os.Stat(filepath.Join(dir, dbFile)); err != nil {
		return nil, err
	}
	verifier, err := ledger.ReadVerifier(dir)
	if err != nil {
		return nil, err
	}
	db, err := openReaders(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			db.Close()
		}
	}()
	have, err := schemaVersion(ctx, db)
	if err != nil {
		return nil, err
	}
	newest, err := newestSchema()
	if err != nil {
		return nil, err
	}
	switch {
	case have > newest:
		return nil, fmt.Errorf("%w: it has version %d, this program knows up to %d", ErrNewerSchema, have, newest)
	case have < newest:
		return nil, fmt.Errorf("database schema has version %d, this program needs %d: start the gateway once to migrate it", have, newest)
	}
	return &Reader{db, verifier}, nil
}

// Verifier is the public key of the ledger, as the data directory has it. One that is kept elsewhere is worth more.
func (r *Reader) Verifier() string { return r.verifier }

// View runs fn over a consistent state, as store.Store does.
func (r *Reader) View(ctx context.Context, fn func(store.View) error) error {
	return readTx(ctx, r.readers, func(v *view) error { return fn(v) })
}

// Close lets go of the store.
func (r *Reader) Close() error { return r.readers.Close() }
