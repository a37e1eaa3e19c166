package sqlstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

var benchIntent = []byte(`{"arguments_digest":"sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae","descriptor":"sha256:fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9","effect":"READ_ONLY","generation":3,"policy":"allow","provider":"files","tool":"aur.mcp.files.read_text_file","trace":"4bf92f3577b34da6a3ce929d0e0e4736"}`)
var benchOutcome = []byte(`{"delivery":"confirmed","effect":"none","duration_us":1234,"result_digest":"sha256:baa5a0964d3320fbc0c6a922140453c8513ea24ab8fd0577034804a967248096","status":"succeeded","verdict":"ACCEPTED_OBSERVATION"}`)

func openBench(b *testing.B) *Store {
	s, err := Open(b.Context(), Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

func benchID(n int64) call.ID { return call.ID(fmt.Sprintf("c_01K8ZQ4V%016x", n)) }

func appendIntent(id call.ID) func(store.Tx) error {
	return func(tx store.Tx) error {
		if err := tx.Append(ledger.Entry{Time: time.Now(), Kind: ledger.KindCallIntent, CallID: id, Session: "s_01K8ZQ4V7P", Principal: "alice", Body: benchIntent}); err != nil {
			return err
		}
		return tx.OpenIntent(ledger.Intent{CallID: id, Started: time.Now(), Principal: "alice", Session: "s_01K8ZQ4V7P", Tool: "aur.mcp.files.read_text_file"})
	}
}

func appendOutcome(id call.ID) func(store.Tx) error {
	return func(tx store.Tx) error {
		if err := tx.Append(ledger.Entry{Time: time.Now(), Kind: ledger.KindCallOutcome, CallID: id, Session: "s_01K8ZQ4V7P", Principal: "alice", Body: benchOutcome}); err != nil {
			return err
		}
		return tx.CloseIntent(id)
	}
}

func appendOne(id call.ID) func(store.Tx) error {
	return func(tx store.Tx) error {
		return tx.Append(ledger.Entry{Time: time.Now(), Kind: ledger.KindCallIntent, CallID: id, Session: "s_01K8ZQ4V7P", Principal: "alice", Body: benchIntent})
	}
}

// BenchmarkAppend1 is one writer that waits for each record: the disk's fsync.
func BenchmarkAppend1(b *testing.B) {
	s := openBench(b)
	var n int64
	reportCPU(b, 1)
	for b.Loop() {
		n++
		if err := s.Update(b.Context(), appendOne(benchID(n))); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppend64 is 64 writers that each wait for each of their records.
func BenchmarkAppend64(b *testing.B) {
	benchParallel(b, 1, func(s *Store, id call.ID) error {
		return s.Update(context.Background(), appendOne(id))
	})
}

// BenchmarkCall64 is an effectful call as the gate writes it: intent and outcome, both awaited.
func BenchmarkCall64(b *testing.B) {
	benchParallel(b, 2, func(s *Store, id call.ID) error {
		if err := s.Update(context.Background(), appendIntent(id)); err != nil {
			return err
		}
		return s.Update(context.Background(), appendOutcome(id))
	})
}

// BenchmarkEnqueue is one record that nobody waits for.
func BenchmarkEnqueue(b *testing.B) {
	benchParallel(b, 1, func(s *Store, id call.ID) error {
		return s.Enqueue(context.Background(), appendOne(id))
	})
}

// BenchmarkCallRelaxed is a READ_ONLY call with a relaxed ledger: intent and outcome, neither awaited.
func BenchmarkCallRelaxed(b *testing.B) {
	benchParallel(b, 2, func(s *Store, id call.ID) error {
		if err := s.Enqueue(context.Background(), appendIntent(id)); err != nil {
			return err
		}
		return s.Enqueue(context.Background(), appendOutcome(id))
	})
}

func benchParallel(b *testing.B, records int, do func(*Store, call.ID) error) {
	s := openBench(b)
	var n atomic.Int64
	b.SetParallelism(32) // times GOMAXPROCS
	reportCPU(b, records)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := do(s, benchID(n.Add(1))); err != nil {
				b.Error(err)
				return
			}
		}
	})
	if err := s.Update(context.Background(), func(store.Tx) error { return nil }); err != nil {
		b.Fatal(err)
	}
}
