package sqlstore

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

const sqlBury = `UPDATE ledger SET session = '', principal = '', body = '', pruned = $2 WHERE seq = $1`

// Bury implements ledger.Tx. What is buried is read from what is committed, which no other than the writer changes.
func (t *tx) Bury(seqs []int64, b ledger.Burial) error {
	if t.s == nil {
		return errOver
	}
	if len(seqs) == 0 || !slices.IsSorted(seqs) {
		return fmt.Errorf("bury %d records: they do not ascend", len(seqs))
	}
	records := make([]ledger.Record, 0, len(seqs))
	wanted := seqs
	err := readTx(context.Background(), t.s.held.committed, func(v *view) error {
		return v.records(func(r ledger.Record) error {
			if len(wanted) > 0 && r.Seq == wanted[0] {
				records, wanted = append(records, r), wanted[1:]
			}
			return nil
		}, sqlRecordRange, seqs[0], seqs[len(seqs)-1])
	})
	if err != nil {
		return err
	}
	if len(wanted) > 0 {
		return fmt.Errorf("bury record %d: %w", wanted[0], store.ErrNotFound)
	}
	for i := range records {
		seq := records[i].Seq
		if records[i].Pruned != 0 || slices.ContainsFunc(t.s.buried, func(r ledger.Record) bool { return r.Seq == seq }) {
			return fmt.Errorf("bury record %d: %w: it is pruned already", seq, store.ErrConflict)
		}
	}
	tombs, e, err := b.Of(records, t.s.chain.Seq+1)
	if err != nil {
		return err
	}
	if err := t.Append(e); err != nil {
		return err
	}
	t.s.buried = append(t.s.buried, tombs...)
	return nil
}

// bury writes what the group has buried, within a commit.
func (c *conn) bury(tombs []ledger.Record) error {
	for i := range tombs {
		if err := c.buryRecord.exec(tombs[i].Seq, tombs[i].Pruned); err != nil {
			return err
		}
	}
	return nil
}

// scrub empties the write-ahead log, so that what has gone from the database, where it was overwritten (secure_delete), is in
// no earlier page of the log either. It waits for nobody: while somebody still reads an older state, it is tried again with
// the next checkpoints.
func (s *Store) scrub() {
	now := s.scrubNow
	s.scrubNow = false
	if !s.soiled || !now || s.fatal {
		return
	}
	s.health.started()
	done, err := s.conn.emptyLog()
	if err == nil || passing(err) {
		s.health.ended(nil)
		s.soiled = !done
		if done {
			s.unflushed = 0
		}
		return
	}
	s.fatal = true
	s.health.ended(unavailable("empty the write-ahead log: %w", err))
	s.o.Logger.Error("write-ahead log cannot be moved into the database", "error", err)
}

// emptyLog moves all of the log into the database and cuts it to nothing. false: somebody reads from it.
func (c *conn) emptyLog() (done bool, err error) {
	if err := c.impatient.exec(); err != nil {
		return false, err
	}
	defer func() {
		if perr := c.patient.exec(); err == nil {
			err = perr
		}
	}()
	rows, err := c.truncate.s.(driver.StmtQueryContext).QueryContext(context.Background(), nil)
	if err != nil {
		return false, err
	}
	row := make([]driver.Value, len(rows.Columns()))
	err = rows.Next(row)
	if cerr := rows.Close(); err == nil {
		err = cerr
	}
	busy, ok := row[0].(int64) // then the number of pages in the log, and of those that were moved
	return err == nil && ok && busy == 0, err
}
