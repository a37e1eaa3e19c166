package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/world"
)

// worldState is what transactions know of the world: what the present group has put into it, over what is committed, of
// which the heads that were asked for lately are in memory. Only the writer goroutine touches it.
type worldState struct {
	committed *sql.DB              // reads what is committed, as heldState does
	conn      *conn                // the same for where events are, which come by the thousand: never within a commit
	known     map[call.Scope]int64 // heads as committed; at most maxKnownHeads
	group     map[call.Scope]int64 // heads as this group leaves them
	facts     []placed             // of this group, in order
	events    map[string]int       // those of them that are events: where in facts
}

// placed is a fact and where it was put.
type placed struct {
	fact world.Fact
	at   world.Place
}

const maxKnownHeads = 4096

func newWorldState(committed *sql.DB, c *conn) worldState {
	return worldState{committed: committed, conn: c, known: map[call.Scope]int64{}, group: map[call.Scope]int64{}, events: map[string]int{}}
}

// head reads the head of a scope as this group sees it.
func (s *worldState) head(scope call.Scope) (int64, error) {
	if seq, ok := s.group[scope]; ok {
		return seq, nil
	}
	if seq, ok := s.known[scope]; ok {
		return seq, nil
	}
	var seq int64
	if err := s.committed.QueryRow(sqlScopeHead, string(scope)).Scan(&seq); err != nil {
		return 0, unavailable("read head of scope %s: %w", scope, err)
	}
	s.know(scope, seq)
	return seq, nil
}

func (s *worldState) know(scope call.Scope, seq int64) {
	if len(s.known) >= maxKnownHeads {
		clear(s.known)
	}
	s.known[scope] = seq
}

// find says where an event was put; nil if it was not.
func (s *worldState) find(id string) (world.Place, error) {
	if i, ok := s.events[id]; ok {
		return s.facts[i].at, nil
	}
	at, err := s.conn.place(id)
	if err != nil {
		return nil, unavailable("read place of %q: %w", id, err)
	}
	return at, nil
}

// place reads where an event is, as committed; nil if it is nowhere.
func (c *conn) place(id string) (at world.Place, err error) {
	c.getPlace.args[0].Value = id
	rows, err := c.getPlace.s.(driver.StmtQueryContext).QueryContext(context.Background(), c.getPlace.args)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := rows.Close(); err == nil && cerr != nil {
			at, err = nil, cerr
		}
	}()
	for {
		var row [2]driver.Value
		switch err := rows.Next(row[:]); {
		case errors.Is(err, io.EOF):
			return at, nil
		case err != nil:
			return nil, err
		}
		scope, isText := row[0].(string)
		seq, isNumber := row[1].(int64)
		if !isText || !isNumber {
			return nil, fmt.Errorf("%w: the place of an event is no scope with a number", ErrDamaged)
		}
		if at == nil {
			at = world.Place{}
		}
		at[call.Scope(scope)] = seq
	}
}

// rewind undoes all but the first n facts.
func (s *worldState) rewind(n int) {
	for i := len(s.facts) - 1; i >= n; i-- {
		for scope, seq := range s.facts[i].at {
			s.group[scope] = seq - 1
		}
		if f := &s.facts[i].fact; f.CallID == "" {
			delete(s.events, f.ID)
		}
	}
	clear(s.facts[n:])
	s.facts = s.facts[:n]
}

// settle makes what the group has done what is committed.
func (s *worldState) settle() {
	for scope, seq := range s.group {
		s.know(scope, seq)
	}
}

func (s *worldState) clear() {
	clear(s.group)
	clear(s.events)
	clear(s.facts)
	s.facts = s.facts[:0]
}

// write writes what the group has put, within a commit.
func (s *worldState) write(c *conn) error {
	for i := range s.facts {
		f := &s.facts[i].fact
		for _, scope := range f.Scopes {
			if err := c.insertFact.exec(string(scope), s.facts[i].at[scope], f.ID, f.Provider, f.Source, f.Kind, nanoseconds(f.Time),
				nanoseconds(f.Occurred), f.Summary, dataValue(f.Data), string(f.CallID)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tx) PutFact(f world.Fact) (world.Place, bool, error) {
	if t.s == nil {
		return nil, false, errOver
	}
	if f.ID == "" || len(f.Scopes) == 0 {
		return nil, false, fmt.Errorf("put fact %q: it needs an id and a scope", f.ID)
	}
	s := &t.s.world
	if f.CallID == "" {
		if at, err := s.find(f.ID); err != nil || at != nil {
			return at, at != nil, err
		}
	}
	at := make(world.Place, len(f.Scopes))
	for _, scope := range f.Scopes {
		seq, err := s.head(scope)
		if err != nil {
			return nil, false, err
		}
		if _, twice := at[scope]; twice {
			return nil, false, fmt.Errorf("put fact %q: scope %s is there twice", f.ID, scope)
		}
		at[scope] = seq + 1
	}
	f.Scopes = slices.Clone(f.Scopes)
	if f.CallID == "" {
		s.events[f.ID] = len(s.facts)
	}
	s.facts = append(s.facts, placed{f, at})
	for scope, seq := range at {
		s.group[scope] = seq
	}
	return at, false, nil
}

func (t *tx) ScopeHead(scope call.Scope) (int64, error) {
	if t.s == nil {
		return 0, errOver
	}
	return t.s.world.head(scope)
}

func (t *tx) CommitsAfter(scope call.Scope, after int64, limit int, yield func(call.Commit) error) error {
	if t.s == nil {
		return errOver
	}
	s := &t.s.world
	n := 0
	counted := func(c call.Commit) error { n++; return yield(c) }
	rows, err := queryCommits(s.committed.Query, scope, after, limit)
	if err != nil {
		return unavailable("read commits of %s: %w", scope, err)
	}
	if err := eachCommit(rows, counted, func(err error) error { return unavailable("read commits of %s: %w", scope, err) }); err != nil {
		return err
	}
	for i := range s.facts {
		if limit > 0 && n == limit {
			return nil
		}
		if seq := s.facts[i].at[scope]; seq > after {
			if err := counted(s.facts[i].fact.In(scope, seq)); err != nil {
				return err
			}
		}
	}
	return nil
}

// queryCommits runs the query for the commits of a scope.
func queryCommits(query func(string, ...any) (*sql.Rows, error), scope call.Scope, after int64, limit int) (*sql.Rows, error) {
	if limit > 0 {
		return query(sqlCommitsLimit, string(scope), after, limit)
	}
	return query(sqlCommits, string(scope), after)
}

// eachCommit yields rows, and closes them. failed wraps an error of the store.
func eachCommit(rows *sql.Rows, yield func(call.Commit) error, failed func(error) error) (err error) {
	defer func() {
		if cerr := rows.Close(); err == nil && cerr != nil {
			err = failed(cerr)
		}
	}()
	for rows.Next() {
		var c call.Commit
		var scope, id string
		var at, occurred int64
		if err := rows.Scan(&scope, &c.Seq, &c.ID, &c.Provider, &c.Source, &c.Kind, &at, &occurred, &c.Summary, (*[]byte)(&c.Data), &id); err != nil {
			return failed(err)
		}
		c.Scope, c.CallID, c.Time, c.Occurred = call.Scope(scope), call.ID(id), instant(at), instant(occurred)
		if err := yield(c); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return failed(err)
	}
	return nil
}

// dataValue is nil for no data, where an empty slice would be an empty blob.
func dataValue(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

func (v *view) ScopeHead(scope call.Scope) (seq int64, err error) {
	if err := v.tx.QueryRowContext(v.ctx, sqlScopeHead, string(scope)).Scan(&seq); err != nil {
		return 0, readError(v.ctx, "read head of a scope", err)
	}
	return seq, nil
}

func (v *view) CommitsAfter(scope call.Scope, after int64, limit int, yield func(call.Commit) error) error {
	failed := func(err error) error { return readError(v.ctx, "read commits", err) }
	rows, err := queryCommits(func(q string, args ...any) (*sql.Rows, error) { return v.tx.QueryContext(v.ctx, q, args...) }, scope, after, limit)
	if err != nil {
		return failed(err)
	}
	return eachCommit(rows, yield, failed)
}

func (v *view) ScopeHeads(after call.Scope, limit int, yield func(call.Scope, int64) error) (err error) {
	failed := func(err error) error { return readError(v.ctx, "read heads", err) }
	if limit <= 0 {
		limit = math.MaxInt
	}
	rows, err := v.tx.QueryContext(v.ctx, sqlScopeHeads, string(after), limit)
	if err != nil {
		return failed(err)
	}
	defer func() {
		if cerr := rows.Close(); err == nil && cerr != nil {
			err = failed(cerr)
		}
	}()
	for rows.Next() {
		var scope string
		var seq int64
		if err := rows.Scan(&scope, &seq); err != nil {
			return failed(err)
		}
		if err := yield(call.Scope(scope), seq); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return failed(err)
	}
	return nil
}
