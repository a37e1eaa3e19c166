package ostiary

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/world"
)

// World is what can be read of the world (R5.7).
type World interface {
	// WorldHead says where each of the scopes stands: the sequence of its last commit, 0 if it has none. At most 256 at once.
	WorldHead(ctx context.Context, scopes []call.Scope) (call.Frontier, error)
	// WorldScopes lists the scopes that have a commit, in the order of their names, from the first after the one given.
	// Limit 0: 1000, which is the most.
	WorldScopes(ctx context.Context, after call.Scope, limit int) (WorldScopes, error)
	// WorldDelta reads the commits of a scope above a sequence, oldest first: a page of at most limit (0: 100, at most 1000)
	// commits and about 1 MiB. A sequence that the scope has not reached is ErrAheadOfWorld.
	WorldDelta(ctx context.Context, scope call.Scope, after int64, limit int) (WorldDelta, error)
	// WorldNext waits until something stands above a frontier in one of its scopes, at most for wait and 30 s, and reads
	// the next of it.
	WorldNext(ctx context.Context, seen call.Frontier, wait time.Duration) (WorldNews, error)
}

var _ World = (*Host)(nil)

// WorldScope is a scope and where it stands.
type WorldScope struct {
	Scope call.Scope `json:"scope"`
	Head  int64      `json:"head"`
}

// WorldScopes is a page of scopes.
type WorldScopes struct {
	Scopes []WorldScope `json:"scopes"`
	More   bool         `json:"more"` // go on after the last of them
}

// WorldDelta is a page of the commits of one scope.
type WorldDelta struct {
	Scope   call.Scope    `json:"scope"`
	Commits []call.Commit `json:"commits"`
	Head    int64         `json:"head"` // of the scope, when the page was read
	More    bool          `json:"more"` // go on after the last of them
}

// WorldNews is what stands above a frontier.
type WorldNews struct {
	Commits  []call.Commit `json:"commits"`  // oldest first
	Frontier call.Frontier `json:"frontier"` // to go on from
	More     int64         `json:"more"`     // commits that wait already
}

// ReadFrontier reads a frontier from JSON, strictly: an object of scopes and of integers from 0, at most 256.
func ReadFrontier(raw []byte) (call.Frontier, error) {
	f, err := world.ReadFrontier(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidQuery, err)
	}
	return f, nil
}

const (
	deltaDefault, deltaMost = 100, 1000
	scopesMost              = 1000
	worldBytes              = 1 << 20
	worldWait               = 30 * time.Second
	lookEvery               = 20 * time.Millisecond // at most, while one waits
)

// ErrAheadOfWorld says that somebody claims to have seen more than there is: what they know is of another data directory.
var ErrAheadOfWorld = errors.New("the world has not come so far: the sequence is of another data directory")

// ErrInvalidQuery says that what is asked for cannot be: a scope that is none, a sequence below 0.
var ErrInvalidQuery = errors.New("invalid query")

// WorldHead implements [World].
func (h *Host) WorldHead(ctx context.Context, scopes []call.Scope) (call.Frontier, error) {
	at := make(call.Frontier, len(scopes))
	for _, s := range scopes {
		at[s] = 0
	}
	if err := world.CheckFrontier(at); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidQuery, err)
	}
	err := h.store.View(ctx, func(v store.View) (err error) {
		for s := range at {
			if at[s], err = v.ScopeHead(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("heads of the world: %w", err)
	}
	return at, nil
}

// WorldScopes implements [World].
func (h *Host) WorldScopes(ctx context.Context, after call.Scope, limit int) (page WorldScopes, err error) {
	if limit <= 0 || limit > scopesMost {
		limit = scopesMost
	}
	page.Scopes = []WorldScope{}
	err = h.store.View(ctx, func(v store.View) error {
		return v.ScopeHeads(after, limit+1, func(s call.Scope, head int64) error {
			if page.More = len(page.Scopes) == limit; !page.More {
				page.Scopes = append(page.Scopes, WorldScope{s, head})
			}
			return nil
		})
	})
	if err != nil {
		return WorldScopes{}, fmt.Errorf("scopes of the world: %w", err)
	}
	return page, nil
}

// WorldDelta implements [World].
func (h *Host) WorldDelta(ctx context.Context, scope call.Scope, after int64, limit int) (WorldDelta, error) {
	page := WorldDelta{Scope: scope, Commits: []call.Commit{}}
	if limit <= 0 {
		limit = deltaDefault
	}
	news, err := h.aboveFrontier(ctx, call.Frontier{scope: after}, min(limit, deltaMost))
	if err != nil {
		return page, err
	}
	page.Commits, page.Head, page.More = append(page.Commits, news.Commits...), news.Heads[scope], news.More > 0
	return page, nil
}

// WorldNext implements [World].
func (h *Host) WorldNext(ctx context.Context, seen call.Frontier, wait time.Duration) (WorldNews, error) {
	wait = min(max(wait, 0), worldWait)
	over := time.NewTimer(wait)
	defer over.Stop()
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := h.store.Watch(watching)
	for {
		news, err := h.aboveFrontier(ctx, seen, deltaDefault)
		if err != nil {
			return WorldNews{}, err
		}
		if len(news.Commits) > 0 || wait == 0 {
			return WorldNews{Commits: append([]call.Commit{}, news.Commits...), Frontier: news.UpTo, More: news.More}, nil
		}
		select {
		case <-over.C:
			wait = 0 // one look more
			continue
		case <-changed:
		}
		select { // much may be committed elsewhere: not each of it is worth a look
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return WorldNews{}, ctx.Err()
		}
	}
}

// WorldWatch yields what stands above a frontier in its scopes, and goes on with what comes, until ctx ends or yield fails.
// One who begins at the heads that WorldHead gives misses nothing.
func (h *Host) WorldWatch(ctx context.Context, seen call.Frontier, yield func(call.Commit) error) error {
	for {
		news, err := h.WorldNext(ctx, seen, worldWait)
		if err != nil {
			return err
		}
		for _, c := range news.Commits {
			if err := yield(c); err != nil {
				return err
			}
		}
		seen = news.Frontier
	}
}

// aboveFrontier reads what stands above a frontier.
func (h *Host) aboveFrontier(ctx context.Context, seen call.Frontier, limit int) (news world.News, err error) {
	if err := world.CheckFrontier(seen); err != nil {
		return news, fmt.Errorf("%w: %w", ErrInvalidQuery, err)
	}
	err = h.store.View(ctx, func(v store.View) (err error) {
		news, err = world.Since(v, seen, world.Bound{Commits: limit, Bytes: worldBytes})
		return err
	})
	if err != nil {
		return world.News{}, fmt.Errorf("read the world: %w", err)
	}
	for s, seq := range seen {
		if news.Heads[s] < seq {
			return world.News{}, fmt.Errorf("read the world: scope %s has %d commits, not %d: %w", s, news.Heads[s], seq, ErrAheadOfWorld)
		}
	}
	return news, nil
}
