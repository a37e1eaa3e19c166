package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/storetest"
)

// F-03, R3.5: the chain verifies after any crash point. Whatever was written, and wherever the log ends or is torn when the
// power goes, the next start finds a beginning of the ledger: whole transactions, in order, up to the last one that the
// disk has whole, with exactly those intents open that have no outcome in it, and with the content of those records gone
// whose pruning is in it.
func TestF03_ChainVerifiesAfterAnyCrashPoint(t *testing.T) {
	empty := fill(t, 0)
	rapid.Check(t, func(rt *rapid.T) {
		base := t.TempDir()
		dir := filepath.Join(base, "live")
		must(rt, os.CopyFS(dir, os.DirFS(empty)))
		quiet := slog.New(slog.DiscardHandler)
		s, err := Open(t.Context(), Options{Dir: dir, Logger: quiet, CheckpointEvery: rapid.Int64Range(1, 9).Draw(rt, "every"), RelaxedDelay: time.Millisecond})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()

		no := errors.New("no")
		var model []call.ID // of the open intents
		calls := 0
		for range rapid.IntRange(0, 30).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"open", "close", "fail", "whole call", "bury"}).Draw(rt, "step") {
			case "open":
				calls++
				id := call.ID(fmt.Sprint("c", calls))
				model = append(model, id)
				must(rt, write(rt, s)(context.Background(), storetest.OpenCall(id)))
			case "close":
				if len(model) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(model)-1).Draw(rt, "which")
				id := model[i]
				model = append(model[:i], model[i+1:]...)
				must(rt, write(rt, s)(context.Background(), storetest.CloseCall(id)))
			case "fail":
				if err := s.Update(context.Background(), func(tx store.Tx) error {
					for _, id := range model {
						must(rt, storetest.CloseCall(id)(tx))
					}
					must(rt, storetest.OpenCall("failed")(tx))
					return no
				}); !errors.Is(err, no) {
					rt.Fatal(err)
				}
			case "bury":
				var seqs []int64
				must(rt, s.Update(context.Background(), func(store.Tx) error { return nil })) // what was enqueued is there
				must(rt, s.View(context.Background(), func(v store.View) error {
					return v.Records(0, 0, func(r ledger.Record) error {
						if r.Pruned == 0 && r.Kind != ledger.KindPruned && rapid.Bool().Draw(rt, "which") {
							seqs = append(seqs, r.Seq)
						}
						return nil
					})
				}))
				if len(seqs) > 0 {
					must(rt, write(rt, s)(context.Background(), func(tx store.Tx) error { return tx.Bury(seqs, ledger.Burial{By: "op", At: time.Unix(1e9, 0)}) }))
				}
			case "whole call":
				calls++
				id := call.ID(fmt.Sprint("c", calls))
				must(rt, s.Update(context.Background(), func(tx store.Tx) error {
					if err := storetest.OpenCall(id)(tx); err != nil {
						return err
					}
					return storetest.CloseCall(id)(tx)
				}))
			}
		}
		var want []ledger.Record
		must(rt, s.Update(context.Background(), func(store.Tx) error { return nil }))
		must(rt, s.View(context.Background(), func(v store.View) error {
			return v.Records(0, 0, func(r ledger.Record) error { want = append(want, r); return nil })
		}))

		crashed := filepath.Join(base, "crashed")
		tear(rt, dir, crashed)
		again, err := Open(t.Context(), Options{Dir: crashed, Logger: quiet})
		if err != nil {
			rt.Fatal(err)
		}
		var open []ledger.Intent
		must(rt, again.Update(context.Background(), func(tx store.Tx) (err error) { open, err = tx.OpenIntents(); return err }))
		must(rt, again.Close())
		_, got := verifyDir(t, crashed)
		if len(got) > len(want) {
			rt.Fatalf("%d records became %d", len(want), len(got))
		}
		for i, r := range got {
			if w := want[i]; w.Pruned > int64(len(got)) { // what was to take its content away did not come to be
				if r.Pruned != 0 || r.Hash != w.Hash || len(r.Body) == 0 {
					rt.Fatalf("got %v, want it not pruned yet", r)
				}
			} else if fmt.Sprint(r) != fmt.Sprint(w) {
				rt.Fatalf("got %v, want a beginning of %v", got, want)
			}
		}
		checkCalls(t, got, open, nil)
	})
}

func must(rt *rapid.T, err error) {
	if err != nil {
		rt.Fatal(err)
	}
}

// write is one of the two ways to write.
func write(rt *rapid.T, s *Store) func(context.Context, func(store.Tx) error) error {
	if rapid.Bool().Draw(rt, "awaited") {
		return s.Update
	}
	return s.Enqueue
}

// tear copies a data directory as a disk might have it after a power loss: the log ends anywhere, and its last part may
// be noise.
func tear(rt *rapid.T, from, to string) {
	must(rt, os.Mkdir(to, 0o700))
	for _, name := range []string{dbFile, dbFile + "-wal", ledger.KeyFile, ledger.VerifierFile} {
		b, err := os.ReadFile(filepath.Join(from, name))
		must(rt, err)
		if name == dbFile+"-wal" && len(b) > 0 {
			b = b[:rapid.IntRange(0, len(b)).Draw(rt, "end")]
			for i := max(0, len(b)-rapid.IntRange(0, 5000).Draw(rt, "noise")); i < len(b); i++ {
				b[i] ^= byte(i*7 + 1)
			}
		}
		must(rt, os.WriteFile(filepath.Join(to, name), b, 0o600))
	}
}
