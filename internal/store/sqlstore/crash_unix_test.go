//go:build unix

package sqlstore

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/storetest"
)

const crashDirVariable = "OSTIARY_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirVariable); dir != "" {
		writeUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// writeUntilKilled is the child's side: several callers that write calls in every way, and say on stdout what was acked.
func writeUntilKilled(dir string) {
	s, err := Open(context.Background(), Options{Dir: dir, CheckpointEvery: 50, RelaxedDelay: time.Millisecond})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	must := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	ctx := context.Background()
	fmt.Println("ready")
	var n atomic.Int64
	for range 8 {
		go func() {
			for {
				id := call.ID(fmt.Sprintf("p%d-%d", os.Getpid(), n.Add(1)))
				switch rand.IntN(4) {
				case 0: // effectful
					must(s.Update(ctx, storetest.OpenCall(id)))
					fmt.Println("open", id)
					must(s.Update(ctx, storetest.CloseCall(id)))
					fmt.Println("closed", id)
				case 1: // effectful, without an end
					must(s.Update(ctx, storetest.OpenCall(id)))
					fmt.Println("open", id)
				case 2: // relaxed
					must(s.Enqueue(ctx, storetest.OpenCall(id)))
					must(s.Enqueue(ctx, storetest.CloseCall(id)))
				case 3: // relaxed, and then awaited
					must(s.Enqueue(ctx, storetest.OpenCall(id)))
					must(s.Update(ctx, storetest.CloseCall(id)))
					fmt.Println("closed", id)
				}
			}
		}()
	}
	select {}
}

// F-01, R3.5: however often the gateway is killed, whatever it was doing: the chain verifies, no acked write is lost, and
// the open intents are exactly the intents without an outcome.
func TestF01_KilledAtAnyPoint(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	dir := t.TempDir()
	acked := map[call.ID]string{}
	for round := range rounds {
		for id, what := range runAndKill(t, dir) {
			acked[id] = what
		}
		s := openTest(t, Options{Dir: dir, CheckpointEvery: 50, CheckSize: 1}) // large or not: the end alone decides
		var open []ledger.Intent
		if err := s.Update(t.Context(), func(tx store.Tx) (err error) { open, err = tx.OpenIntents(); return err }); err != nil {
			t.Fatal(err)
		}
		if round%5 == 4 { // otherwise the next process finds what the killed one left
			for _, in := range open {
				if err := s.Enqueue(t.Context(), storetest.CloseCall(in.CallID)); err != nil {
					t.Fatal(err)
				}
				acked[in.CallID] = "closed"
			}
			open = nil
		}
		closeTest(t, s)
		_, records := verifyDir(t, dir)
		checkCalls(t, records, open, acked)
		if t.Failed() {
			t.Fatalf("after round %d", round)
		}
	}
	t.Logf("%d calls acked over %d kills", len(acked), rounds)
}

// runAndKill runs the child for a random while and kills it. It returns what the child said was acked.
func runAndKill(t *testing.T, dir string) map[call.ID]string {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashDirVariable+"="+dir)
	child.Stderr = t.Output()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acked := map[call.ID]string{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		what, id, _ := strings.Cut(lines.Text(), " ")
		switch what {
		case "ready":
			time.AfterFunc(time.Duration(rand.Int64N(int64(120*time.Millisecond))), func() {
				_ = child.Process.Kill() // kill -9
			})
		case "open", "closed":
			acked[call.ID(id)] = what
		default:
			t.Errorf("child: %s", lines.Text())
		}
	}
	_ = child.Wait() // it was killed
	return acked
}
