package world_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/world"
)

// newTestIntake is an intake over a journal in memory. What it has committed is to be read when it has been stopped.
func newTestIntake(t testing.TB, change func(*world.IntakeOptions)) (*world.Intake, *[]string) {
	t.Helper()
	var mu sync.Mutex
	var committed []string
	there := map[string]bool{}
	o := world.IntakeOptions{
		Prepare: func(_ context.Context, pkg string, e world.Event) world.Arrival {
			return world.Arrival{Fact: world.Fact{ID: "event:" + pkg + ":" + e.ID, Scopes: []call.Scope{e.Scope}, Provider: pkg, Summary: e.Summary}}
		},
		Commit: func(_ context.Context, _, _ string, batch []world.Arrival) ([]bool, error) {
			mu.Lock()
			defer mu.Unlock()
			known := make([]bool, len(batch))
			for i, a := range batch {
				if known[i] = there[a.Fact.ID]; !known[i] {
					there[a.Fact.ID] = true
					committed = append(committed, a.Fact.ID)
				}
			}
			return known, nil
		},
		Admitted: func(string) error { return nil },
		Record:   func(world.Turned) {},
		Logger:   slog.New(slog.DiscardHandler),
	}
	change(&o)
	return world.NewIntake(o), &committed
}

func numbered(n int) []byte { return []byte(event("event_id", quote(fmt.Sprintf("e-%d", n)))) }

// R5.1, R5.3, R5.5: whatever happens in whatever order, an event becomes a fact if, and only if, it came after its provider
// had agreed to events and before the end, the failure or a refusal of the extension, and the whole start succeeded then;
// no fact is there before that; an id is committed once; and of what was received each is committed, a repeat, refused or
// waiting, with each refusal on record.
func TestR5_5_GateOfEvents(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		recorded := map[world.Refusal]int64{}
		in, committed := newTestIntake(t, func(o *world.IntakeOptions) {
			o.Batch = rapid.IntRange(1, 4).Draw(r, "batch")
			o.RecordEvery = time.Nanosecond
			o.Record = func(turned world.Turned) { // by one worker, and read when it has ended
				for why, n := range turned.Counts {
					recorded[why] += n
				}
			}
		})
		s := in.Stream("chat", "gateway/chat#1", nil)
		var agreed, started, whole bool
		closed := world.Refusal("")
		received, repeats := int64(0), int64(0)
		refused := map[world.Refusal]int64{}
		var held, want []string
		there := map[string]bool{}
		open := func() bool { return agreed && started && whole && closed == "" }
		move := func() { // what is held is committed as soon as the stream is open
			if !open() {
				return
			}
			for _, id := range held {
				if there[id] {
					repeats++
				} else {
					there[id], want = true, append(want, id)
				}
			}
			held = nil
		}
		end := func(why world.Refusal) {
			if closed != "" {
				return
			}
			if !open() {
				if why == world.Stopping && agreed {
					why = world.StartFailed
				}
				if len(held) > 0 {
					refused[why] += int64(len(held))
				}
				held = nil
			}
			closed = why
		}
		r.Repeat(map[string]func(*rapid.T){
			"event": func(r *rapid.T) {
				n := rapid.IntRange(0, 5).Draw(r, "id")
				s.Event(numbered(n))
				received++
				switch {
				case closed != "":
					refused[closed]++
				case !agreed:
					refused[world.NotVerified]++
				default:
					held = append(held, fmt.Sprintf("event:chat:e-%d", n))
				}
				move()
			},
			"agreed":      func(*rapid.T) { s.Agreed(true); agreed = agreed || closed == ""; move() },
			"not agreed":  func(*rapid.T) { s.Agreed(false); end(world.NotNegotiated) },
			"started":     func(*rapid.T) { in.Started("chat"); started = started || closed == ""; move() },
			"failed":      func(*rapid.T) { in.Failed("chat"); end(world.StartFailed) },
			"whole start": func(*rapid.T) { in.Open(); whole = whole || closed == ""; move() },
			"end":         func(*rapid.T) { in.Close(context.Background()); end(world.Stopping) },
			"": func(r *rapid.T) {
				st, _ := in.Stats("chat")
				sum := st.Committed + st.Repeated + int64(st.Waiting)
				for _, n := range st.Refused {
					sum += n
				}
				if st.Received != received || sum != received {
					r.Fatalf("of %d received %+v", received, st)
				}
				if !open() && len(want) == 0 && st.Committed > 0 {
					r.Fatal("committed before the start has succeeded")
				}
			},
		})
		in.Stop(context.Background())
		end(world.Stopping)
		st, _ := in.Stats("chat")
		if fmt.Sprint(*committed) != fmt.Sprint(want) || st.Repeated != repeats || st.Committed != int64(len(want)) || st.Waiting != 0 {
			r.Fatalf("committed %v with %d repeats (%+v), want %v and %d", *committed, st.Repeated, st, want, repeats)
		}
		if fmt.Sprint(st.Refused) != fmt.Sprint(refused) || fmt.Sprint(recorded) != fmt.Sprint(refused) {
			r.Fatalf("refused %v, recorded %v, want %v", st.Refused, recorded, refused)
		}
	})
}

// R5.5: a flood is bounded in events and in bytes, never blocks who brings it, and says what was dropped, in few records.
func TestR5_5_FloodIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var records []world.Turned
		in, committed := newTestIntake(t, func(o *world.IntakeOptions) {
			o.Events, o.Bytes = 100, 50_000
			o.Record = func(turned world.Turned) { records = append(records, turned) }
		})
		s := in.Stream("chat", "gateway/chat#1", nil)
		s.Agreed(true)
		for i := range 10_000 { // held: the start is not over
			s.Event(numbered(i))
		}
		synctest.Wait()
		if st, _ := in.Stats("chat"); st.Waiting != 100 || st.Refused[world.Overflow] != 9900 || st.State != "holding" {
			t.Errorf("%+v", st)
		}
		for i := range 600 { // a while later, every 100 ms one that is none
			time.Sleep(100 * time.Millisecond)
			s.Event([]byte(`{}`)) // the queue is full: it is dropped, too
			_ = i
		}
		in.Started("chat")
		in.Open()
		synctest.Wait()
		for i := range 10 {
			s.Event([]byte(event("summary", quote(string(make([]byte, 10_000))))))
			s.Event(numbered(20_000 + i))
		}
		in.Stop(t.Context())
		st, _ := in.Stats("chat")
		if len(*committed) != 110 || st.Committed != 110 || st.Refused[world.BadSummary] > 10 {
			t.Errorf("%d committed, %+v", len(*committed), st)
		}
		var sum int64
		for _, r := range records {
			for _, n := range r.Counts {
				sum += n
			}
		}
		if len(records) > 10 || sum != st.Received-st.Committed || records[len(records)-1].Total != sum || records[0].Provider != "chat" {
			t.Errorf("%d records of %d of %d", len(records), sum, st.Received-st.Committed)
		}
	})
}

// R5.5: what was taken is committed when the journal can be written again, in order; at a stop it is waited for as long as
// there is time, and what is left then is refused.
func TestR5_5_JournalThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := true
		var mu sync.Mutex
		in, committed := newTestIntake(t, func(o *world.IntakeOptions) {
			commit := o.Commit
			o.Batch = 3
			o.Commit = func(ctx context.Context, pkg, gen string, batch []world.Arrival) ([]bool, error) {
				mu.Lock()
				defer mu.Unlock()
				if fails {
					return nil, errors.New("the disk is full")
				}
				return commit(ctx, pkg, gen, batch)
			}
		})
		s := in.Stream("chat", "gateway/chat#1", nil)
		s.Agreed(true)
		in.Started("chat")
		in.Open()
		for i := range 10 {
			s.Event(numbered(i))
		}
		time.Sleep(time.Minute)
		if st, _ := in.Stats("chat"); st.Waiting != 10 || st.Committed != 0 {
			t.Errorf("%+v", st)
		}
		mu.Lock()
		fails = false
		mu.Unlock()
		time.Sleep(time.Minute)
		if st, _ := in.Stats("chat"); st.Committed != 10 || (*committed)[9] != "event:chat:e-9" {
			t.Errorf("%+v", st)
		}
		mu.Lock()
		fails = true
		mu.Unlock()
		for i := range 10 {
			s.Event(numbered(100 + i))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		in.Stop(ctx)
		if st, _ := in.Stats("chat"); st.Refused[world.Stopping] != 10 || st.Waiting != 0 || time.Since(began) > 7*time.Second {
			t.Errorf("after %s: %+v", time.Since(began), st)
		}
	})
}

// A provider that is not admitted, or is in quarantine, says nothing that becomes a fact.
func TestEventsOfAProviderThatIsNotAdmitted(t *testing.T) {
	admitted := errors.New("in quarantine")
	var mu sync.Mutex
	in, committed := newTestIntake(t, func(o *world.IntakeOptions) {
		o.Admitted = func(string) error {
			mu.Lock()
			defer mu.Unlock()
			return admitted
		}
	})
	s := in.Stream("chat", "gateway/chat#1", nil)
	s.Agreed(true)
	in.Started("chat")
	in.Open()
	s.Event(numbered(1))
	for st, _ := in.Stats("chat"); st.Waiting > 0; st, _ = in.Stats("chat") {
		time.Sleep(time.Millisecond)
	}
	mu.Lock()
	admitted = nil
	mu.Unlock()
	s.Event(numbered(2))
	in.Stop(t.Context())
	if st, _ := in.Stats("chat"); st.Refused[world.NotAdmitted] != 1 || len(*committed) != 1 || (*committed)[0] != "event:chat:e-2" {
		t.Errorf("%v, %+v", *committed, st)
	}
}

// A new generation ends the events of the one before it, whose last ones are committed still; the counters go on.
func TestEventsOverGenerations(t *testing.T) {
	in, committed := newTestIntake(t, func(*world.IntakeOptions) {})
	first := in.Stream("chat", "gateway/chat#1", nil)
	first.Agreed(true)
	in.Started("chat")
	in.Open()
	first.Event(numbered(1))
	second := in.Stream("chat", "gateway/chat#2", nil)
	first.Event(numbered(2))
	second.Event(numbered(3))
	second.Agreed(true)
	second.Event(numbered(4))
	in.Started("chat")
	in.Stop(t.Context())
	st, _ := in.Stats("chat")
	if st.Received != 4 || st.Committed != 2 || st.Refused[world.Stopping] != 1 || st.Refused[world.NotVerified] != 1 || len(*committed) != 2 {
		t.Errorf("%v, %+v", *committed, st)
	}
}

// F-64: a panic in the work on an event ends nothing but that event, or the batch that could not be committed: it is refused,
// counted and on record, and what comes after it is taken.
func TestF64_APanicRefusesTheEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorded := map[world.Refusal]int64{}
		in, committed := newTestIntake(t, func(o *world.IntakeOptions) {
			o.Batch = 2
			prepare, commit := o.Prepare, o.Commit
			o.Prepare = func(ctx context.Context, pkg string, e world.Event) world.Arrival {
				if e.ID == "e-1" {
					panic("prepare")
				}
				return prepare(ctx, pkg, e)
			}
			o.Commit = func(ctx context.Context, pkg, generation string, batch []world.Arrival) ([]bool, error) {
				if batch[0].Fact.ID == "event:chat:e-2" {
					panic("commit")
				}
				return commit(ctx, pkg, generation, batch)
			}
			o.Record = func(turned world.Turned) {
				for why, n := range turned.Counts {
					recorded[why] += n
				}
				panic("record")
			}
		})
		s := in.Stream("chat", "gateway/chat#1", nil)
		s.Agreed(true)
		for n := range 6 { // in batches of two: 0 1, 2 3, 4 5
			s.Event(numbered(n))
		}
		in.Started("chat")
		in.Open()
		in.Stop(t.Context())
		st, _ := in.Stats("chat")
		if st.Received != 6 || st.Committed != 3 || st.Refused[world.Internal] != 3 || st.Waiting != 0 || recorded[world.Internal] != 3 {
			t.Errorf("%+v, recorded %v", st, recorded)
		}
		if got := fmt.Sprint(*committed); got != "[event:chat:e-0 event:chat:e-4 event:chat:e-5]" {
			t.Errorf("committed %s", got)
		}
	})
}
