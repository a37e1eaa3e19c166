//go:build unix

package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// eras are traits that make the same server modern or legacy.
var eras = map[string]string{"modern": "discover=modern", "legacy": "discover=-32601&init=2025-11-25"}

func names(tools [][]byte) (out []string) {
	for _, t := range tools {
		n, _ := content.String(content.Member(t, "name"))
		out = append(out, n)
	}
	return out
}

// R2.2, S-082, S-083, F-37, F-38, F-39: what a listing is, and what is none.
func TestR2_2_Listing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		list string
		want []string // nil: it fails
		says string
	}{
		"one page":                  {"", []string{"a"}, ""},
		"empty string is a cursor":  {"pages", []string{"a", "b", "c"}, ""},
		"constant cursor":           {"constant", nil, "repeats a cursor"},
		"cycle of two":              {"cycle", nil, "repeats a cursor"},
		"pages without end":         {"forever", nil, "more than 20 pages"},
		"too many tools":            {"many", nil, "more than 40 tools"},
		"huge cursor":               {"huge-cursor", nil, "cursor of more than"},
		"cursor that is a number":   {"number-cursor", nil, "not a string"},
		"tool that is null":         {"null-tool", nil, "not an object"},
		"no array":                  {"no-tools", nil, "no array"},
		"result of an unknown type": {"evil-type", nil, "not negotiated"},
		"method unknown":            {"unknown", nil, "-32601"},
		"cursor refused once":       {"stale", []string{"a", "b"}, ""},
		"cursor refused always":     {"always-stale", nil, "refuses its own cursor"},
		"changed between pages":     {"changes-once", []string{"new"}, ""},
	} {
		for era, traits := range eras {
			t.Run(name+"/"+era, func(t *testing.T) {
				t.Parallel()
				s, err := opened(t, traits+"&list="+c.list, func(o *Options) { o.Limits.Pages, o.Limits.Tools = 20, 40 })
				if err != nil {
					t.Fatal(err)
				}
				l, err := s.List(t.Context())
				if c.want == nil {
					if err == nil || !strings.Contains(err.Error(), c.says) {
						t.Fatalf("got %v, want it to say %q", err, c.says)
					}
					return
				}
				if err != nil || !slices.Equal(names(l.Tools), c.want) {
					t.Fatalf("got %v, %v; want %v", names(l.Tools), err, c.want)
				}
				if !strings.Contains(string(l.Tools[0]), "12345678901234567890") {
					t.Errorf("not byte for byte: %s", l.Tools[0])
				}
			})
		}
	}
}

// F-39: a list that never holds still is not frozen; the deadline ends it.
func TestR2_2_UnstableList(t *testing.T) {
	t.Parallel()
	for era, traits := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t, traits+"&list=unstable")
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := s.List(ctx)
			if !errors.Is(err, errUnstable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A server that declares no tools and knows no tools/list has none.
func TestListOfServerWithoutTools(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, `discover=modern&caps="prompts":{}&list=unknown`)
	if l, err := s.List(t.Context()); err != nil || len(l.Tools) != 0 {
		t.Errorf("got %v, %v", l, err)
	}
	if s.Stats().Listening || s.Negotiated().ToolChanges {
		t.Error("it says that changes are heard")
	}
}

// R2.2: listening is acknowledged before the first tools/list goes out.
func TestR2_2_ListensFirst(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, "discover=modern")
	if !s.Stats().Listening {
		t.Error("changes are not being heard")
	}
	if _, err := s.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both requests", func() bool { return len(received(s)) >= 3 })
	if got := received(s); !slices.Equal(got[:3], []string{"server/discover", "subscriptions/listen", "tools/list"}) {
		t.Errorf("order: %v", got)
	}
}

// A server that declares changes must let them be heard.
func TestR2_2_ListenRefused(t *testing.T) {
	t.Parallel()
	for listen, says := range map[string]string{"refuse": "refused with error -32601", "without": "without tool changes"} {
		_, err := opened(t, "discover=modern&listen="+listen, nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", listen, err)
		}
	}
}

// S-025, S-061, F-27: changes of a subscription of ours are heard, coalesced; foreign ones are counted and ignored.
func TestChanges(t *testing.T) {
	t.Parallel()
	quiet := func(t *testing.T, s *Session) {
		t.Helper()
		select {
		case <-s.Changed():
			t.Error("a change was announced")
		default:
		}
	}
	t.Run("foreign", func(t *testing.T) {
		t.Parallel()
		s := mustOpen(t, "discover=modern&listen=foreign", "change-forged")
		quiet(t, s)
		s.Call(t.Context(), Call{Tool: descriptor("change-forged")})
		quiet(t, s)
		if v := s.Stats().Violations; v != 3 {
			t.Errorf("counted %d", v)
		}
	})
	for era, traits := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t, traits, "change", "change-storm")
			for _, how := range []string{"change", "change-storm"} {
				s.Call(t.Context(), Call{Tool: descriptor(how)})
				select {
				case <-s.Changed():
				default:
					t.Fatalf("%s: not heard before the answer", how)
				}
				quiet(t, s)
			}
		})
	}
}

// A subscription that the server ends is opened again, and what was not heard meanwhile is found by comparison.
func TestListensAgain(t *testing.T) {
	t.Parallel()
	for how, changed := range map[string]bool{"end-listen": false, "cancel-listen": true} {
		list := map[bool]string{true: "grows"}[changed]
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s, err := opened(t, "discover=modern&list="+list, func(o *Options) {
				o.Jitter = func(time.Duration) time.Duration { return time.Millisecond }
			})
			if err != nil {
				t.Fatal(err)
			}
			allow(s, how)
			if _, err := s.List(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Call(t.Context(), Call{Tool: descriptor(how)})
			eventually(t, "a second listing", func() bool {
				n := 0
				for _, m := range received(s) {
					if m == "tools/list" {
						n++
					}
				}
				return n >= 2 && s.Stats().Listening && !s.listed.comparing.Load()
			})
			select {
			case <-s.Changed():
				if !changed {
					t.Error("announced without a change")
				}
			case <-time.After(100 * time.Millisecond):
				if changed {
					t.Error("the change in the gap was not found")
				}
			}
		})
	}
}
