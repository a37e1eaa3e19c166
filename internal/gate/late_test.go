package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/gate"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/store"
)

// flaky is a store on a disk that comes and goes.
type flaky struct {
	store.Store
	mode atomic.Int32
}

const (
	writable int32 = iota
	full           // nothing is written
	mute           // what was asked for is written, but nobody is told so: a disk that answers too late
)

var errDisk = fmt.Errorf("%w: the disk", store.ErrUnavailable)

func (f *flaky) Update(ctx context.Context, fn func(store.Tx) error) error {
	switch f.mode.Load() {
	case full:
		return errDisk
	case mute:
		return errors.Join(errDisk, store.ErrUncertain, f.Store.Update(ctx, fn))
	}
	return f.Store.Update(ctx, fn)
}

func (f *flaky) Enqueue(ctx context.Context, fn func(store.Tx) error) error {
	if f.mode.Load() != writable {
		return errDisk
	}
	return f.Store.Enqueue(ctx, fn)
}

// outcome is the one outcome on record of a call; "" if there is none yet.
func outcome(t testing.TB, s store.Store, id call.ID) (body string) {
	t.Helper()
	if err := s.Update(context.Background(), func(store.Tx) error { return nil }); err != nil { // what was enqueued is there
		t.Fatal(err)
	}
	if err := s.View(context.Background(), func(v store.View) error {
		return v.RecordsOfCall(id, func(r ledger.Record) error {
			if r.Kind == ledger.KindCallOutcome {
				if body != "" {
					t.Errorf("I2: call %s has two outcomes: %s and %s", id, body, r.Body)
				}
				body = string(r.Body)
			}
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	return body
}

// has fails unless s has all the words, and none of those that begin with "!".
func has(t testing.TB, s string, words ...string) {
	t.Helper()
	for _, w := range words {
		if not, forbidden := strings.CutPrefix(w, "!"); forbidden == strings.Contains(s, not) {
			t.Errorf("want %q in: %s", w, s)
		}
	}
}

func openIntents(t testing.TB, s store.Store) (n int) {
	t.Helper()
	if err := s.Update(context.Background(), func(tx store.Tx) error {
		open, err := tx.OpenIntents()
		n = len(open)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// F-04: an outcome that could not be written is written as soon as the store can be written again, as what it was, and with
// what the caller was told in its place. The evidence of the call comes with it.
func TestF04_AnOutcomeIsWrittenLate(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	disk := &flaky{Store: s}
	f := newFixture(t, disk, false)
	const secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a" // made up, of the shape of a token
	f.answer = func(_ context.Context, c gate.Cleared) call.Answer {
		disk.mode.Store(full)
		text := "plain"
		if c.Tool().Name == "read" {
			text = secret
		}
		return call.Answer{Delivery: call.Confirmed, Result: fmt.Appendf(nil, `{"content":[{"type":"text","text":%q}]}`, text), ResultType: "complete"}
	}
	written := f.call("write", `{}`)
	disk.mode.Store(writable)
	held := f.call("read", `{}`)
	for _, r := range []call.Reply{written, held} {
		if r.Result != nil || r.Outcome.Status != call.StatusUnknown || r.Outcome.Code != call.CodeLedgerUnavailable || r.Outcome.Delivery != call.Confirmed {
			t.Errorf("the caller is told %+v", r.Outcome)
		}
	}
	if err := f.gate.WriteLate(t.Context()); !errors.Is(err, store.ErrUnavailable) || f.gate.Late() != 2 {
		t.Errorf("while the disk is full: %v, %d wait", err, f.gate.Late())
	}
	disk.mode.Store(writable)
	if err := f.gate.WriteLate(t.Context()); err != nil || f.gate.Late() != 0 {
		t.Errorf("when there is room: %v, %d wait", err, f.gate.Late())
	}
	const told = `"told":"ledger_unavailable"`
	has(t, outcome(t, s, written.Outcome.CallID), `"status":"succeeded"`, `"delivery":"confirmed"`, told)
	has(t, outcome(t, s, held.Outcome.CallID), `"code":"withheld"`, `"evidence":"ev-`, told, "!"+secret)
	if err := s.View(t.Context(), func(v store.View) error {
		item, ok, err := v.Evidence(evidence.ID("ev-" + held.Outcome.CallID))
		if !ok || item.State != evidence.Held {
			t.Errorf("the evidence is %v, there: %v", item.State, ok)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if n := openIntents(t, s); n != 0 {
		t.Errorf("%d intents are open", n)
	}
}

// F-04: what waits is bounded. What is beyond the bound keeps its intent, for the next start to close. Until then (R5.6) facts
// are missing from the world: no frontier can be held against it, and no call that states one goes out.
func TestF04_WhatWaitsIsBounded(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	disk := &flaky{Store: s}
	f := worldFixture(t, disk, true)
	plain := f.answer
	f.answer = func(ctx context.Context, c gate.Cleared) call.Answer {
		disk.mode.Store(full)
		return plain(ctx, c)
	}
	const calls = 1024 + 3
	for n := range calls {
		disk.mode.Store(writable)
		if n < 1024 {
			f.call("read", `{}`)
		} else {
			f.call("write", `{}`)
		}
	}
	f.answer = plain
	if n := f.gate.Late(); n != 1024 {
		t.Errorf("%d outcomes wait", n)
	}
	disk.mode.Store(writable)
	if err := f.gate.WriteLate(t.Context()); err != nil {
		t.Error(err)
	}
	if n := openIntents(t, s); n != calls-1024 {
		t.Errorf("%d intents are open, want %d", n, calls-1024)
	}
	sent := f.calls.Load()
	if o := f.based("write", `{}`, call.Frontier{own: 0}).Outcome; o.Code != call.CodeLedgerUnavailable || o.Delivery != call.NotSent || f.calls.Load() != sent {
		t.Errorf("with all that is on disk: %+v", o)
	}
	if o := f.based("write", `{}`, nil).Outcome; o.Status != call.Succeeded {
		t.Errorf("without a frontier: %+v", o)
	}
	f.remake(t)
	if n, err := f.gate.Recover(t.Context()); err != nil || n != calls-1024 {
		t.Errorf("the next start closes %d: %v", n, err)
	}
	if o := f.based("write", `{}`, call.Frontier{own: calls + 1}).Outcome; o.Status != call.Succeeded {
		t.Errorf("after the next start: %+v", o)
	}
}

// Property (I1, I2, R9.2): however the disk comes and goes under calls, nothing is sent without an intent on disk, nothing
// is released without an outcome on disk, and once the disk is writable again every intent has exactly one outcome: the
// one that was, whatever the caller was told.
func TestF04_EveryIntentHasOneOutcomeInTheEnd(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	disk := &flaky{Store: s}
	f := newFixture(t, disk, false)
	modes := rapid.SampledFrom([]int32{writable, full, mute})
	rapid.Check(t, func(rt *rapid.T) {
		sent := map[call.ID]bool{}
		told := map[call.ID]call.Outcome{}
		disk.mode.Store(writable)
		for range rapid.IntRange(1, 10).Draw(rt, "calls") {
			if disk.mode.Load() == writable {
				disk.mode.Store(modes.Draw(rt, "disk before the call"))
			}
			after := modes.Draw(rt, "disk before the answer")
			fails := rapid.Bool().Draw(rt, "the tool fails")
			f.answer = func(_ context.Context, c gate.Cleared) call.Answer {
				sent[c.CallID()] = true
				disk.mode.Store(after)
				return call.Answer{Delivery: call.Confirmed, Result: []byte(`{"content":[]}`), ResultType: "complete", IsError: fails}
			}
			r := f.call("write", `{}`)
			told[r.Outcome.CallID] = r.Outcome
			if r.Result != nil && after != writable {
				rt.Fatalf("a result was released without its outcome: %+v", r.Outcome)
			}
			if rapid.Bool().Draw(rt, "room") {
				disk.mode.Store(writable)
			}
			if rapid.Bool().Draw(rt, "sweep") {
				if err := f.gate.WriteLate(context.Background()); (err == nil) != (disk.mode.Load() == writable || f.gate.Late() == 0) {
					rt.Fatalf("write what is late: %v", err)
				}
			}
		}
		disk.mode.Store(writable)
		if err := f.gate.WriteLate(context.Background()); err != nil {
			rt.Fatal(err)
		}
		for id, o := range told {
			switch body := outcome(t, s, id); {
			case sent[id] != (o.Delivery == call.Confirmed):
				rt.Fatalf("sent %v, and the caller was told %+v", sent[id], o)
			case sent[id] && !strings.Contains(body, `"delivery":"confirmed"`), strings.Contains(body, `"told"`) && o.Code != call.CodeLedgerUnavailable:
				rt.Fatalf("the caller was told %+v, on record is %q", o, body)
			case !sent[id] && body != "" && !strings.Contains(body, `"delivery":"not_sent"`):
				rt.Fatalf("call %s was not sent, on record is %s", id, body)
			}
		}
		if n := openIntents(t, s); n != 0 {
			rt.Fatalf("%d intents are open", n)
		}
	})
}
