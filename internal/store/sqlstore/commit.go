package sqlstore

import (
	"errors"
	"time"

	"github.com/ostiary/ostiary/internal/ledger"
)

// process runs a group and commits it, with a checkpoint if one is due, or if point asks for one. It is false if the store
// cannot go on. If that is because the commit failed, nothing of the group is written, its Updates are answered, and what
// was enqueued is in s.kept.
func (s *Store) process(group []*op, point, probe bool) bool {
	s.health.started()
	if s.o.beforeGroup != nil {
		s.o.beforeGroup()
	}
	before := s.state.mark()
	ran := s.ran[:0]
	var bug error
	for _, o := range group {
		if !o.relaxed && !o.take() {
			continue
		}
		err := s.state.apply(o.fn, s.o.Now)
		if p, ok := errors.AsType[*panicked](err); ok {
			s.o.Logger.Error("transaction panicked", "value", p.value, "stack", string(p.stack))
		}
		switch {
		case err == nil:
			ran = append(ran, o)
		case o.relaxed:
			s.o.Logger.Error("enqueued transaction failed", "error", err)
			bug = unavailable("an enqueued transaction failed: %w", err)
		default:
			o.fn = nil
			o.done <- err
		}
	}
	s.ran = ran

	wrote := !s.state.empty() || probe || s.checkpointDue(point)
	var err error
	if wrote {
		err = s.commit(point, probe)
	}
	if err == nil {
		s.scrubNow = s.scrubNow || point
		s.finish(ran, wrote, bug)
		return !s.fatal
	}
	s.state.rewind(before)
	s.state.clear()
	failure := unavailable("%w", err)
	s.fatal = !passing(err)
	if s.health.ended(failure) {
		s.o.Logger.Error("store cannot be written", "error", err, "permanent", s.fatal)
	}
	for _, o := range ran {
		if o.relaxed {
			s.kept = append(s.kept, o)
			continue
		}
		o.fn = nil
		o.done <- failure
	}
	clear(ran)
	return false
}

// finish answers a group that is on disk. failure is what ends the store all the same.
func (s *Store) finish(ran []*op, wrote bool, failure error) {
	s.fatal = failure != nil
	if s.health.ended(failure) && failure == nil {
		s.o.Logger.Info("store can be written again")
	}
	for _, o := range ran {
		o.fn = nil
		if !o.relaxed {
			o.done <- nil
		}
	}
	clear(ran)
	if wrote {
		s.watchers.signal()
		s.flushLog()
	}
	s.scrub()
	s.armCheckpoint()
}

// armCheckpoint sees to it that records do not wait for their signature for ever if no others follow, nor the log for being
// emptied.
func (s *Store) armCheckpoint() {
	if (s.state.chain.Seq > s.signed.seq || s.soiled) && !s.checkpointArmed {
		s.checkpointTimer.Reset(s.o.CheckpointAfter)
		s.checkpointArmed = true
	}
}

// commit writes what the group has done to the database, and moves the state on.
func (s *Store) commit(point, probe bool) error {
	st := &s.state
	if err := s.conn.begin.exec(); err != nil {
		return err
	}
	edge := st.edge.Clone()
	signed, err := s.insert(&edge, point, probe)
	if err == nil {
		err = s.conn.commit.exec()
	}
	if err != nil {
		// SQLite may have rolled back by itself, then this one fails. The next BEGIN shows whether the connection is sound.
		_ = s.conn.rollback.exec()
		return err
	}
	if soils := len(st.buried) > 0 || st.held.purges(); soils || signed.seq > 0 {
		s.soiled, s.scrubNow = s.soiled || soils, true
	}
	s.unflushed += 4 + len(st.records) + len(st.buried) + len(st.taints.changes) + st.held.pages() + len(st.kept.changes) + len(st.world.facts)
	st.settle(edge)
	if signed.seq > 0 {
		s.signed = signed
		s.checkpointArmed = false
		s.checkpointTimer.Stop()
	}
	return nil
}

func (s *Store) insert(edge *ledger.Edge, point, probe bool) (signed signedPoint, err error) {
	st := &s.state
	for i := range st.records {
		r := &st.records[i]
		if err := s.conn.record(r); err != nil {
			return signed, err
		}
		edge.Append(r.Hash)
	}
	for _, c := range st.changes {
		switch {
		case !c.opened && c.intent.stored:
			err = s.conn.deleteIntent.exec(c.intent.id)
		case c.opened && st.intents[c.intent.CallID] == c.intent:
			err = s.conn.intent(c.intent)
		}
		if err != nil {
			return signed, err
		}
	}
	if err := s.conn.bury(st.buried); err != nil {
		return signed, err
	}
	if err := s.writeHeld(); err != nil {
		return signed, err
	}
	if err := st.taints.write(s.conn); err != nil {
		return signed, err
	}
	if err := st.kept.write(s.conn); err != nil {
		return signed, err
	}
	if err := st.world.write(s.conn); err != nil {
		return signed, err
	}
	if probe {
		if err := s.conn.meta.exec(metaProbe, s.o.Now().UTC().Format(time.RFC3339)); err != nil {
			return signed, err
		}
	}
	if !s.checkpointDue(point) {
		return signed, nil
	}
	c := ledger.Checkpoint{Origin: s.origin, Size: edge.Size(), Root: edge.Root(), Previous: s.signed.seq}
	msg, err := c.Sign(s.key.Signer)
	if err != nil {
		return signed, err
	}
	if err := s.conn.insertCheckpoint.exec(c.Size, msg, edge.Nodes()); err != nil {
		return signed, err
	}
	return signedPoint{seq: c.Size, at: s.o.Now()}, nil
}

// signedPoint is the last checkpoint and when it was made.
type signedPoint struct {
	seq int64
	at  time.Time
}

// checkpointDue says that records wait for a checkpoint, and enough or long enough.
func (s *Store) checkpointDue(asked bool) bool {
	behind := s.state.chain.Seq - s.signed.seq
	return behind > 0 && (asked || behind >= s.o.CheckpointEvery || s.o.Now().Sub(s.signed.at) >= s.o.CheckpointAfter)
}

// flushPages is how many pages of the write-ahead log, roughly, are moved into the database at a time. Fewer cost more
// fsyncs, more cost disk and a longer start after a crash.
const flushPages = 4000

// flushLog moves the write-ahead log into the database now and then, after the answers are out. An error that the kernel
// may have swallowed the data with ends the store; others leave the log as it is for the next time.
func (s *Store) flushLog() {
	if s.unflushed < flushPages || s.fatal {
		return
	}
	s.unflushed = 0
	s.health.started()
	err := s.conn.flush.exec()
	if err == nil || passing(err) {
		s.health.ended(nil)
		return
	}
	s.fatal = true
	s.health.ended(unavailable("move the write-ahead log: %w", err))
	s.o.Logger.Error("write-ahead log cannot be moved into the database", "error", err)
}
