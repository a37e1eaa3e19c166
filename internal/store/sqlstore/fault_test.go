package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/store/storetest"
)

// openHooked opens a store whose writer calls the hook in before, if there is one, at the start of each group.
func openHooked(t *testing.T, dir string, stallAfter time.Duration) (s *Store, before *atomic.Pointer[func()]) {
	t.Helper()
	before = new(atomic.Pointer[func()])
	o := Options{Dir: dir, StallAfter: stallAfter}
	o.beforeGroup = func() {
		if fn := before.Load(); fn != nil {
			(*fn)()
		}
	}
	return openTest(t, o), before
}

const never = time.Hour // no disk is taken for stalled

// waitHealthy waits until the store can be written again.
func waitHealthy(t *testing.T, s *Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.Healthy() != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the store does not recover: %v", s.Healthy())
		}
	}
}

// fillUp makes the database full for SQLite, at its present size, until the returned function is called.
func fillUp(t *testing.T, before *atomic.Pointer[func()], s *Store) (makeRoom func()) {
	set := func(pages string) *func() {
		fn := func() {
			st, err := s.conn.c.Prepare("PRAGMA max_page_count = " + pages)
			if err == nil {
				defer st.Close()
				err = (&stmt{s: st}).exec()
			}
			if err != nil {
				t.Error(err)
			}
		}
		return &fn
	}
	before.Store(set("1"))
	return func() { before.Store(set("1000000")) }
}

// F-04: while the disk is full every write is refused at once, reads go on, what was enqueued before is kept in its order,
// and the store recovers by itself when there is room.
func TestF04_FullDiskRecovers(t *testing.T) {
	dir := t.TempDir()
	s, before := openHooked(t, dir, never)
	if err := s.Update(t.Context(), storetest.OpenCall("before")); err != nil {
		t.Fatal(err)
	}
	makeRoom := fillUp(t, before, s)
	var acked, refused int
	for i := 0; refused == 0; i++ {
		if err := s.Enqueue(t.Context(), storetest.OpenCall(call.ID(fmt.Sprint("queued", i)))); err != nil {
			t.Fatal(err)
		}
		err := s.Update(t.Context(), storetest.OpenCall(call.ID(fmt.Sprint("awaited", i))))
		switch {
		case err == nil:
			acked++
		case errors.Is(err, store.ErrUnavailable):
			refused++
		default:
			t.Fatalf("got %v, want ErrUnavailable", err)
		}
	}
	if err := s.Healthy(); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("healthy: got %v, want ErrUnavailable", err)
	}
	for range 3 {
		if err := s.Update(t.Context(), storetest.OpenCall("late")); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("update on a full disk: got %v, want ErrUnavailable", err)
		}
		if err := s.Enqueue(t.Context(), storetest.OpenCall("late")); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("enqueue on a full disk: got %v, want ErrUnavailable", err)
		}
	}
	if err := s.View(t.Context(), func(v store.View) error { _, _, err := v.Head(); return err }); err != nil {
		t.Errorf("reading on a full disk: %v", err)
	}
	makeRoom()
	waitHealthy(t, s)
	if err := s.Update(t.Context(), storetest.CloseCall("queued0")); err != nil {
		t.Errorf("update after recovery: %v", err)
	}
	closeTest(t, s)
	_, records := verifyDir(t, dir)
	if want := 1 + acked + acked + refused + 1; len(records) != want {
		t.Errorf("got %d records, want %d: those that were acked or queued, and no other", len(records), want)
	}
}

// F-04: a store that is closed while the disk is full says what it could not write.
func TestF04_CloseOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	s, before := openHooked(t, dir, never)
	fillUp(t, before, s)
	body := make([]byte, 0, 70000)
	body = append(append(append(body, `{"a":"`...), make([]byte, 60000)...), `"}`...)
	for i := range body {
		if body[i] == 0 {
			body[i] = 'x'
		}
	}
	if err := s.Enqueue(t.Context(), func(tx store.Tx) error {
		return tx.Append(ledger.Entry{Kind: ledger.KindCallRefused, Body: body})
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("close: got %v, want ErrUnavailable", err)
	}
	closeTest(t, openTest(t, Options{Dir: dir}))
}

// F-50: while the disk does not answer nobody waits longer than the bound; when it does, the store goes on.
func TestF50_StalledDisk(t *testing.T) {
	dir := t.TempDir()
	s, before := openHooked(t, dir, 50*time.Millisecond)
	release, stalled := make(chan struct{}), make(chan struct{})
	var once sync.Once
	hang := func() {
		once.Do(func() {
			close(stalled)
			<-release
		})
	}
	before.Store(&hang)
	// The first is with the writer, the others wait in the queue.
	first := make(chan error, 1)
	go func() { first <- s.Update(context.Background(), storetest.OpenCall("first")) }()
	<-stalled
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := s.Update(context.Background(), storetest.OpenCall(call.ID(fmt.Sprint("waiting", i)))); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUncertain) {
				t.Errorf("update that waits for a stalled disk: got %v, want ErrUnavailable alone", err)
			}
		})
	}
	if err := <-first; !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("update on a stalled disk: got %v, want ErrUnavailable", err)
	}
	wg.Wait()
	if err := s.Enqueue(t.Context(), storetest.OpenCall("late")); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("enqueue on a stalled disk: got %v, want ErrUnavailable", err)
	}
	close(release)
	waitHealthy(t, s)
	after := func(tx store.Tx) error { return tx.Append(storetest.Entry(ledger.KindCallRefused, "after")) }
	for s.Update(t.Context(), after) != nil { // on a busy machine a commit may well take longer than the bound
		waitHealthy(t, s)
	}
	closeTest(t, s)
	_, records := verifyDir(t, dir)
	for _, r := range records {
		if r.CallID != "first" && r.CallID != "after" {
			t.Errorf("%s was refused before the writer took it, and is in the ledger", r.CallID)
		}
	}
}

// F-50: who was with the writer when the disk stopped answering learns that it is uncertain; what is written next sees what
// became of it.
func TestF50_Uncertain(t *testing.T) {
	dir := t.TempDir()
	s, _ := openHooked(t, dir, 50*time.Millisecond)
	release := make(chan struct{})
	err := s.Update(t.Context(), func(tx store.Tx) error {
		go func() {
			for s.Healthy() == nil {
				time.Sleep(time.Millisecond)
			}
			close(release)
		}()
		<-release
		return storetest.OpenCall("slow")(tx)
	})
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrUncertain) {
		t.Errorf("got %v, want ErrUnavailable and ErrUncertain", err)
	}
	waitHealthy(t, s)
	if err := s.Update(t.Context(), storetest.CloseCall("slow")); err != nil {
		t.Errorf("what was uncertain was written, but: %v", err)
	}
	closeTest(t, s)
	verifyDir(t, dir)
}

// A caller that gives up waiting is answered at once, and what still waits in the queue is not written.
func TestUpdateHonoursItsContext(t *testing.T) {
	dir := t.TempDir()
	s, before := openHooked(t, dir, 50*time.Millisecond)
	release, stalled := make(chan struct{}), make(chan struct{})
	var once sync.Once
	hang := func() {
		once.Do(func() {
			close(stalled)
			<-release
		})
	}
	before.Store(&hang)
	if err := s.Enqueue(t.Context(), storetest.OpenCall("first")); err != nil {
		t.Fatal(err)
	}
	<-stalled
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.Update(ctx, storetest.OpenCall("second")); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want the context's error", err)
	}
	close(release)
	waitHealthy(t, s)
	closeTest(t, s)
	if _, records := verifyDir(t, dir); len(records) != 1 {
		t.Errorf("got %d records, want 1", len(records))
	}
}

// An enqueued function that fails is a bug of the gateway: nobody hears its error, so the store must not go on as if the
// ledger were complete.
func TestEnqueuedFailureFailsTheStore(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	if err := s.Enqueue(t.Context(), storetest.OpenCall("good")); err != nil {
		t.Fatal(err)
	}
	if err := s.Enqueue(t.Context(), storetest.CloseCall("nobody")); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); s.Healthy() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the store is still healthy")
		}
	}
	if err := s.Update(t.Context(), storetest.OpenCall("late")); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want ErrUnavailable with the cause", err)
	}
	closeTest(t, s)
	if _, records := verifyDir(t, dir); len(records) != 1 || records[0].CallID != "good" {
		t.Errorf("got %v, want the one good record", records)
	}
}
