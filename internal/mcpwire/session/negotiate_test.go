//go:build unix

package session

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/provider"
)

// R1.2, R1.4: every way in which a server on stdio can meet the probe.
func TestR1_4_NegotiationOnStdio(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		traits, pin string
		want        string   // the revision; "" : the start fails
		says        string   // the failure
		never       []string // methods that must not reach the server
	}{
		"modern":                                {traits: "discover=modern", want: "2026-07-28", never: []string{"initialize"}},
		"method not found":                      {traits: "discover=-32601&init=2025-11-25", want: "2025-11-25"},
		"invalid params":                        {traits: "discover=-32602&init=2025-11-25", want: "2025-11-25"},
		"odd code":                              {traits: "discover=0&init=2025-06-18", want: "2025-06-18"},
		"server not initialized":                {traits: "discover=-32000&init=2024-11-05", want: "2024-11-05"},
		"silent":                                {traits: "discover=silent&init=2025-11-25", want: "2025-11-25"},
		"late":                                  {traits: "discover=late&init=2025-11-25", want: "2025-11-25"},
		"garbage":                               {traits: "discover=garbage&init=2025-11-25", want: "2025-11-25"},
		"result without versions":               {traits: "discover=no-versions&init=2025-11-25", want: "2025-11-25"},
		"lists legacy only":                     {traits: "discover=legacy-list&init=2025-11-25", want: "2025-11-25"},
		"lists the future only":                 {traits: "discover=future-list&init=2025-11-25", says: "2031-01-01", never: []string{"initialize"}},
		"-32022 lists legacy":                   {traits: "discover=32022-legacy&init=2025-11-25", want: "2025-11-25"},
		"-32022 names what was asked for, once": {traits: "discover=32022-once", want: "2026-07-28", never: []string{"initialize"}},
		"-32022 names what was asked for":       {traits: "discover=32022-always&init=2025-11-25", says: "refuses the revision that it says it supports", never: []string{"initialize"}},
		"-32022 lists the future":               {traits: "discover=32022-future&init=2025-11-25", says: "ours 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05; the server's 2031-01-01", never: []string{"initialize"}},
		"-32021":                                {traits: "discover=-32021&init=2025-11-25", says: "-32021", never: []string{"initialize"}},
		"-32020":                                {traits: "discover=-32020&init=2025-11-25", says: "-32020", never: []string{"initialize"}},
		"slow to start, then modern":            {traits: "discover=second&init=refuse", want: "2026-07-28"},
		"exits at the probe":                    {traits: "discover=exit&init=2025-11-25", says: "exit status 5"},
		"unknown revision":                      {traits: "discover=-32601&init=2030-01-01", says: "2030-01-01"},
		"modern revision by initialize":         {traits: "discover=-32601&init=2026-07-28", says: "another revision"},
		"refuses both":                          {traits: "discover=-32601", says: "initialize"},
		"pinned modern":                         {traits: "discover=modern", pin: "2026-07-28", want: "2026-07-28"},
		"pinned modern, legacy server":          {traits: "discover=-32601&init=2025-11-25", pin: "2026-07-28", says: "2026-07-28", never: []string{"initialize"}},
		"pinned modern, lists legacy":           {traits: "discover=legacy-list&init=2025-11-25", pin: "2026-07-28", says: "2025-11-25, 2025-06-18", never: []string{"initialize"}},
		"pinned legacy":                         {traits: "discover=modern&init=2025-11-25", pin: "2025-11-25", want: "2025-11-25", never: []string{"server/discover"}},
		"pinned legacy, server is older":        {traits: "init=2025-06-18", pin: "2025-11-25", says: "2025-06-18", never: []string{"server/discover"}},
		"pinned to a revision nobody knows":     {traits: "discover=modern", pin: "2031-01-01", says: "not known"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var kept keptCarrier
			o := Options{Protocol: c.pin, Limits: provider.Limits{Connect: 20 * time.Second, Close: time.Second}}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			s, err := Open(ctx, kept.dial(c.traits), o)
			if err == nil {
				defer s.Close(context.Background())
			}
			switch {
			case c.want == "" && err == nil:
				t.Fatalf("started with %s", s.Negotiated().Revision)
			case c.want != "" && err != nil:
				t.Fatal(err)
			case err != nil:
				if f := failureOf(t, err); !strings.Contains(f.Error(), c.says) {
					t.Errorf("got %q, want it to say %q", f, c.says)
				}
				<-kept.c.Done()
			default:
				n := s.Negotiated()
				if n.Revision != c.want || n.Modern != (c.want == "2026-07-28") || !n.ToolChanges && c.want != "" && !strings.Contains(c.traits, "caps") {
					t.Errorf("got %+v", n)
				}
				// Whatever came late, the connection works and nothing was mistaken for something else.
				if l, err := s.List(ctx); err != nil || len(l.Tools) != 1 {
					t.Errorf("list: %+v, %v", l, err)
				}
				if v := s.Stats().Violations; v != 0 && name != "garbage" {
					t.Errorf("%d violations: %s", v, s.Stats().LastViolation)
				}
			}
			for _, line := range kept.c.Stats().Stderr {
				if m, ok := strings.CutPrefix(line, "got "); ok && slices.Contains(c.never, m) {
					t.Errorf("%s reached the server", m)
				}
			}
		})
	}
}

// R1.4: silence is borne for a second at most, and for a third of the connect timeout.
func TestR1_4_ProbeIsShort(t *testing.T) {
	t.Parallel()
	began := time.Now()
	if _, err := opened(t, "discover=silent&init=2025-11-25", func(o *Options) { o.Limits.Connect = 600 * time.Millisecond }); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second || took < 200*time.Millisecond {
		t.Errorf("took %s", took)
	}
}

// R2.1, F-14: a server that does nothing at all fails its start soon after the deadline, and is gone.
func TestR2_1_DeadlineOfTheStart(t *testing.T) {
	t.Parallel()
	for name, traits := range map[string]string{
		"negotiate":   "discover=silent&init=silent&stays=1",
		"listen":      "listen=silent&stays=1",
		"not reading": "discover=silent&init=silent&stays=1&caps=",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var kept keptCarrier
			began := time.Now()
			_, err := Open(ctx, kept.dial(traits), Options{Limits: provider.Limits{Connect: time.Second}})
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("took %s", took)
			}
			if !errors.Is(err, context.DeadlineExceeded) || failureOf(t, err).Advice == "" {
				t.Errorf("got %v", err)
			}
			<-kept.c.Done()
		})
	}
}

// settingsOf an extension, and whether they are strictly {"version": 1} (R4.1).
var settingsOf = map[string]bool{
	`{"version":1}`: true, `{ "version" : 1 }`: true,
	`{"version":1.0}`: false, `{"version":1e0}`: false, `{"version":10e-1}`: false, `{"version":"1"}`: false, `{"version":true}`: false,
	`{"version":[1]}`: false, `{"version":{}}`: false, `{"version":null}`: false, `{"version":2}`: false, `{"version":0}`: false, `{"version":-1}`: false,
	`{"Version":1}`: false, `{"version":1,"x":2}`: false, `{"x":2,"version":1}`: false, `{"version":1,"version":1}`: false,
	`{}`: false, `null`: false, `1`: false, `"1"`: false, `true`: false, `[]`: false, `[1]`: false, `[{"version":1}]`: false, `"{\"version\":1}"`: false,
}

// onAPipe are those that are tried with a process each: what is read of them is the same code.
var onAPipe = []string{`{"version":1}`, `{"version":1.0}`, `{"version":1,"x":2}`, `null`, `[]`}

// R4.1: the contract holds only if the server's settings, as it wrote them, are strictly {"version": 1}: in both eras, over
// both transports. Settings that are no JSON at all, such as those with a key twice, end the start or agree on nothing.
func TestR4_1_ContractIsStrict(t *testing.T) {
	t.Parallel()
	offer := func(o *Options) { o.ToolContract = true }
	eras := map[string]url.Values{"modern": {"discover": {"modern"}}, "legacy": {"discover": {"-32601"}, "init": {"2025-11-25"}}}
	check := func(t *testing.T, s *Session, err error, settings string, want bool) {
		if err != nil {
			if want || !strings.Contains(settings, `,"version"`) {
				t.Fatal(err)
			}
			return
		}
		if s.Contract() != want || s.Negotiated().ToolContract != want {
			t.Errorf("got %v", s.Contract())
		}
	}
	for settings, want := range settingsOf {
		for era, traits := range eras {
			traits := maps.Clone(traits)
			traits.Set("caps", `"tools":{},"extensions":{"org.aurorabot/tool-contract":`+settings+`}`)
			if slices.Contains(onAPipe, settings) {
				t.Run("stdio "+era+" "+settings, func(t *testing.T) {
					t.Parallel()
					s, err := opened(t, traits.Encode(), offer)
					check(t, s, err, settings, want)
				})
			}
			t.Run("http "+era+" "+settings, func(t *testing.T) {
				t.Parallel()
				var mu sync.Mutex
				p := &peer{is: traits}
				s, err := openHTTP(t, newWebPeer(t, func(w http.ResponseWriter, r *http.Request, f content.Frame) {
					if r.Method != http.MethodPost {
						w.WriteHeader(http.StatusMethodNotAllowed)
						return
					}
					viaPeer(p, &mu, w, f)
				}), offer)
				check(t, s, err, settings, want)
			})
		}
	}
}

// R4.1: the server is offered strictly {"version": 1} in both eras, and nothing is agreed on that was not offered.
func TestR4_1_BothSides(t *testing.T) {
	t.Parallel()
	caps := `"tools":{},"extensions":{"org.aurorabot/tool-contract":{"version":1}}`
	for era, traits := range map[string]url.Values{"modern": {"discover": {"modern"}}, "legacy": {"discover": {"-32601"}, "init": {"2025-11-25"}}} {
		traits.Set("caps", caps)
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			if s, err := opened(t, traits.Encode(), nil); err != nil || s.Contract() {
				t.Errorf("agreed on though it was not offered: %v", err)
			}
			s, err := opened(t, traits.Encode(), func(o *Options) { o.ToolContract = true })
			if err != nil || !s.Contract() {
				t.Fatalf("not agreed on: %v", err)
			}
			eventually(t, "the server has seen the offer", func() bool {
				return slices.Contains(s.Stats().StderrTail, `offered {"org.aurorabot/tool-contract":{"version":1}}`)
			})
		})
	}
}
