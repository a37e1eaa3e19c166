package world_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/world"
)

// R5.6: what is a frontier, read strictly.
func TestR5_6_ReadFrontier(t *testing.T) {
	many := func(n int) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(`"qq:%d":%d`, i, i)
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	for _, c := range []struct {
		raw  string
		want call.Frontier // nil: it is none
	}{
		{`{}`, call.Frontier{}},
		{`{"qq:group:1":0}`, call.Frontier{"qq:group:1": 0}},
		{` {"qq:group:1" : 7, "aurora:mcp:chat":9223372036854775807} `, call.Frontier{"qq:group:1": 7, "aurora:mcp:chat": 9223372036854775807}},
		{`{"qq:\u0061":1}`, call.Frontier{"qq:a": 1}},
		{``, nil}, {`null`, nil}, {`[]`, nil}, {`"qq:a"`, nil}, {`1`, nil}, {`{`, nil}, {`{} {}`, nil}, {`{},`, nil},
		{`{"qq:a":-1}`, nil}, {`{"qq:a":-0}`, nil}, {`{"qq:a":1.0}`, nil}, {`{"qq:a":1e3}`, nil}, {`{"qq:a":9223372036854775808}`, nil},
		{`{"qq:a":"1"}`, nil}, {`{"qq:a":null}`, nil}, {`{"qq:a":{}}`, nil}, {`{"qq:a":true}`, nil}, {`{"qq:a"}`, nil}, {`{"qq:a":01}`, nil},
		{`{"qq:a":1,"qq:a":1}`, nil}, {`{"qq:a":1,"qq:\u0061":2}`, nil},
		{`{"":1}`, nil}, {`{"QQ:a":1}`, nil}, {`{"qq:{x}":1}`, nil}, {`{"qq:a\u200b":1}`, nil}, {"{\"qq:\xff\":1}", nil},
		{many(world.MaxFrontier + 1), nil},
	} {
		got, err := world.ReadFrontier([]byte(c.raw))
		if (err != nil) != (c.want == nil) || !maps.Equal(got, c.want) {
			t.Errorf("%.80s: got %v, %v; want %v", c.raw, got, err, c.want)
		}
	}
	if got, err := world.ReadFrontier([]byte(many(world.MaxFrontier))); err != nil || len(got) != world.MaxFrontier {
		t.Errorf("as many scopes as can be: %d, %v", len(got), err)
	}
	for _, f := range []call.Frontier{{"qq:a": -1}, {"QQ": 1}, {"": 0}} {
		if world.CheckFrontier(f) == nil {
			t.Errorf("%v is a frontier", f)
		}
	}
}

// Whatever is read as a frontier is one.
func FuzzR5_6_ReadFrontier(f *testing.F) {
	f.Add(`{"qq:group:1":12,"a":0}`)
	f.Add(`{"a":1,"a":2}`)
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := world.ReadFrontier([]byte(raw))
		if err != nil {
			return
		}
		if got == nil {
			t.Fatal("a frontier that says nothing at all was read")
		}
		if err := world.CheckFrontier(got); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
	})
}

// journal is a world in memory.
type journal map[call.Scope][]call.Commit

func (j journal) ScopeHead(s call.Scope) (int64, error) { return int64(len(j[s])), nil }

func (j journal) CommitsAfter(s call.Scope, after int64, limit int, yield func(call.Commit) error) error {
	for _, c := range j[s] {
		if c.Seq > after {
			if err := yield(c); err != nil {
				return err
			}
			if limit--; limit == 0 {
				return nil
			}
		}
	}
	return nil
}

// Invariant: whoever reads on from UpTo gets each commit above the frontier exactly once, in the order of its scope, within
// the bound each time, and is told each time how many are left.
func TestR5_6_SinceComesToAnEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		j := journal{}
		start := time.Unix(1e9, 0)
		for i := range rapid.IntRange(0, 40).Draw(rt, "commits") {
			s := call.Scope(fmt.Sprint("s:", rapid.IntRange(0, 3).Draw(rt, "scope")))
			j[s] = append(j[s], call.Commit{Scope: s, Seq: int64(len(j[s]) + 1), ID: fmt.Sprint(i), Summary: strings.Repeat("x", rapid.IntRange(0, 300).Draw(rt, "size")),
				Data: []byte(strings.Repeat("y", rapid.IntRange(0, 900).Draw(rt, "data"))), Time: start.Add(time.Duration(rapid.IntRange(-5, 5).Draw(rt, "clock")) * time.Second)})
		}
		seen := call.Frontier{}
		for s := range 4 {
			scope := call.Scope(fmt.Sprint("s:", s))
			seen[scope] = int64(rapid.IntRange(0, len(j[scope])+1).Draw(rt, "seen"))
		}
		b := world.Bound{Commits: rapid.IntRange(1, 9).Draw(rt, "bound"), Bytes: rapid.IntRange(1, 3000).Draw(rt, "bytes")}
		left := int64(0)
		for s, seq := range seen {
			left += max(int64(len(j[s]))-seq, 0)
		}
		for round := 0; ; round++ {
			before := maps.Clone(seen)
			n, err := world.Since(j, seen, b)
			if err != nil {
				rt.Fatal(err)
			}
			if !maps.Equal(before, seen) {
				rt.Fatal("the frontier that was given has changed")
			}
			left -= int64(len(n.Commits))
			if n.More != left || len(n.Commits) == 0 && left > 0 || len(n.Commits) > b.Commits {
				rt.Fatalf("round %d: %d commits, %d more, want %d more", round, len(n.Commits), n.More, left)
			}
			size := 0
			for _, c := range n.Commits {
				if seen[c.Scope]++; c.Seq != seen[c.Scope] {
					rt.Fatalf("round %d: %s %d comes where %d should", round, c.Scope, c.Seq, seen[c.Scope])
				}
				size += len(c.Summary) + len(c.Data)
			}
			if len(n.Commits) > 1 && size > b.Bytes {
				rt.Fatalf("%d bytes, at most %d were wanted", size, b.Bytes)
			}
			if !maps.Equal(seen, n.UpTo) {
				rt.Fatalf("up to %v, want %v", n.UpTo, seen)
			}
			if left == 0 {
				break
			}
		}
	})
}

// What came first is told first, whatever its scope is.
func TestR5_6_SinceIsOldestFirst(t *testing.T) {
	at := func(s call.Scope, seq int64, second int) call.Commit {
		return call.Commit{Scope: s, Seq: seq, Time: time.Unix(int64(second), 0)}
	}
	j := journal{"a": {at("a", 1, 1), at("a", 2, 4), at("a", 3, 5)}, "b": {at("b", 1, 2), at("b", 2, 3)}, "other": {at("other", 1, 0)}}
	n, err := world.Since(j, call.Frontier{"a": 0, "b": 0}, world.Bound{Commits: 4, Bytes: 1 << 20})
	var got []string
	for _, c := range n.Commits {
		got = append(got, fmt.Sprint(c.Scope, c.Seq))
	}
	if want := []string{"a1", "b1", "b2", "a2"}; err != nil || !slices.Equal(got, want) || n.More != 1 || !maps.Equal(n.UpTo, call.Frontier{"a": 2, "b": 2}) {
		t.Errorf("got %v, %d more, up to %v, %v; want %v", got, n.More, n.UpTo, err, want)
	}
}
