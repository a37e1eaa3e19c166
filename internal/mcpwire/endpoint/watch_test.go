package endpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/world"
)

// planet is a world of heads.
type planet struct {
	mu      sync.Mutex
	heads   call.Frontier
	fail    error
	changed chan struct{}
}

func newPlanet() *planet { return &planet{heads: call.Frontier{}, changed: make(chan struct{}, 1)} }

func (p *planet) Heads(_ context.Context, scopes []call.Scope) (call.Frontier, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(scopes) > world.MaxFrontier {
		return nil, fmt.Errorf("%d scopes at once", len(scopes))
	}
	out := call.Frontier{}
	for _, s := range scopes {
		out[s] = p.heads[s]
	}
	return out, p.fail
}

func (p *planet) Watch(ctx context.Context) <-chan struct{} { return p.changed }

// commit puts something into scopes, and says so.
func (p *planet) commit(scopes ...call.Scope) {
	p.mu.Lock()
	for _, s := range scopes {
		p.heads[s]++
	}
	p.mu.Unlock()
	signal(p.changed)
}

func (p *planet) failing(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail = err
}

func endpointOn(t testing.TB, w World) *Endpoint {
	t.Helper()
	e, err := New(Options{Caller: callerFunc(echo), World: w})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// R15.2: a client is told of exactly those resources that it has subscribed to and that moved while it had, once for all that
// has moved since it was last told; and what nobody watches any more leaves nothing behind.
func TestR15_2_Watchers(t *testing.T) {
	scopes := []call.Scope{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		p := newPlanet()
		e, err := New(Options{Caller: callerFunc(echo), World: p})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(context.Background()); err != nil { // no goroutine looks: the test does
			t.Fatal(err)
		}
		ws := e.watchers
		watches := []*watch{ws.watch("alice"), ws.watch("alice"), ws.watch("bob")}
		subscribed := make([]map[string]int64, len(watches)) // by address: the head that its client knows of
		for i := range subscribed {
			subscribed[i] = map[string]int64{}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, len(watches)-1).Draw(t, "client")
			scope := rapid.SampledFrom(scopes).Draw(t, "scope")
			uri := rapid.SampledFrom([]string{"ostiary://world/%s", "OSTIARY://world/%s"}).Draw(t, "spelling")
			uri = fmt.Sprintf(uri, scope)
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				if err := watches[i].subscribe(context.Background(), map[string]call.Scope{uri: scope}); err != nil {
					t.Fatal(err)
				}
				if _, ok := subscribed[i][uri]; !ok {
					subscribed[i][uri] = p.heads[scope]
				}
			case 1:
				watches[i].unsubscribe(uri)
				delete(subscribed[i], uri)
			case 2:
				p.commit(scope)
			case 3:
				p.failing(errors.New("no"))
				_ = ws.look(context.Background()) // nobody is told of what was not read
				if err := watches[i].subscribe(context.Background(), map[string]call.Scope{"never": scope}); err == nil {
					t.Fatal("subscribed to what cannot be read")
				}
				p.failing(nil)
			case 4:
				if err := ws.look(context.Background()); err != nil {
					t.Fatal(err)
				}
				for j, w := range watches {
					var want []string
					for uri, known := range subscribed[j] {
						if now := p.heads[call.Scope(uri[len(uri)-1:])]; now > known {
							want = append(want, uri)
							subscribed[j][uri] = now
						}
					}
					slices.Sort(want)
					if told := len(w.news) == 1; told != (len(want) > 0) && !(told && want == nil) {
						t.Fatalf("client %d has news: %v, want %v", j, told, want)
					}
					select {
					case <-w.news:
					default:
					}
					if got := w.take(); !slices.Equal(got, want) {
						t.Fatalf("client %d is told of %v, want %v", j, got, want)
					}
				}
			}
		}
		held := map[string]int{}
		for i, w := range watches {
			if n := len(subscribed[i]); n > 0 {
				held[w.principal] += n
			}
		}
		if !maps.Equal(held, ws.held) {
			t.Fatalf("counted %v, want %v", ws.held, held)
		}
		for _, w := range watches {
			w.close()
			if err := w.subscribe(context.Background(), map[string]call.Scope{"late": "a"}); err != nil || w.take() != nil {
				t.Fatal("a client that has gone subscribes")
			}
		}
		if len(ws.all) != 0 || len(ws.held) != 0 {
			t.Fatalf("left behind: %v, %v", ws.all, ws.held)
		}
	})
}

// R15.2: however much is committed, a resource is told of a few times a second, and the last of it is told, too. The goroutine
// that looks is there as long as somebody watches.
func TestR15_2_UpdatesAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlanet()
		e := endpointOn(t, p)
		w := e.watchers.watch("alice")
		if err := w.subscribe(t.Context(), map[string]call.Scope{"u": "a"}); err != nil {
			t.Fatal(err)
		}
		told := 0
		for i := range 2000 {
			p.commit("a", "b")
			time.Sleep(time.Millisecond)
			select {
			case <-w.news:
				if got := w.take(); !slices.Equal(got, []string{"u"}) {
					t.Fatalf("commit %d: told of %v", i, got)
				}
				told++
			default:
			}
		}
		if told < 6 || told > 10 {
			t.Errorf("told %d times in 2 s", told)
		}
		p.commit("a")
		time.Sleep(time.Second)
		if got := w.take(); !slices.Equal(got, []string{"u"}) {
			t.Errorf("of the last commit: %v", got)
		}
		time.Sleep(time.Minute)
		if got := w.take(); got != nil {
			t.Errorf("nothing happened, and it is told of %v", got)
		}
		// What cannot be read for a while is told when it can be read again.
		p.failing(errors.New("no"))
		p.commit("a")
		time.Sleep(time.Second)
		p.failing(nil)
		time.Sleep(time.Second)
		if got := w.take(); !slices.Equal(got, []string{"u"}) {
			t.Errorf("after a fault: %v", got)
		}
		// The goroutine ends with the last subscription, and another begins with the next.
		w.unsubscribe("u")
		synctest.Wait()
		if e.watchers.stop != nil {
			t.Error("nobody watches, and somebody looks")
		}
		if err := w.subscribe(t.Context(), map[string]call.Scope{"u": "a"}); err != nil {
			t.Fatal(err)
		}
		p.commit("a")
		time.Sleep(time.Second)
		if got := w.take(); !slices.Equal(got, []string{"u"}) {
			t.Errorf("a second time: %v", got)
		}
		if err := e.Close(t.Context()); err != nil { // waits for the goroutine
			t.Error(err)
		}
	})
}

// R15.2: subscriptions are bounded, for each stream and for each principal, and room that is given back can be used.
func TestR15_2_SubscriptionsAreBounded(t *testing.T) {
	p := newPlanet()
	e := endpointOn(t, p)
	defer e.Close(t.Context())
	ctx := t.Context()
	some := func(from, n int) map[string]call.Scope {
		m := map[string]call.Scope{}
		for i := range n {
			m[fmt.Sprint("u", from+i)] = call.Scope(fmt.Sprint("s:", from+i))
		}
		return m
	}
	var all []*watch
	for i := range maxWatchedPrincipal / maxWatched {
		w := e.watchers.watch("alice")
		if err := w.subscribe(ctx, some(i*maxWatched, maxWatched)); err != nil {
			t.Fatal(err)
		}
		if err := w.subscribe(ctx, some(i*maxWatched, maxWatched)); err != nil { // of the same: nothing new
			t.Fatal(err)
		}
		if err := w.subscribe(ctx, some(5000, 1)); !errors.Is(err, errTooManyWatched) || !strings.Contains(err.Error(), "64") {
			t.Fatalf("one more in stream %d: %v", i, err)
		}
		all = append(all, w)
	}
	w := e.watchers.watch("alice")
	if err := w.subscribe(ctx, some(6000, 1)); !errors.Is(err, errTooManyWatched) {
		t.Errorf("one more of the principal: %v", err)
	}
	if err := e.watchers.watch("bob").subscribe(ctx, some(6000, 1)); err != nil {
		t.Errorf("another principal: %v", err)
	}
	all[3].close()
	if err := w.subscribe(ctx, some(6000, maxWatched)); err != nil {
		t.Errorf("after room was given back: %v", err)
	}
}
