package world

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ostiary/ostiary/call"
)

// Readable are the scopes of the world that somebody may read: a list of scopes, or of all scopes below some. It is sorted,
// and none of it is within another part of it. Its zero value is none.
type Readable []string // a scope, a scope followed by ":*", or "*" for all

// MaxReadable bounds the patterns of one list.
const MaxReadable = 256

// anyScope is the pattern of all scopes, and the end of one of all scopes below another.
const anyScope = "*"

// ParseReadable reads a list of patterns: a scope stands for itself, a scope followed by :* for all that have its segments
// and more, * alone for every scope.
func ParseReadable(patterns []string) (Readable, error) {
	if len(patterns) > MaxReadable {
		return nil, fmt.Errorf("%d patterns of scopes: at most %d are possible", len(patterns), MaxReadable)
	}
	for _, p := range patterns {
		if err := CheckPattern(p); err != nil {
			return nil, err
		}
	}
	r := Readable(slices.Clone(patterns))
	slices.SortFunc(r, func(a, b string) int { return cmp.Or(cmp.Compare(begin(a), begin(b)), cmp.Compare(len(a), len(b))) })
	var out Readable
	for _, p := range r {
		// What p is within begins with less than p does, so it stands before it.
		if !slices.ContainsFunc(out, func(o string) bool { return within(p, o) }) {
			out = append(out, p)
		}
	}
	return out, nil
}

// CheckPattern reports why p is no pattern of scopes.
func CheckPattern(p string) error {
	scope, below := strings.CutSuffix(p, ":"+anyScope)
	switch {
	case p == anyScope:
		return nil
	case p == "":
		return errors.New("pattern of scopes: it is empty")
	case strings.Contains(scope, anyScope):
		return fmt.Errorf("pattern of scopes %q: * stands for whole segments at the end, as in qq:*, or alone", clip(p))
	}
	if err := CheckScope(call.Scope(scope)); err != nil {
		return fmt.Errorf("pattern of scopes: %w", err)
	}
	if below && len(scope)+1 >= MaxScope {
		return fmt.Errorf("pattern of scopes %q: no scope can be below it", clip(p))
	}
	return nil
}

func clip(s string) string {
	const most = 2 * MaxScope
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// begin is what all scopes of a pattern begin with.
func begin(p string) string { return strings.TrimSuffix(p, anyScope) }

// within says whether all that p stands for, o stands for as well.
func within(p, o string) bool {
	return p == o || strings.HasSuffix(o, anyScope) && strings.HasPrefix(begin(p), begin(o))
}

// Has says whether a scope may be read.
func (r Readable) Has(s call.Scope) bool {
	return slices.ContainsFunc(r, func(p string) bool {
		return p == string(s) || strings.HasSuffix(p, anyScope) && len(s) > len(begin(p)) && strings.HasPrefix(string(s), begin(p))
	})
}

// String is the list for people: a long one is cut.
func (r Readable) String() string {
	const most = 20
	if len(r) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(r[:most], ", "), len(r)-most)
	}
	return strings.Join(r, ", ")
}

// HeadsIn yields the scopes of r that have a commit, in the order of their names, from the first after the one given, until
// limit have been yielded. It seeks: what may not be read is not looked at.
func HeadsIn(v View, r Readable, after call.Scope, limit int, yield func(call.Scope, int64) error) error {
	for _, p := range r {
		if limit <= 0 {
			return nil
		}
		n, err := headsOf(v, p, after, limit, yield)
		if err != nil {
			return err
		}
		limit -= n
	}
	return nil
}

// errPast says that the scopes of a pattern have ended.
var errPast = errors.New("past the pattern")

func headsOf(v View, p string, after call.Scope, limit int, yield func(call.Scope, int64) error) (n int, err error) {
	from, all := strings.CutSuffix(p, anyScope)
	if !all {
		if call.Scope(p) <= after {
			return 0, nil
		}
		head, err := v.ScopeHead(call.Scope(p))
		if err != nil || head == 0 {
			return 0, err
		}
		return 1, yield(call.Scope(p), head)
	}
	err = v.ScopeHeads(max(after, call.Scope(from)), limit, func(s call.Scope, head int64) error {
		if !strings.HasPrefix(string(s), from) {
			return errPast
		}
		n++
		return yield(s, head)
	})
	if errors.Is(err, errPast) {
		err = nil
	}
	return n, err
}
