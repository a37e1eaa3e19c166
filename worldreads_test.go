package ostiary_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/world"
)

// offlineHost is a gateway that starts no provider.
func offlineHost(t *testing.T) *ostiary.Host {
	t.Helper()
	dir := t.TempDir()
	writeConfig(t, dir, "")
	h, err := ostiary.New(ostiary.Options{ConfigFile: dir + "/ostiary.toml", DataDir: dir + "/data", Offline: true,
		LookupEnv: environment(map[string]string{"OSTIARY_TOKEN": testToken})})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// putEvents puts n events into the scopes.
func putEvents(t *testing.T, h *ostiary.Host, first, n int, scopes ...call.Scope) {
	t.Helper()
	for i := range n {
		f := world.Fact{ID: fmt.Sprint("event:chat:", scopes, first+i), Scopes: scopes, Provider: "chat", Source: "room", Kind: "message.received",
			Time: time.Unix(int64(first+i), 0).UTC(), Summary: fmt.Sprint("message ", first+i), Data: []byte(`{"exact":9007199254740993}`)}
		if _, err := h.PutFact(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
}

// R5.7: the world is read by scope and sequence.
func TestR5_7_ReadByScopeAndSequence(t *testing.T) {
	t.Parallel()
	h, ctx := offlineHost(t), t.Context()
	putEvents(t, h, 1, 5, "qq:group:1")
	putEvents(t, h, 6, 1, "qq:group:1", "qq:group:2")

	heads, err := h.WorldHead(ctx, []call.Scope{"qq:group:1", "qq:group:2", "qq:group:3"})
	if want := (call.Frontier{"qq:group:1": 6, "qq:group:2": 1, "qq:group:3": 0}); err != nil || !maps.Equal(heads, want) {
		t.Errorf("heads: got %v, %v, want %v", heads, err, want)
	}
	scopes, err := h.WorldScopes(ctx, "", 1)
	if err != nil || !slices.Equal(scopes.Scopes, []ostiary.WorldScope{{Scope: "qq:group:1", Head: 6}}) || !scopes.More {
		t.Errorf("first scope: got %+v, %v", scopes, err)
	}
	scopes, err = h.WorldScopes(ctx, "qq:group:1", 1)
	if err != nil || !slices.Equal(scopes.Scopes, []ostiary.WorldScope{{Scope: "qq:group:2", Head: 1}}) || scopes.More {
		t.Errorf("second scope: got %+v, %v", scopes, err)
	}
	var got []int64
	for after, more := int64(2), true; more; {
		page, err := h.WorldDelta(ctx, "qq:group:1", after, 3)
		if err != nil || page.Head != 6 || page.Scope != "qq:group:1" {
			t.Fatalf("got %+v, %v", page, err)
		}
		for _, c := range page.Commits {
			got, after = append(got, c.Seq), c.Seq
		}
		more = page.More
	}
	if !slices.Equal(got, []int64{3, 4, 5, 6}) {
		t.Errorf("after 2: got %v", got)
	}
	page, err := h.WorldDelta(ctx, "qq:group:2", 0, 0)
	if err != nil || len(page.Commits) != 1 {
		t.Fatalf("got %+v, %v", page, err)
	}
	if c := page.Commits[0]; c.Seq != 1 || c.Summary != "message 6" || c.Provider != "chat" || c.Source != "room" || c.Kind != "message.received" ||
		string(c.Data) != `{"exact":9007199254740993}` || !c.Time.Equal(time.Unix(6, 0)) || c.CallID != "" {
		t.Errorf("got %+v", c)
	}
	// What cannot be asked is refused, and says which it is.
	for name, err := range map[string]error{
		"no scope":           second(h.WorldDelta(ctx, "QQ:1", 0, 0)),
		"below 0":            second(h.WorldDelta(ctx, "qq:1", -1, 0)),
		"no scope, of heads": second(h.WorldHead(ctx, []call.Scope{"qq:{id}"})),
		"too many":           second(h.WorldNext(ctx, manyScopes(world.MaxFrontier+1), 0)),
	} {
		if !errors.Is(err, ostiary.ErrInvalidQuery) || ostiary.FaultOf(err) != ostiary.FaultInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.WorldDelta(ctx, "qq:group:2", 2, 0); !errors.Is(err, ostiary.ErrAheadOfWorld) || !strings.Contains(err.Error(), "qq:group:2 has 1 commits, not 2") {
		t.Errorf("beyond the head: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func manyScopes(n int) call.Frontier {
	f := call.Frontier{}
	for i := range n {
		f[call.Scope(fmt.Sprint("s:", i))] = 0
	}
	return f
}

// R5.7: the world is followed live: each commit comes once, in order, those that were there and those that come.
func TestR5_7_FollowLive(t *testing.T) {
	t.Parallel()
	h := offlineHost(t)
	putEvents(t, h, 1, 250, "qq:group:1") // more than one page
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := errors.New("that is all")
	seen := call.Frontier{"qq:group:1": 10, "qq:group:2": 0}
	var got []call.Commit
	err := h.WorldWatch(ctx, seen, func(c call.Commit) error {
		got = append(got, c)
		switch len(got) {
		case 240: // all that was there
			putEvents(t, h, 300, 1, "qq:group:3") // of no interest
			putEvents(t, h, 301, 1, "qq:group:2")
		case 241:
			putEvents(t, h, 302, 1, "qq:group:1", "qq:group:2")
		case 243:
			return ended
		}
		return nil
	})
	if !errors.Is(err, ended) {
		t.Fatalf("after %d commits: %v", len(got), err)
	}
	at := call.Frontier{"qq:group:1": 10, "qq:group:2": 0}
	for i, c := range got {
		if at[c.Scope]++; c.Seq != at[c.Scope] {
			t.Fatalf("commit %d is %s %d, want %d", i, c.Scope, c.Seq, at[c.Scope])
		}
	}
	if !maps.Equal(at, call.Frontier{"qq:group:1": 251, "qq:group:2": 2}) || !maps.Equal(seen, call.Frontier{"qq:group:1": 10, "qq:group:2": 0}) {
		t.Errorf("ended at %v, began at %v", at, seen)
	}
	// Nothing comes: an empty answer after the wait, and none after the end of the context.
	news, err := h.WorldNext(ctx, at, time.Millisecond)
	if err != nil || len(news.Commits) != 0 || !maps.Equal(news.Frontier, at) {
		t.Errorf("got %+v, %v", news, err)
	}
	over, end := context.WithCancel(ctx)
	time.AfterFunc(time.Millisecond, end)
	if err := h.WorldWatch(over, at, func(call.Commit) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
