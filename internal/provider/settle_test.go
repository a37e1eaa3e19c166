package provider

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostiary/ostiary/call"
)

// settled starts one provider, whose server is l, in a bubble of its own.
func settled(t *testing.T, l *fakeLink, relist time.Duration, then func(t *testing.T, p *Provider, told *int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l.tools = []string{tool("x", "")}
		pr := profile("a", "x")
		pr.Relist = relist
		m, _ := manager(t, &fakeWire{server: map[string]*fakeLink{"a": l}}, new(events), pr)
		told, err := 0, error(nil)
		m.o.OnListed = func(*Provider, []*call.Descriptor) error { told++; return err }
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer m.Stop(context.Background())
		time.Sleep(time.Millisecond) // no call comes at the very moment of the start
		then(t, m.Providers()[0], &told)
	})
}

func (l *fakeLink) listings() int {
	l.wire.mu.Lock()
	defer l.wire.mu.Unlock()
	return l.listed
}

// a list that is fresh is not read again, one that is older than the profile says is, once; and a list that is as it
// was needs nobody's eyes.
func TestA04_AnOldListIsReadAgain(t *testing.T) {
	l := new(fakeLink)
	settled(t, l, time.Minute, func(t *testing.T, p *Provider, told *int) {
		for after, want := range []int{1, 1, 2, 2, 2, 3} { // half a minute apart; exactly a minute is not too old
			if err := p.Settle(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
			if got := l.listings(); got != want {
				t.Errorf("after %d half minutes: %d listings, want %d", after, got, want)
			}
			time.Sleep(30 * time.Second)
		}
		if *told != 0 {
			t.Errorf("%d listings that were the same were looked at", *told)
		}
		l.setTools(tool("x", `,"title":"another"`))
		time.Sleep(time.Minute)
		if err := p.Settle(t.Context(), time.Now()); err != nil || *told != 1 {
			t.Errorf("a change: %v, looked at %d times", err, *told)
		}
	})
}

// with 0 no call goes out on a list that was begun before it came, and however many come at once share the listings.
func TestA04_ARelistingIsShared(t *testing.T) {
	l := &fakeLink{listTime: time.Second}
	settled(t, l, 0, func(t *testing.T, p *Provider, _ *int) {
		before := l.listings()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 30 * time.Millisecond) // over three seconds
				came := time.Now()
				if err := p.Settle(t.Context(), came); err != nil {
					t.Error(err)
				}
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.listed.Before(came) {
					t.Errorf("call %d came at %v and went out on a list of %v", i, came, p.listed)
				}
			})
		}
		wg.Wait()
		if n := l.listings() - before; n < 4 || n > 6 {
			t.Errorf("%d listings of a second each for calls that came within three", n)
		}
	})
}

// a list that cannot be read lets no call through, and the next call asks again.
func TestA04_AListThatCannotBeRead(t *testing.T) {
	l := new(fakeLink)
	settled(t, l, 0, func(t *testing.T, p *Provider, _ *int) {
		l.wire.mu.Lock()
		l.listErr = errors.New("busy")
		l.wire.mu.Unlock()
		if err := p.Settle(t.Context(), time.Now()); err == nil || !strings.Contains(err.Error(), "busy") {
			t.Errorf("got %v", err)
		}
		l.wire.mu.Lock()
		l.listErr = nil
		l.wire.mu.Unlock()
		if err := p.Settle(t.Context(), time.Now()); err != nil {
			t.Error(err)
		}
	})
}

// F-27: a server that announces a change after every listing, or never answers one, holds a call up for no longer than two
// listings may take.
func TestF27_ARestlessServerHoldsNobodyUp(t *testing.T) {
	for name, l := range map[string]*fakeLink{"restless": {listTime: time.Second, restless: true}, "silent": {}} {
		settled(t, l, 0, func(t *testing.T, p *Provider, _ *int) {
			if name == "silent" {
				l.listTime = time.Hour
			}
			began := time.Now()
			err := p.Settle(context.Background(), began)
			if took := time.Since(began); err == nil || took > 2*p.Profile.Limits.Connect {
				t.Errorf("%s: %v after %v", name, err, took)
			}
		})
	}
}

// A list that could not be held against what was admitted is held against it again, although it is the same.
func TestR6_6_AFailedComparisonIsRepeated(t *testing.T) {
	l := new(fakeLink)
	synctest.Test(t, func(t *testing.T) {
		l.tools = []string{tool("x", "")}
		m, _ := manager(t, &fakeWire{server: map[string]*fakeLink{"a": l}}, new(events), profile("a", "x"))
		told := 0
		m.o.OnListed = func(*Provider, []*call.Descriptor) error {
			if told++; told == 1 {
				return errors.New("the disk is full")
			}
			return nil
		}
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer m.Stop(context.Background())
		l.setTools(tool("x", `,"title":"another"`))
		for range 4 {
			time.Sleep(time.Millisecond)
			if err := m.Providers()[0].Settle(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if told != 2 {
			t.Errorf("looked at %d times, want 2", told)
		}
	})
}
