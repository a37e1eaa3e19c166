package sqlstore

import (
	"embed"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"
)

// The SQL here is what SQLite and PostgreSQL both take; what differs is in dialect.
const (
	sqlInsertRecord = `INSERT INTO ledger (seq, time, kind, call, session, principal, body, prev, hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	sqlInsertIntent = `INSERT INTO open_intent (id, call, seq, started, principal, session, tool, provider, publish)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	sqlDeleteIntent     = `DELETE FROM open_intent WHERE id = $1`
	sqlInsertCheckpoint = `INSERT INTO checkpoint (seq, note, edge) VALUES ($1, $2, $3)`
	sqlSetMeta          = `INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	sqlGetMeta          = `SELECT value FROM meta WHERE name = $1`

	recordColumns    = `seq, time, kind, call, session, principal, body, prev, hash, pruned`
	sqlRecords       = `SELECT ` + recordColumns + ` FROM ledger WHERE seq > $1 ORDER BY seq`
	sqlRecordRange   = `SELECT ` + recordColumns + ` FROM ledger WHERE seq >= $1 AND seq <= $2 ORDER BY seq`
	sqlRecordsLimit  = sqlRecords + ` LIMIT $2`
	sqlRecordsOfCall = `SELECT ` + recordColumns + ` FROM ledger WHERE call = $1 AND call <> '' ORDER BY seq`
	sqlRecordsOfKind = `SELECT ` + recordColumns + ` FROM ledger WHERE kind = $1 AND call = '' ORDER BY seq`
	sqlHead          = `SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1`
	sqlHashAt        = `SELECT hash FROM ledger WHERE seq = $1`
	sqlCheckpoints   = `SELECT seq, note FROM checkpoint ORDER BY seq`
	sqlLastPoint     = `SELECT seq, note, edge FROM checkpoint ORDER BY seq DESC LIMIT 1`
	sqlOpenIntents   = `SELECT id, call, seq, started, principal, session, tool, provider, publish FROM open_intent ORDER BY id`

	commitColumns   = `scope, seq, id, provider, source, kind, time, occurred, summary, data, call`
	sqlInsertFact   = `INSERT INTO world (` + commitColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	sqlScopeHead    = `SELECT coalesce(max(seq), 0) FROM world WHERE scope = $1`
	sqlEventPlace   = `SELECT scope, seq FROM world WHERE id = $1 AND call = ''`
	sqlCommits      = `SELECT ` + commitColumns + ` FROM world WHERE scope = $1 AND seq > $2 ORDER BY seq`
	sqlCommitsLimit = sqlCommits + ` LIMIT $3`
	// From scope to scope, because to group all commits would read all of them.
	sqlScopeHeads = `WITH RECURSIVE s (scope) AS (SELECT min(scope) FROM world WHERE scope > $1
			UNION ALL SELECT (SELECT min(scope) FROM world WHERE scope > s.scope) FROM s WHERE s.scope IS NOT NULL)
		SELECT scope, (SELECT max(seq) FROM world WHERE world.scope = s.scope) FROM s WHERE scope IS NOT NULL LIMIT $2`
)

const metaVerifier = "ledger_verifier" // whose public half of the key signs this ledger's checkpoints

//go:embed migrations
var migrationFiles embed.FS

// dialect is what differs between databases.
type dialect struct {
	goose      goose.Dialect
	migrations string // folder of the migrations
}

var sqliteDialect = dialect{goose: goose.DialectSQLite3, migrations: "migrations/sqlite"}

func (d dialect) files() fs.FS {
	sub, err := fs.Sub(migrationFiles, d.migrations)
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sub
}

const (
	dbFile = "ostiary.db"

	// Every commit is on disk when it returns (FULL). What is deleted is overwritten (secure_delete), for some of it is
	// deleted to be gone (R8.6). The writer moves the log into the database itself, between commits
	// and with an eye on errors, so SQLite's own checkpoints, which swallow them, are off.
	writeParameters = "mode=rw&_dqs=0&_error_rc=1" +
		"&_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_pragma=secure_delete(1)" +
		"&_pragma=wal_autocheckpoint(0)&_pragma=journal_size_limit(67108864)&_pragma=cache_size(-8000)"
	readParameters = "mode=ro&_dqs=0&_error_rc=1&_pragma=busy_timeout(5000)&_pragma=query_only(1)"
)

// dsn names the database of a data directory. SQLite reads the path as a URI.
func dsn(dir, parameters string) string {
	path := filepath.ToSlash(filepath.Join(dir, dbFile))
	if !strings.HasPrefix(path, "/") && filepath.VolumeName(dir) != "" {
		path = "/" + path
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + parameters
}
