package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/durable"
	"github.com/ostiary/ostiary/internal/ledger"
)

// loadKey reads the ledger's key, or makes one for a ledger that has none yet.
func (s *Store) loadKey(ctx context.Context) error {
	var recorded string
	err := s.readers.QueryRowContext(ctx, sqlGetMeta, metaVerifier).Scan(&recorded)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read ledger verifier key: %w", err)
	}
	if err := durable.CleanUp(durable.OS{}, filepath.Join(s.o.Dir, ledger.KeyFile), filepath.Join(s.o.Dir, ledger.VerifierFile)); err != nil {
		return err
	}
	key, err := ledger.ReadKey(s.o.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && recorded == "":
		if key, err = ledger.CreateKey(s.o.Dir, s.o.Random); err != nil {
			return err
		}
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: the ledger is signed by %s, but that key is gone: put %s back", ErrDamaged, recorded, ledger.KeyFile)
	case err != nil:
		return err
	}
	if recorded == "" {
		if err := s.conn.meta.exec(metaVerifier, key.Verifier); err != nil {
			return fmt.Errorf("record ledger verifier key: %w", err)
		}
		recorded = key.Verifier
	}
	if recorded != key.Verifier {
		return fmt.Errorf("%w: the ledger is signed by %s, but %s is another key", ErrDamaged, recorded, ledger.KeyFile)
	}
	s.key, s.verifier, s.origin = key, key.Verifier, ledger.Origin(key.Signer.Name())
	return nil
}

// load restores the state from the database. The last checkpoint vouches for all before it; what came after is verified
// record by record. That is bounded by Options.CheckpointEvery, however long the ledger is. A small ledger is verified as a
// whole.
func (s *Store) load(ctx context.Context) error {
	return readTx(ctx, s.readers, func(v *view) error {
		if s.whole {
			report, err := ledger.Verify(ctx, ledger.FromView(v), s.verifier)
			if err != nil {
				return err
			}
			if report.Bad != nil {
				return fmt.Errorf("%w: %w: `ostiary ledger verify` tells more", ErrDamaged, report.Bad)
			}
		}
		w, point, err := s.loadPoint(v)
		if err != nil {
			return err
		}
		if err := v.Records(point, 0, func(r ledger.Record) error { return w.Record(&r) }); err != nil {
			if p, ok := errors.AsType[*ledger.Problem](err); ok {
				return fmt.Errorf("%w: %w: `ostiary ledger verify` tells more", ErrDamaged, p)
			}
			return err
		}
		s.state.chain, s.state.edge = w.Chain(), w.Edge()
		s.signed = signedPoint{seq: point, at: s.o.Now()}
		if err := s.loadHeld(v); err != nil {
			return err
		}
		if err := s.loadKept(v); err != nil {
			return err
		}
		return s.loadIntents(v)
	})
}

// loadPoint reads the last checkpoint.
func (s *Store) loadPoint(v *view) (*ledger.Walker, int64, error) {
	var seq int64
	var msg, nodes []byte
	err := v.tx.QueryRowContext(v.ctx, sqlLastPoint).Scan(&seq, &msg, &nodes)
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.NewWalker(ledger.Hash{}, ledger.Edge{}), 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read last checkpoint: %w", err)
	}
	verifier, err := note.NewVerifier(s.verifier)
	if err != nil {
		return nil, 0, fmt.Errorf("ledger verifier key: %w", err)
	}
	point, err := ledger.OpenCheckpoint(msg, verifier)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: checkpoint at %d: %w", ErrDamaged, seq, err)
	}
	edge, err := ledger.ParseEdge(seq, nodes)
	if err != nil || point.Size != seq || point.Root != edge.Root() {
		return nil, 0, fmt.Errorf("%w: the tree's edge at checkpoint %d is not the one that was signed", ErrDamaged, seq)
	}
	var hash []byte
	err = v.tx.QueryRowContext(v.ctx, sqlHashAt, seq).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) || err == nil && len(hash) != len(ledger.Hash{}) {
		return nil, 0, fmt.Errorf("%w: record %d is missing, but a checkpoint covers it", ErrDamaged, seq)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read record %d: %w", seq, err)
	}
	return ledger.NewWalker(ledger.Hash(hash), edge), seq, nil
}

func (s *Store) loadIntents(v *view) error {
	rows, err := v.tx.QueryContext(v.ctx, sqlOpenIntents)
	if err != nil {
		return fmt.Errorf("read open intents: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		in := &intent{stored: true}
		var id, tool, publish string
		var started int64
		if err := rows.Scan(&in.id, &id, &in.Seq, &started, &in.Principal, &in.Session, &tool, &in.Provider, &publish); err != nil {
			return fmt.Errorf("read open intents: %w", err)
		}
		in.CallID, in.Tool, in.Started = call.ID(id), call.ToolID(tool), time.Unix(0, started).UTC()
		for scope := range strings.FieldsSeq(publish) {
			in.Publish = append(in.Publish, call.Scope(scope))
		}
		if s.state.intents[in.CallID] != nil {
			return fmt.Errorf("%w: call %q has two open intents", ErrDamaged, in.CallID)
		}
		s.state.intents[in.CallID] = in
		s.state.nextID = in.id
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read open intents: %w", err)
	}
	return s.checkIntents(v)
}

// checkIntents compares the open intents with their records, which are under the chain: an intent decides which call is
// closed as unknown (R3.5).
func (s *Store) checkIntents(v *view) error {
	for _, in := range s.state.intents {
		if in.Seq == 0 {
			continue // it was opened without a record
		}
		if err := v.Records(in.Seq-1, 1, func(r ledger.Record) error {
			if r.Seq != in.Seq || r.Kind != ledger.KindCallIntent || r.CallID != in.CallID {
				return fmt.Errorf("%w: open intent of call %q is not that of record %d", ErrDamaged, in.CallID, in.Seq)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
