package world

import (
	"maps"
	"slices"

	"github.com/ostiary/ostiary/call"
)

// Reader is what both [Tx] and [View] can read.
type Reader interface {
	ScopeHead(call.Scope) (int64, error)
	CommitsAfter(scope call.Scope, after int64, limit int, yield func(call.Commit) error) error
}

// Bound is how much is told at once.
type Bound struct{ Commits, Bytes int }

// News is what stands above a frontier.
type News struct {
	Commits []call.Commit // oldest first; of one scope always in its order
	UpTo    call.Frontier // what somebody has seen who knew the frontier and has read the commits
	More    int64         // commits that did not fit
	Heads   call.Frontier // where the scopes stand: below the frontier, if that is of another world
}

// Since reads what stands above a frontier in its scopes, as much as fits into the bound. The first commit always does, if
// need be without its data: whoever goes on from UpTo comes to an end. A commit in two of the scopes is there for each.
func Since(r Reader, seen call.Frontier, b Bound) (News, error) {
	n := News{UpTo: maps.Clone(seen), Heads: make(call.Frontier, len(seen))}
	var waiting [][]call.Commit
	for _, s := range slices.Sorted(maps.Keys(seen)) {
		head, err := r.ScopeHead(s)
		if err != nil {
			return News{}, err
		}
		n.Heads[s] = head
		if head <= seen[s] {
			continue
		}
		n.More += head - seen[s]
		var cs []call.Commit
		size := 0
		err = r.CommitsAfter(s, seen[s], b.Commits, func(c call.Commit) error {
			if size < b.Bytes {
				cs = append(cs, c)
			}
			size += sizeOf(&c)
			return nil
		})
		if err != nil {
			return News{}, err
		}
		waiting = append(waiting, cs)
	}
	for size := 0; len(n.Commits) < b.Commits; {
		oldest := -1
		for i, cs := range waiting {
			if len(cs) > 0 && (oldest < 0 || cs[0].Time.Before(waiting[oldest][0].Time)) {
				oldest = i
			}
		}
		if oldest < 0 {
			break
		}
		c := waiting[oldest][0]
		if size += sizeOf(&c); size > b.Bytes {
			if len(n.Commits) > 0 {
				break
			}
			c.Data = nil
		}
		waiting[oldest] = waiting[oldest][1:]
		n.Commits = append(n.Commits, c)
		n.UpTo[c.Scope] = c.Seq
		n.More--
	}
	return n, nil
}

// sizeOf is what a commit takes when it is told, roughly.
func sizeOf(c *call.Commit) int {
	const names = 160 // of members, and times
	return names + len(c.Scope) + len(c.ID) + len(c.Provider) + len(c.Source) + len(c.Kind) + len(c.Summary) + len(c.Data) + len(c.CallID)
}

// Last reads the newest commits of a scope, oldest first, as many as fit into the bound, and where the scope stands. The
// newest one always fits, if need be without its data.
func Last(r Reader, scope call.Scope, b Bound) (cs []call.Commit, head int64, err error) {
	if head, err = r.ScopeHead(scope); err != nil {
		return nil, 0, err
	}
	if err = r.CommitsAfter(scope, max(0, head-int64(b.Commits)), b.Commits, func(c call.Commit) error { cs = append(cs, c); return nil }); err != nil {
		return nil, 0, err
	}
	size, first := 0, len(cs)
	for ; first > 0; first-- {
		if size += sizeOf(&cs[first-1]); size > b.Bytes {
			if first == len(cs) {
				first--
				cs[first].Data = nil
			}
			break
		}
	}
	return cs[first:], head, nil
}
