package world_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/world"
)

// R5.7: which scopes a pattern stands for: whole segments, never a part of one.
func TestR5_7_Readable(t *testing.T) {
	r, err := world.ParseReadable([]string{"qq:*", "aurora:mcp:chat", "qq:group:*", "x"})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.String(); got != "aurora:mcp:chat, qq:*, x" {
		t.Errorf("got %s", got)
	}
	for scope, want := range map[call.Scope]bool{"qq:1": true, "qq:group:1": true, "aurora:mcp:chat": true, "x": true,
		"": false, "qq": false, "qq:": false, "qqq:1": false, "q": false, "aurora:mcp": false, "aurora:mcp:chat:x": false, "aurora:mcp:chats": false, "x:1": false, "*": false} {
		if r.Has(scope) != want {
			t.Errorf("%q: got %v", scope, !want)
		}
	}
	if all, err := world.ParseReadable([]string{"qq:*", "*", "a"}); err != nil || all.String() != "*" || !all.Has("whatever:it:is") {
		t.Errorf("all: %v, %v", all, err)
	}
	if none := (world.Readable)(nil); none.Has("qq:1") || none.Has("") {
		t.Error("nothing was named, and something may be read")
	}
	for _, bad := range []string{"", "*:*", "qq*", "qq:*:x", "qq:a*", "qq::*", ":*", "QQ:*", "**", "qq:*:*", "qq:* ", strings.Repeat("a", world.MaxScope-1) + ":*", strings.Repeat("é", 1000)} {
		if err := world.CheckPattern(bad); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%.20q: %v", bad, err)
		}
		if _, err := world.ParseReadable([]string{"qq:*", bad}); err == nil {
			t.Errorf("%.20q was read", bad)
		}
	}
	if _, err := world.ParseReadable(slices.Repeat([]string{"qq:*"}, world.MaxReadable+1)); err == nil {
		t.Error("a list without a bound was read")
	}
}

// heads is a view of scopes with their heads.
type heads map[call.Scope]int64

func (h heads) ScopeHead(s call.Scope) (int64, error) { return h[s], nil }

func (heads) CommitsAfter(call.Scope, int64, int, func(call.Commit) error) error {
	return errors.New("nobody asks")
}

func (h heads) ScopeHeads(after call.Scope, limit int, yield func(call.Scope, int64) error) error {
	names := slices.Sorted(func(yield func(call.Scope) bool) {
		for s := range h {
			if s > after && !yield(s) {
				return
			}
		}
	})
	for i, s := range names {
		if limit > 0 && i == limit {
			return nil
		}
		if err := yield(s, h[s]); err != nil {
			return err
		}
	}
	return nil
}

// R5.7: whatever scopes there are and whatever may be read of them, pages of any size together list exactly those that both
// exist and may be read, once each and in order.
func TestR5_7_PagesOfReadableScopes(t *testing.T) {
	segment := rapid.SampledFrom([]string{"a", "b", "a-b", "ab", "a0"})
	scope := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(segment, 1, 3).Draw(t, "segments"), ":")
	})
	pattern := rapid.Custom(func(t *rapid.T) string {
		return scope.Draw(t, "scope") + rapid.SampledFrom([]string{"", ":*"}).Draw(t, "below")
	})
	rapid.Check(t, func(t *rapid.T) {
		patterns := rapid.SliceOfN(pattern, 0, 6).Draw(t, "patterns")
		if rapid.IntRange(0, 9).Draw(t, "all") == 0 {
			patterns = append(patterns, "*")
		}
		r, err := world.ParseReadable(patterns)
		if err != nil {
			t.Fatal(err)
		}
		there := heads{}
		for i, s := range rapid.SliceOf(scope).Draw(t, "scopes") {
			there[call.Scope(s)] = int64(i + 1)
		}
		var want []call.Scope
		for s := range there {
			named := slices.ContainsFunc(patterns, func(p string) bool {
				below, ok := strings.CutSuffix(p, "*")
				return p == string(s) || ok && strings.HasPrefix(string(s), below)
			})
			if r.Has(s) != named {
				t.Fatalf("%v has %s: %v", patterns, s, !named)
			}
			if named {
				want = append(want, s)
			}
		}
		slices.Sort(want)
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		var got []call.Scope
		for after, more := call.Scope(""), true; more; {
			n := 0
			err := world.HeadsIn(there, r, after, limit, func(s call.Scope, head int64) error {
				if head != there[s] {
					t.Fatalf("%s: head %d", s, head)
				}
				got, after = append(got, s), s
				n++
				return nil
			})
			if err != nil || n > limit {
				t.Fatalf("%d of %d, %v", n, limit, err)
			}
			more = n == limit
		}
		if !slices.Equal(got, want) {
			t.Fatalf("patterns %v: got %v, want %v", patterns, got, want)
		}
	})
}

// R5.7: an address means one scope however its characters are written, and nothing else is an address.
func TestR5_7_URI(t *testing.T) {
	for uri, want := range map[string]call.Scope{
		"ostiary://world/qq:group:1":             "qq:group:1",
		"ostiary://world/qq%3Agroup%3a1":         "qq:group:1",
		"OSTIARY://World/qq:group:1":             "qq:group:1",
		"ostiary://world/%71q:a@b+c=d~e.f_g-h":   "qq:a@b+c=d~e.f_g-h",
		"ostiary://world/aurora:mcp:org.x.files": "aurora:mcp:org.x.files",

		"": "", "ostiary://world/": "", "ostiary://world": "", "ostiary:///qq:1": "", "ostiary://world:1/qq:1": "", "ostiary://u@world/qq:1": "",
		"http://world/qq:1": "", "ostiary://worlds/qq:1": "", "ostiary://world//qq:1": "", "ostiary://world/qq:1/": "", "ostiary://world/a/b": "",
		"ostiary://world/qq:1?after=3": "", "ostiary://world/qq:1#x": "", "ostiary://world/qq:1 ": "", "ostiary://world/qq:%": "", "ostiary://world/qq:%4": "",
		"ostiary://world/qq:%zz": "", "ostiary://world/qq%253A1": "", "ostiary://world/qq:%2F": "", "ostiary://world/qq:%00": "", "ostiary://world/..": "",
		"ostiary://world/%2e%2e": "", "ostiary://world/QQ:1": "", "ostiary://world/qq:é": "", "ostiary://world/{scope}": "", "ostiary://world/qq:*": "",
		"ostiary://world/" + strings.Repeat("a", world.MaxScope+1): "",
	} {
		got, err := world.ParseURI(uri)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", uri, got, err, want)
		}
	}
	long := call.Scope(strings.Repeat("a", world.MaxScope))
	if got, err := world.ParseURI("ostiary://world/" + strings.Repeat("%61", world.MaxScope)); err != nil || got != long {
		t.Errorf("the longest: %q, %v", got, err)
	}
}

// Whatever an address is, what it means is a scope whose own address means it too.
func FuzzR5_7_URI(f *testing.F) {
	f.Add("ostiary://world/qq:group:1")
	f.Add("ostiary://world/qq%3Agroup%3A1")
	f.Add("ostiary://world/%2e%2e/%00")
	f.Fuzz(func(t *testing.T, uri string) {
		s, err := world.ParseURI(uri)
		if err != nil {
			if s != "" {
				t.Fatalf("%q: %q with an error", uri, s)
			}
			return
		}
		if err := world.CheckScope(s); err != nil {
			t.Fatalf("%q: %v", uri, err)
		}
		if again, err := world.ParseURI(world.URI(s)); err != nil || again != s {
			t.Fatalf("%q means %q, whose address means %q, %v", uri, s, again, err)
		}
	})
}

// Whatever a pattern is, one that is taken stands for scopes alone, and its list says the same as it does.
func FuzzR5_7_Readable(f *testing.F) {
	f.Add("qq:*", "qq:1")
	f.Add("*", "a:b")
	f.Add("qq", "qq")
	f.Fuzz(func(t *testing.T, pattern, scope string) {
		r, err := world.ParseReadable([]string{pattern, pattern})
		if err != nil {
			return
		}
		if r.String() != pattern {
			t.Fatalf("%q became %q", pattern, r)
		}
		if world.CheckScope(call.Scope(scope)) != nil {
			return
		}
		below, all := strings.CutSuffix(pattern, "*")
		if want := all && strings.HasPrefix(scope, below) || scope == pattern; r.Has(call.Scope(scope)) != want {
			t.Fatalf("%q has %q: %v", pattern, scope, !want)
		}
	})
}
