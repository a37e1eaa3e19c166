package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pressly/goose/v3"
)

// ErrNewerSchema says that the database was written by a newer program (F-60).
var ErrNewerSchema = errors.New("database schema is newer than this program")

// backupName is that of the copy that is kept of a database before its schema is changed.
const backupName = "ostiary-schema-%d.db"

// Backup is such a copy.
type Backup struct {
	Path string
	Made time.Time
}

// Backups lists the copies in a data directory.
func Backups(dir string) (out []Backup, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		var version int64
		if n, _ := fmt.Sscanf(e.Name(), backupName, &version); n != 1 || e.Name() != fmt.Sprintf(backupName, version) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		out = append(out, Backup{filepath.Join(dir, e.Name()), info.ModTime()})
	}
	return out, nil
}

// newestSchema is the number of the last migration that this program has.
func newestSchema() (int64, error) {
	p, err := goose.NewProvider(sqliteDialect.goose, new(sql.DB), sqliteDialect.files(), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, fmt.Errorf("migrations: %w", err)
	}
	sources := p.ListSources()
	return sources[len(sources)-1].Version, nil
}

// schemaVersion is the number of the last migration that the database has; 0: none.
func schemaVersion(ctx context.Context, db *sql.DB) (int64, error) {
	var tables int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version'`).Scan(&tables); err != nil {
		return 0, err
	}
	if tables == 0 {
		return 0, nil
	}
	var version sql.NullInt64
	err := db.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied = 1`).Scan(&version)
	return version.Int64, err
}

// migrate brings the schema up to date. Each migration is one transaction: one that was killed in the middle is run again
// at the next start. Before an existing database is changed a copy of it is kept.
func migrate(ctx context.Context, db *sql.DB, d dialect, files fs.FS, dir string, log *slog.Logger) error {
	p, err := goose.NewProvider(d.goose, db, files, goose.WithDisableGlobalRegistry(true), goose.WithSlog(log))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	have, err := schemaVersion(ctx, db)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	switch {
	case have > newest:
		return fmt.Errorf("%w: it has version %d, this program knows up to %d: use the newer program, or restore a backup from before the upgrade", ErrNewerSchema, have, newest)
	case have == newest:
		return nil
	case have > 0:
		backup := filepath.Join(dir, fmt.Sprintf(backupName, have))
		if err := os.Remove(backup); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("replace backup: %w", err)
		}
		if _, err := db.ExecContext(ctx, `VACUUM INTO $1`, backup); err != nil {
			return fmt.Errorf("back up before migration to %s: %w", backup, err)
		}
		if err := os.Chmod(backup, 0o600); err != nil {
			return fmt.Errorf("back up before migration: %w", err)
		}
		log.Info("database backed up before migration", "file", backup, "from", have, "to", newest)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate schema from %d to %d: %w", have, newest, err)
	}
	return nil
}
