package world

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Arrival is an event on its way into the journal: the fact that it becomes, and what goes with it.
type Arrival struct {
	Fact     Fact
	Withheld bool    // its texts are not in the fact: a firewall held them
	Refused  Refusal // it becomes no fact after all, and why; "": it does
	Evidence any     // the original, ready to be kept; nil: it is not. Of no concern here
}

// Turned are events that did not become facts, for a record: counts since the record before, by reason.
type Turned struct {
	Provider   string
	Generation string
	Counts     map[Refusal]int64
	Total      int64 // of this provider, ever
}

// IntakeOptions are what an [Intake] needs. What says nothing of a default is required.
type IntakeOptions struct {
	// Prepare makes a fact of an event; it screens what it says.
	Prepare func(ctx context.Context, pkg string, e Event) Arrival
	// Commit puts facts into the journal, all or none, and says of each whether it was there already. It is called again with
	// the same facts until it succeeds.
	Commit func(ctx context.Context, pkg, generation string, batch []Arrival) (known []bool, err error)
	// Admitted reports why events of a provider are not taken now; nil: they are.
	Admitted func(pkg string) error
	// Record keeps what was turned away. For one provider it is called every RecordEvery at most.
	Record func(Turned)
	Logger *slog.Logger

	Events      int           // that wait for one provider at a time; 0: 4096
	Bytes       int           // of them; 0: 16 MiB
	Batch       int           // facts of one commit; 0: 256
	RecordEvery time.Duration // 0: 10 s
	RetryAfter  time.Duration // between two attempts to commit; 0: 1 s
	Pace        time.Duration // between two commits of one provider at least: what comes meanwhile goes into one. 0: 20 ms
}

// Intake takes the events of all providers. Taking one never blocks: what is beyond the bounds is dropped, counted and
// recorded. Its methods may be called concurrently.
type Intake struct {
	o IntakeOptions

	mu      sync.Mutex // guards what follows
	sources map[string]*source
	past    map[*Stream]bool // of earlier generations, whose last events are being committed
	open    bool             // the whole start has succeeded
	over    bool
}

// source is one provider, over its generations.
type source struct {
	pkg    string
	scopes []ScopePattern
	stream *Stream // the newest generation

	mu    sync.Mutex // guards stats
	stats IntakeStats
}

// IntakeStats are the events of one provider since the gateway started: each that was received has been committed, was a
// repeat, was refused, or waits.
type IntakeStats struct {
	State     string            `json:"state"` // see [Stream]
	Received  int64             `json:"received"`
	Committed int64             `json:"committed"`
	Repeated  int64             `json:"repeated"`
	Refused   map[Refusal]int64 `json:"refused,omitempty"`
	Waiting   int               `json:"waiting"`
	Withheld  int64             `json:"withheld"` // of those committed: without their texts
}

// NewIntake makes an intake that takes nothing yet.
func NewIntake(o IntakeOptions) *Intake {
	for _, d := range []struct {
		value     *int
		otherwise int
	}{{&o.Events, 4096}, {&o.Bytes, 16 << 20}, {&o.Batch, 256}} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
	}
	if o.RecordEvery == 0 {
		o.RecordEvery = 10 * time.Second
	}
	if o.RetryAfter == 0 {
		o.RetryAfter = time.Second
	}
	if o.Pace == 0 {
		o.Pace = 20 * time.Millisecond
	}
	return &Intake{o: o, sources: map[string]*source{}, past: map[*Stream]bool{}}
}

// Stream begins the events of one generation of a provider, which end those of the one before it. scopes are those that it
// may speak of; nil: all but others' own.
func (in *Intake) Stream(pkg, generation string, scopes []ScopePattern) *Stream {
	in.mu.Lock()
	src := in.sources[pkg]
	if src == nil {
		src = &source{pkg: pkg, scopes: scopes}
		src.stats.Refused = map[Refusal]int64{}
		in.sources[pkg] = src
	}
	before := src.stream
	s := &Stream{in: in, src: src, generation: generation, wholeStart: in.open, wake: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{})}
	s.idle.L = &s.mu
	if in.over {
		s.closed = Stopping
	}
	src.stream = s
	if before != nil {
		in.past[before] = true
	}
	in.mu.Unlock()
	if before != nil {
		before.Close(Stopping)
		go func() { // Stop waits for the stream, too
			before.finish()
			in.mu.Lock()
			defer in.mu.Unlock()
			delete(in.past, before)
		}()
	}
	return s
}

// Open says that the start has succeeded as a whole: what is held is committed from now on (R5.5).
func (in *Intake) Open() {
	in.mu.Lock()
	in.open = true
	in.mu.Unlock()
	for _, s := range in.streams() {
		s.change(func() { s.wholeStart = true })
	}
}

// Started says that a provider's own start has succeeded.
func (in *Intake) Started(pkg string) {
	if s := in.newest(pkg); s != nil {
		s.change(func() { s.started = true })
	}
}

// Failed says that a provider's start has failed: what is held of it is refused.
func (in *Intake) Failed(pkg string) {
	if s := in.newest(pkg); s != nil {
		s.Close(StartFailed)
	}
}

// Close takes no event any more, and waits until what was taken has been committed, as long as ctx allows; the rest is
// refused. If the start has not succeeded as a whole, all of it is refused.
func (in *Intake) Close(ctx context.Context) {
	in.mu.Lock()
	in.over = true
	in.mu.Unlock()
	streams := in.streams()
	for _, s := range streams {
		s.Close(Stopping)
	}
	for _, s := range streams {
		s.drained(ctx)
	}
}

// Stop closes, and ends everything when the last record has been made. Nothing is recorded of what comes later.
func (in *Intake) Stop(ctx context.Context) {
	in.Close(ctx)
	for _, s := range in.streams() {
		s.finish()
	}
}

func (in *Intake) newest(pkg string) *Stream {
	in.mu.Lock()
	defer in.mu.Unlock()
	if src := in.sources[pkg]; src != nil {
		return src.stream
	}
	return nil
}

func (in *Intake) streams() (out []*Stream) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, src := range in.sources {
		out = append(out, src.stream)
	}
	for s := range in.past {
		out = append(out, s)
	}
	return out
}

// Stats are the counters of a provider; ok is false if nothing was ever taken of it, and nothing ever offered.
func (in *Intake) Stats(pkg string) (st IntakeStats, ok bool) {
	s := in.newest(pkg)
	if s == nil {
		return st, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.src.mu.Lock()
	defer s.src.mu.Unlock()
	st = s.src.stats
	st.Refused = map[Refusal]int64{}
	for r, n := range s.src.stats.Refused {
		st.Refused[r] = n
	}
	st.State, st.Waiting = s.stateLocked(), len(s.queue)+s.working
	return st, true
}
