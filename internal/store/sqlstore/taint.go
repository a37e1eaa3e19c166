package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/ostiary/ostiary/internal/policy"
)

const (
	sqlPutTaint = `INSERT INTO taint (principal, session, taint) VALUES ($1, $2, $3)
		ON CONFLICT (principal, session) DO UPDATE SET taint = taint.taint | excluded.taint`
	sqlDropTaint = `DELETE FROM taint WHERE principal = $1 AND session = $2`
	sqlTaint     = `SELECT taint FROM taint WHERE principal = $1 AND session = $2`
	sqlTaints    = `SELECT principal, session, taint FROM taint ORDER BY principal, session`
)

// taintState is what transactions know of the taints of sessions: what the present group has done to them, over what is
// committed, of which what was asked for lately is in memory. Only the writer goroutine touches it.
type taintState struct {
	conn    *conn                    // reads what is committed: never within a commit
	known   map[tainted]policy.Taint // as committed; at most maxKnownTaints
	group   map[tainted]policy.Taint // as this group leaves it
	dropped map[tainted]bool         // forgotten by this group, whatever it has put since
	changes []taintChange            // of this group, to undo them
}

type tainted struct{ principal, session string }

// taintChange is what was there before a change.
type taintChange struct {
	who     tainted
	taint   policy.Taint
	touched bool // else the group had not touched it
	dropped bool
}

const maxKnownTaints = 4096

func newTaintState(c *conn) taintState {
	return taintState{conn: c, known: map[tainted]policy.Taint{}, group: map[tainted]policy.Taint{}, dropped: map[tainted]bool{}}
}

// find reads the taint as this group sees it.
func (s *taintState) find(who tainted) (policy.Taint, error) {
	if t, ok := s.group[who]; ok {
		return t, nil
	}
	if t, ok := s.known[who]; ok {
		return t, nil
	}
	t, err := s.conn.readTaint(who)
	if err != nil {
		return 0, err
	}
	s.know(who, t)
	return t, nil
}

func (s *taintState) know(who tainted, t policy.Taint) {
	if len(s.known) >= maxKnownTaints {
		clear(s.known)
	}
	s.known[who] = t
}

func (s *taintState) set(who tainted, t policy.Taint, drop bool) {
	before, touched := s.group[who]
	s.changes = append(s.changes, taintChange{who, before, touched, s.dropped[who]})
	s.group[who] = t
	if drop {
		s.dropped[who] = true
	}
}

// rewind undoes all but the first n changes.
func (s *taintState) rewind(n int) {
	for i := len(s.changes) - 1; i >= n; i-- {
		c := s.changes[i]
		if c.touched {
			s.group[c.who] = c.taint
		} else {
			delete(s.group, c.who)
		}
		if !c.dropped {
			delete(s.dropped, c.who)
		}
	}
	s.changes = s.changes[:n]
}

// settle makes what the group has done what is committed.
func (s *taintState) settle() {
	for who, t := range s.group {
		s.know(who, t)
	}
}

func (s *taintState) clear() {
	clear(s.group)
	clear(s.dropped)
	clear(s.changes)
	s.changes = s.changes[:0]
}

// write writes what the group has done, within a commit.
func (s *taintState) write(c *conn) error {
	for who := range s.dropped {
		if err := c.dropTaint.exec(who.principal, who.session); err != nil {
			return err
		}
	}
	for who, t := range s.group {
		if t == 0 {
			continue
		}
		if err := c.putTaint.exec(who.principal, who.session, int64(t)); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) Taint(principal, session string) (policy.Taint, error) {
	if t.s == nil {
		return 0, errOver
	}
	return t.s.taints.find(tainted{principal, session})
}

func (t *tx) PutTaint(principal, session string, add policy.Taint) error {
	if t.s == nil {
		return errOver
	}
	if !add.Valid() {
		return fmt.Errorf("put taint %d: it holds a taint that does not exist", add)
	}
	who := tainted{principal, session}
	have, err := t.s.taints.find(who)
	if err != nil {
		return err
	}
	if have|add != have {
		t.s.taints.set(who, have|add, false)
	}
	return nil
}

func (t *tx) DropTaint(principal, session string) error {
	if t.s == nil {
		return errOver
	}
	who := tainted{principal, session}
	have, err := t.s.taints.find(who)
	if err != nil {
		return err
	}
	if have != 0 {
		t.s.taints.set(who, 0, true)
	}
	return nil
}

func (v *view) Taint(principal, session string) (policy.Taint, error) {
	var n int64
	err := v.tx.QueryRowContext(v.ctx, sqlTaint, principal, session).Scan(&n)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, readError(v.ctx, "read taint", err)
	}
	return readTaintValue(n)
}

func (v *view) EachTaint(yield func(principal, session string, t policy.Taint) bool) error {
	return v.each("read taints", sqlTaints, nil, func(rows *sql.Rows) (bool, error) {
		var who tainted
		var n int64
		if err := rows.Scan(&who.principal, &who.session, &n); err != nil {
			return false, err
		}
		t, err := readTaintValue(n)
		return err == nil && yield(who.principal, who.session, t), err
	})
}

// readTaintValue takes what a row holds. A taint that does not exist is that of a newer program, or damage: neither may be
// read as less than it is.
func readTaintValue(n int64) (policy.Taint, error) {
	if t := policy.Taint(n); int64(t) == n && t.Valid() {
		return t, nil
	}
	return 0, fmt.Errorf("%w: a session has the taint %d, which does not exist", ErrDamaged, n)
}

// readTaint reads what is committed.
func (c *conn) readTaint(who tainted) (_ policy.Taint, err error) {
	s := c.getTaint
	s.args[0].Value, s.args[1].Value = who.principal, who.session
	rows, err := s.s.(driver.StmtQueryContext).QueryContext(context.Background(), s.args)
	if err != nil {
		return 0, unavailable("read taint: %w", err)
	}
	defer func() {
		if cerr := rows.Close(); err == nil && cerr != nil {
			err = unavailable("read taint: %w", cerr)
		}
	}()
	var row [1]driver.Value
	switch err := rows.Next(row[:]); {
	case errors.Is(err, io.EOF):
		return 0, nil
	case err != nil:
		return 0, unavailable("read taint: %w", err)
	}
	n, ok := row[0].(int64)
	if !ok {
		return 0, fmt.Errorf("%w: the taint of a session is no number", ErrDamaged)
	}
	return readTaintValue(n)
}
