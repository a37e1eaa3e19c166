package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/drift"
)

// fakeWire is a connector whose servers are scripted.
type fakeWire struct {
	mu     sync.Mutex
	log    []string // what happened, in order
	server map[string]*fakeLink
}

type fakeLink struct {
	wire       *fakeWire
	name       string
	connectErr error
	hang       bool // Connect waits for its context
	tools      []string
	listErr    error
	listTime   time.Duration // how long a listing takes
	listed     int           // how many there were
	restless   bool          // every listing is followed by the announcement of a change
	changes    atomic.Uint64
	changed    chan struct{}
	done       chan struct{}
	closeOnce  sync.Once
	set        []*call.Descriptor
}

func (w *fakeWire) note(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, s)
}

func (w *fakeWire) Connect(ctx context.Context, gen Generation, p Profile, enter func(Phase)) (Link, error) {
	l := w.server[p.Package]
	w.note("connect " + p.Package)
	enter(PhaseNegotiate)
	if l.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if l.connectErr != nil {
		return nil, l.connectErr
	}
	enter(PhaseListen)
	l.wire, l.name, l.changed, l.done = w, p.Package, make(chan struct{}, 1), make(chan struct{})
	return l, nil
}

func (l *fakeLink) Negotiated() Negotiated { return Negotiated{Revision: "2026-07-28", Modern: true} }
func (l *fakeLink) List(ctx context.Context) (Listing, error) {
	if l.listTime > 0 {
		select {
		case <-time.After(l.listTime):
		case <-ctx.Done():
			return Listing{}, ctx.Err()
		}
	}
	l.wire.mu.Lock()
	defer l.wire.mu.Unlock()
	l.listed++
	if l.restless {
		defer l.changes.Add(1)
	}
	out := Listing{Pages: 1}
	for _, t := range l.tools {
		out.Tools = append(out.Tools, []byte(t))
	}
	return out, l.listErr
}
func (l *fakeLink) setTools(tools ...string) {
	l.wire.mu.Lock()
	defer l.wire.mu.Unlock()
	l.tools = tools
}
func (l *fakeLink) SetTools(t []*call.Descriptor) { l.set = t }
func (l *fakeLink) Renew(_ Generation, t []*call.Descriptor) error {
	l.set = t
	return nil
}
func (l *fakeLink) Changes() uint64          { return l.changes.Load() }
func (l *fakeLink) Changed() <-chan struct{} { return l.changed }
func (l *fakeLink) Done() <-chan struct{}    { return l.done }
func (l *fakeLink) Err() error               { return errors.New("the child exited with status 3") }
func (l *fakeLink) Stats() LinkStats         { return LinkStats{} }
func (l *fakeLink) Close(context.Context) error {
	l.closeOnce.Do(func() { l.wire.note("close " + l.name); close(l.done) })
	return nil
}

func tool(name, more string) string {
	return fmt.Sprintf(`{"name":%q,"description":"does","inputSchema":{"type":"object"}%s}`, name, more)
}

func profile(pkg string, allowed ...string) Profile {
	p := Profile{Package: pkg, Transport: StdioCommand, Stdio: &Stdio{Command: "server"}, Trust: ControlledLocal, Required: true, Limits: DefaultLimits}
	for _, a := range allowed {
		p.AllowedTools = append(p.AllowedTools, AllowedTool{Raw: a})
	}
	return p
}

type events struct {
	mu  sync.Mutex
	all []Event
}

func (e *events) add(v Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, v)
}

func (e *events) kinds() (out []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range e.all {
		out = append(out, string(v.Kind)+" "+v.Status.Package)
	}
	return out
}

func manager(t *testing.T, w *fakeWire, ev *events, profiles ...Profile) (*Manager, *Registry) {
	t.Helper()
	reg := new(Registry)
	m, err := NewManager(ManagerOptions{Connector: w, Profiles: profiles, Registry: reg, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Now: time.Now, OnEvent: ev.add, StartConcurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m, reg
}

// R2.4: one required provider that fails, fails the start, and what was connected is closed in reverse order.
func TestR2_4_FailedStartClosesInReverse(t *testing.T) {
	w := &fakeWire{server: map[string]*fakeLink{"a": {tools: []string{tool("x", "")}}, "b": {tools: []string{tool("x", "")}}, "c": {connectErr: errors.New("no such file")}}}
	ev := new(events)
	m, reg := manager(t, w, ev, profile("a", "x"), profile("b", "x"), profile("c", "x"))
	err := m.Start(t.Context())
	se, ok := errors.AsType[*StartError](err)
	if !ok || se.Provider != "c" || se.Phase != PhaseNegotiate || se.Advice == "" {
		t.Fatalf("R2.8: got %v", err)
	}
	if reg.Len() != 0 {
		t.Errorf("R2.5: %d tools in the registry of a failed start", reg.Len())
	}
	var order []string
	for _, l := range w.log {
		if strings.HasPrefix(l, "close") {
			order = append(order, l)
		}
	}
	var started []string
	for _, k := range ev.kinds() {
		if p, ok := strings.CutPrefix(k, "started "); ok {
			started = append(started, "close "+p)
		}
	}
	slices.Reverse(started)
	if !slices.Equal(order, started) || len(order) == 0 && len(started) > 0 {
		t.Errorf("closed %q, started (reversed) %q", order, started)
	}
}

// R2.4: a provider that may be unavailable is reported with its reason, and the others go on.
func TestR2_4_OptionalProviderIsUnavailable(t *testing.T) {
	w := &fakeWire{server: map[string]*fakeLink{"a": {tools: []string{tool("x", "")}}, "c": {connectErr: errors.New("no such file")}}}
	optional := profile("c", "x")
	optional.Required = false
	m, reg := manager(t, w, new(events), profile("a", "x"), optional)
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer m.Stop(t.Context())
	if _, ok := reg.Tool("aur.mcp.a.x"); !ok {
		t.Error("the other provider's tool is missing")
	}
	s := m.Providers()[1].Status()
	if s.State != Degraded || s.Available || s.Reason == nil || s.Reason.Code != ReasonStartFailed || !strings.Contains(s.Reason.Text, "no such file") {
		t.Errorf("R6.5: got %+v, reason %+v", s, s.Reason)
	}
}

// R2.1: the whole start has one deadline, and the error says what ran out and what to do.
func TestR2_1_OneDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWire{server: map[string]*fakeLink{"a": {hang: true}}}
		p := profile("a", "x")
		p.Limits.Connect = time.Second
		m, _ := manager(t, w, new(events), p)
		begin := time.Now()
		err := m.Start(t.Context())
		if took := time.Since(begin); took != time.Second {
			t.Errorf("took %v", took)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "timeout_seconds = 1") || !strings.Contains(err.Error(), "negotiate") {
			t.Errorf("R2.8: %v", err)
		}
	})
}

// R6.2: a BLOCKED provider is kept and never connected.
func TestR6_2_BlockedIsNeverConnected(t *testing.T) {
	w := &fakeWire{server: map[string]*fakeLink{"a": {}}}
	p := profile("a", "x")
	p.Trust = Blocked
	m, _ := manager(t, w, new(events), p)
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := m.Providers()[0].Status(); len(w.log) != 0 || s.State != Disabled || s.Reason.Code != ReasonBlocked {
		t.Errorf("log %q, state %v", w.log, s.State)
	}
}

// R2.6: a change is recorded, asks for a restart and shows what differs; the catalog goes on as it was frozen.
func TestR2_6_ChangeIsShownAndTheCatalogStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLink{tools: []string{tool("x", ""), tool("other", "")}}
		w := &fakeWire{server: map[string]*fakeLink{"a": l}}
		ev := new(events)
		m, reg := manager(t, w, ev, profile("a", "x"))
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		before, _ := reg.Tool("aur.mcp.a.x")
		digest := before.DescriptorDigest
		l.setTools(tool("x", `,"annotations":{"destructiveHint":true}`), tool("new", ""))
		for range 1000 { // a storm
			select {
			case l.changed <- struct{}{}:
			default:
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		s := m.Providers()[0].Status()
		want := []drift.Change{{Kind: drift.Removed, Tool: "other"}, {Kind: drift.Changed, Tool: "x", Fields: []string{"/annotations"}}, {Kind: drift.Added, Tool: "new"}}
		if !s.RestartRequired || fmt.Sprint(s.Changes) != fmt.Sprint(want) || !s.Available {
			t.Errorf("got restart %v, changes %v", s.RestartRequired, s.Changes)
		}
		if after, _ := reg.Tool("aur.mcp.a.x"); after.DescriptorDigest != digest || after != before {
			t.Error("the frozen tool changed")
		}
		if n := len(slices.DeleteFunc(ev.kinds(), func(k string) bool { return !strings.HasPrefix(k, "changed") })); n > 2 {
			t.Errorf("F-27: %d listings for one storm", n)
		}
		if err := m.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// R2.7: a connection that drops is not opened again; the provider says so, and takes no calls.
func TestR2_7_LostConnectionStaysLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLink{tools: []string{tool("x", "")}}
		w := &fakeWire{server: map[string]*fakeLink{"a": l}}
		m, _ := manager(t, w, new(events), profile("a", "x"))
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := m.Providers()[0].Route(); !ok {
			t.Fatal("no route")
		}
		close(l.done)
		l.closeOnce.Do(func() {})
		if _, _, ok := m.Providers()[0].Route(); ok {
			t.Error("a route over a connection that has ended")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		s := m.Providers()[0].Status()
		if s.State != Degraded || s.Reason.Code != ReasonConnectionLost || s.Available || len(w.log) != 1 {
			t.Errorf("state %v %+v, log %q", s.State, s.Reason, w.log)
		}
		if err := m.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestR2_3_Freeze(t *testing.T) {
	for name, c := range map[string]struct {
		allowed []AllowedTool
		tools   []string
		want    string // of the error; "" : none
		ids     string
		counts  Counts
	}{
		"case is kept":        {[]AllowedTool{{Raw: "Screenshot"}}, []string{tool("Screenshot", "")}, "", "[aur.mcp.p.Screenshot]", Counts{Offered: 1, Allowed: 1}},
		"illegal name":        {[]AllowedTool{{Raw: "repo/search"}}, []string{tool("repo/search", "")}, `tool "repo/search"`, "", Counts{}},
		"empty name":          {[]AllowedTool{{Raw: ""}}, []string{tool("", "")}, "is empty", "", Counts{}},
		"alias":               {[]AllowedTool{{Raw: "repo/search", Alias: "repo_search"}}, []string{tool("repo/search", "")}, "", "[aur.mcp.p.repo_search]", Counts{Offered: 1, Allowed: 1}},
		"duplicate":           {[]AllowedTool{{Raw: "x"}}, []string{tool("x", ""), tool("x", "")}, "two tools for the id", "", Counts{}},
		"no schema":           {[]AllowedTool{{Raw: "x"}}, []string{`{"name":"x"}`}, `tool "x": input schema: missing`, "", Counts{}},
		"not of an object":    {[]AllowedTool{{Raw: "x"}}, []string{`{"name":"x","inputSchema":{"type":"string"}}`}, `type is "string"`, "", Counts{}},
		"odd but not allowed": {[]AllowedTool{{Raw: "x"}}, []string{tool("x", ""), tool("a b", ""), tool("", ""), `{"name":"n"}`, tool("x2", ""), tool("x2", "")}, "", "[aur.mcp.p.x]", Counts{Offered: 6, Allowed: 1, NotAllowed: 5}},
		"S-012 only that one": {[]AllowedTool{{Raw: "x"}, {Raw: "y"}}, []string{tool("x", ""), `{"name":"y","inputSchema":{"type":"object","$schema":"urn:x"}}`}, "", "[aur.mcp.p.x]", Counts{Offered: 2, Allowed: 1, LeftOut: 1}},
		"not offered":         {[]AllowedTool{{Raw: "x"}, {Raw: "gone"}}, []string{tool("x", "")}, "", "[aur.mcp.p.x]", Counts{Offered: 1, Allowed: 1}},
		"unreadable":          {[]AllowedTool{{Raw: "x"}}, []string{`null`, `{"name":1}`, tool("x", "")}, "", "[aur.mcp.p.x]", Counts{Offered: 3, Allowed: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p := Profile{Package: "p", AllowedTools: c.allowed}
			var l Listing
			for _, x := range c.tools {
				l.Tools = append(l.Tools, []byte(x))
			}
			cat, err := Freeze(&p, Generation{}, Negotiated{}, l)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("got %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var ids []call.ToolID
			for _, x := range cat.Tools {
				ids = append(ids, x.ID)
				if x.SchemaDigest.IsZero() || x.DescriptorDigest.IsZero() || x.Schema == nil {
					t.Errorf("%s is not frozen whole", x.ID)
				}
			}
			if fmt.Sprint(ids) != c.ids || cat.Counts != c.counts {
				t.Errorf("got %v %+v, want %v %+v", ids, cat.Counts, c.ids, c.counts)
			}
			if cat.Diff(&p, l) != nil {
				t.Errorf("a listing differs from its own catalog: %v", cat.Diff(&p, l))
			}
		})
	}
}

// R6.6: whatever a model would read of a tool is in its descriptor digest; the catalog's covers the instructions too.
func TestR6_6_DigestsCoverEverything(t *testing.T) {
	p := Profile{Package: "p", AllowedTools: []AllowedTool{{Raw: "x"}}}
	freeze := func(def, instructions string) *Catalog {
		c, err := Freeze(&p, Generation{}, Negotiated{Instructions: instructions}, Listing{Tools: [][]byte{[]byte(def)}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	base := freeze(tool("x", ""), "")
	for _, more := range []string{`,"title":"t"`, `,"annotations":{}`, `,"icons":[]`, `,"_meta":{"a":9007199254740993}`, `,"outputSchema":{}`, `,"unknown":null`} {
		c := freeze(tool("x", more), "")
		if c.Tools[0].DescriptorDigest == base.Tools[0].DescriptorDigest || c.Digest == base.Digest {
			t.Errorf("%s changes no digest", more)
		}
		if c.Tools[0].SchemaDigest != base.Tools[0].SchemaDigest {
			t.Errorf("%s changes the schema digest", more)
		}
	}
	if freeze(tool("x", ""), "obey").Digest == base.Digest {
		t.Error("the instructions are in no digest")
	}
}
