package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"

	"github.com/ostiary/ostiary/internal/ledger"
)

// conn is the one connection that writes. It is the driver's own, without database/sql around it: a record costs half as
// much, and nothing else ever uses it. Only the writer goroutine may, and Open and Close when that does not run.
type conn struct {
	c driver.Conn

	begin, commit, rollback                                          *stmt
	insertRecord, insertIntent, deleteIntent, insertCheckpoint, meta *stmt
	putTaint, dropTaint, getTaint                                    *stmt
	insertEvidence, decideEvidence, insertSealed, deleteSealed       *stmt
	upsertApproval, deleteApproval, upsertPin, deletePin             *stmt
	upsertQuarantine, deleteQuarantine, insertFact, getPlace         *stmt
	buryRecord, flush, truncate, impatient, patient                  *stmt
}

type stmt struct {
	s    driver.Stmt
	args []driver.NamedValue // used again each time
}

func openConn(ctx context.Context, dataSource string) (_ *conn, err error) {
	connector, err := sqlite.NewConnector(dataSource)
	if err != nil {
		return nil, err
	}
	dc, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{c: dc}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	for _, p := range []struct {
		stmt **stmt
		sql  string
	}{
		{&c.begin, "BEGIN IMMEDIATE"}, {&c.commit, "COMMIT"}, {&c.rollback, "ROLLBACK"},
		{&c.insertRecord, sqlInsertRecord}, {&c.insertIntent, sqlInsertIntent}, {&c.deleteIntent, sqlDeleteIntent},
		{&c.insertCheckpoint, sqlInsertCheckpoint}, {&c.meta, sqlSetMeta},
		{&c.putTaint, sqlPutTaint}, {&c.dropTaint, sqlDropTaint}, {&c.getTaint, sqlTaint},
		{&c.insertEvidence, sqlInsertEvidence}, {&c.decideEvidence, sqlDecideEvidence},
		{&c.insertSealed, sqlInsertSealed}, {&c.deleteSealed, sqlDeleteSealed},
		{&c.upsertApproval, sqlUpsertApproval}, {&c.deleteApproval, sqlDeleteApproval},
		{&c.upsertPin, sqlUpsertPin}, {&c.deletePin, sqlDeletePin},
		{&c.upsertQuarantine, sqlUpsertQuarantine}, {&c.deleteQuarantine, sqlDeleteQuarantine}, {&c.insertFact, sqlInsertFact}, {&c.getPlace, sqlEventPlace},
		{&c.buryRecord, sqlBury}, {&c.impatient, "PRAGMA busy_timeout(0)"}, {&c.patient, "PRAGMA busy_timeout(1000)"},
		{&c.flush, "PRAGMA wal_checkpoint(PASSIVE)"}, {&c.truncate, "PRAGMA wal_checkpoint(TRUNCATE)"},
	} {
		s, err := dc.Prepare(p.sql)
		if err != nil {
			return nil, fmt.Errorf("prepare %q: %w", p.sql, err)
		}
		args := make([]driver.NamedValue, strings.Count(p.sql, "$"))
		for i := range args {
			args[i].Ordinal = i + 1
		}
		*p.stmt = &stmt{s, args}
	}
	return c, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range []*stmt{c.begin, c.commit, c.rollback, c.insertRecord, c.insertIntent, c.deleteIntent, c.insertCheckpoint, c.meta,
		c.putTaint, c.dropTaint, c.getTaint, c.insertEvidence, c.decideEvidence, c.insertSealed, c.deleteSealed,
		c.upsertApproval, c.deleteApproval, c.upsertPin, c.deletePin, c.upsertQuarantine, c.deleteQuarantine, c.insertFact, c.getPlace,
		c.buryRecord, c.impatient, c.patient, c.flush, c.truncate} {
		if s != nil {
			errs = append(errs, s.s.Close())
		}
	}
	return errors.Join(append(errs, c.c.Close())...)
}

func (s *stmt) exec(values ...driver.Value) error {
	for i, v := range values {
		s.args[i].Value = v
	}
	_, err := s.s.(driver.StmtExecContext).ExecContext(context.Background(), s.args)
	return err
}

func (c *conn) record(r *ledger.Record) error {
	return c.insertRecord.exec(r.Seq, r.Time.UnixNano(), string(r.Kind), string(r.CallID), r.Session, r.Principal, r.Body, r.Prev[:], r.Hash[:])
}

func (c *conn) intent(i *intent) error {
	scopes := make([]string, len(i.Publish))
	for n, s := range i.Publish {
		scopes[n] = string(s)
	}
	return c.insertIntent.exec(i.id, string(i.CallID), i.Seq, i.Started.UnixNano(), i.Principal, i.Session, string(i.Tool), i.Provider, strings.Join(scopes, " "))
}

// SQLite's result codes, without their extensions.
const (
	codeBusy    = 5
	codeLocked  = 6
	codeCorrupt = 11
	codeFull    = 13
	codeNotADB  = 26
)

// resultCode is the primary result code of an error from SQLite, and 0 for any other.
func resultCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// passing says that the fault leaves the database as it was and may go away by itself: no space (F-04), or another process
// has it locked. After any other fault, a failed fsync above all, what is on disk is not known (F-05).
func passing(err error) bool {
	switch resultCode(err) {
	case codeFull, codeBusy, codeLocked:
		return true
	}
	return false
}

func damaged(err error) bool {
	switch resultCode(err) {
	case codeCorrupt, codeNotADB:
		return true
	}
	return false
}
