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

	"github.com/ostiary/ostiary/internal/ledger"
)

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
// that are read as a whole are checked, and the ledger's end is verified anyway; `ostiary ledger verify` reads the rest of it.
func check(ctx context.Context, db *sql.DB, whole bool) error {
	if whole {
		return checkWith(ctx, db, `PRAGMA integrity_check(1)`)
	}
	rows, err := db.QueryContext(ctx, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('ledger', 'checkpoint', 'world')`)
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
