package sqlstore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

var canaryPattern = regexp.MustCompile(`canary-([0-9]+)!`)

func canary(n int64) string { return fmt.Sprintf("canary-%d!", n) }

// canariesOnDisk says how often each canary stands in the files of a data directory.
func canariesOnDisk(t *testing.T, dir string) map[int64]int {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]int{}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range canaryPattern.FindAllSubmatch(b, -1) {
			n, err := strconv.ParseInt(string(m[1]), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			seen[n]++
		}
	}
	return seen
}

// R8.6: what was pruned is gone from the disk: it stands in no page of the database and of its log any more, in whatever
// order and however large it was, while all that was kept is there, and the ledger verifies.
func TestR8_6_PrunedIsGoneFromTheDisk(t *testing.T) {
	for seed := range uint64(2) {
		random := rand.New(rand.NewPCG(seed, 7))
		dir := t.TempDir()
		s := openTest(t, Options{Dir: dir})
		const records = 1200
		for n := int64(1); n <= records; n++ {
			size := random.IntN(400)
			if random.IntN(20) == 0 {
				size = random.IntN(20000)
			}
			e := ledger.Entry{Time: time.Unix(n, 0), Kind: ledger.KindCallIntent, CallID: call.ID(fmt.Sprint("c", n)), Session: canary(n), Principal: canary(n),
				Body: fmt.Appendf(nil, `{"a":%q,"b":%q}`, strings.Repeat("x", size), canary(n))}
			if err := s.Enqueue(t.Context(), func(tx store.Tx) error { return tx.Append(e) }); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Update(t.Context(), func(store.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
		pruned := map[int64]bool{}
		for len(pruned) < records/2 {
			var seqs []int64
			first := 1 + random.Int64N(records)
			for seq := first; seq < min(first+150, records+1); seq++ {
				if !pruned[seq] && random.IntN(4) > 0 {
					seqs, pruned[seq] = append(seqs, seq), true
				}
			}
			if len(seqs) == 0 {
				continue
			}
			if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.Bury(seqs, ledger.Burial{By: "op", At: time.Unix(1e6, 0)}) }); err != nil {
				t.Fatal(err)
			}
		}
		check := func(when string) {
			t.Helper()
			seen := canariesOnDisk(t, dir)
			for n := int64(1); n <= records; n++ {
				if got := seen[n]; (got > 0) == pruned[n] {
					t.Errorf("seed %d, %s: record %d, pruned %v, is there %d times", seed, when, n, pruned[n], got)
				}
			}
		}
		if err := s.Update(t.Context(), func(store.Tx) error { return nil }); err != nil { // the log was emptied after the last group
			t.Fatal(err)
		}
		check("while it runs")
		closeTest(t, s)
		check("when it has stopped")
		report, _ := verifyDir(t, dir)
		if report.Tombstones != int64(len(pruned)) || report.Unvouched != 0 {
			t.Errorf("%d tombstones of %d, %d without their record", report.Tombstones, len(pruned), report.Unvouched)
		}
	}
}
