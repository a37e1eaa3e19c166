package approval

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// offered has one request and the state of a question about it.
func offered(t testing.TB) (*Offers, Request, string) {
	t.Helper()
	o, err := NewOffers()
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture()
	r, err := f.ask(aCall(), noon)
	if err != nil {
		t.Fatal(err)
	}
	state, ok := o.Offer(&r, noon)
	if !ok {
		t.Fatal("the request is not offered")
	}
	return o, r, state
}

// S-052: whatever byte of a state is another, it does not open.
func TestS052_AChangedStateDoesNotOpen(t *testing.T) {
	o, r, state := offered(t)
	raw, _ := base64.RawURLEncoding.DecodeString(state)
	for i := range raw {
		bad := append([]byte(nil), raw...)
		bad[i] ^= 1
		if id, err := o.Take(base64.RawURLEncoding.EncodeToString(bad), &r.Binding, noon); !errors.Is(err, ErrOffer) || id != "" {
			t.Fatalf("byte %d changed: %q, %v", i, id, err)
		}
	}
	for _, bad := range []string{"", "!", state[:len(state)-1], state + "A", state + "=", strings.Repeat("A", maxState+1)} {
		if _, err := o.Take(bad, &r.Binding, noon); !errors.Is(err, ErrOffer) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
	other, err := NewOffers()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Take(state, &r.Binding, noon); !errors.Is(err, ErrOffer) {
		t.Errorf("after a restart: %v", err)
	}
	if id, err := o.Take(state, &r.Binding, noon); err != nil || id != r.ID {
		t.Errorf("unchanged: %q, %v", id, err)
	}
}

// S-053: a state is for one principal, one call and a while.
func TestS053_AStateIsForOneCall(t *testing.T) {
	for name, change := range map[string]func(*Call){
		"principal":  func(c *Call) { c.Principal = "mallory" },
		"session":    func(c *Call) { c.Session = "s2" },
		"tool":       func(c *Call) { c.Tool = "aur.mcp.files.delete" },
		"arguments":  func(c *Call) { c.Arguments = []byte(`{"path":"/tmp/y"}`) },
		"descriptor": func(c *Call) { c.Descriptor[0]++ },
		"policy":     func(c *Call) { c.Policy[0]++ },
	} {
		o, r, state := offered(t)
		c := aCall()
		change(&c)
		b, err := Bind(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Take(state, &b, noon); !errors.Is(err, ErrOffer) {
			t.Errorf("another %s: %v", name, err)
		}
		if id, err := o.Take(state, &r.Binding, noon.Add(offerLife-1)); err != nil || id != r.ID {
			t.Errorf("after another %s has tried: %q, %v", name, id, err)
		}
	}
	o, r, state := offered(t)
	if _, err := o.Take(state, &r.Binding, noon.Add(offerLife)); !errors.Is(err, ErrOffer) {
		t.Errorf("too late: %v", err)
	}
}

// S-054: a state opens once, whatever was said with it, and a newer question about the same request makes the older void.
func TestS054_AStateOpensOnce(t *testing.T) {
	o, r, first := offered(t)
	second, ok := o.Offer(&r, noon)
	if !ok {
		t.Fatal("not offered again")
	}
	if _, err := o.Take(first, &r.Binding, noon); !errors.Is(err, ErrOffer) {
		t.Errorf("an older state: %v", err)
	}
	if id, err := o.Take(second, &r.Binding, noon); err != nil || id != r.ID {
		t.Errorf("%q, %v", id, err)
	}
	if _, err := o.Take(second, &r.Binding, noon); !errors.Is(err, ErrOffer) {
		t.Errorf("used twice: %v", err)
	}
}

// nobody is asked the same thing without end, nor what cannot be shown whole, nor what somebody has left to others.
func TestA31_OffersAreFew(t *testing.T) {
	o, r, _ := offered(t)
	n := 1
	for range 10 {
		if _, ok := o.Offer(&r, noon); ok {
			n++
		}
	}
	if n != maxOffers {
		t.Errorf("one request was offered %d times", n)
	}
	o, r, _ = offered(t)
	if o.Dismiss(r.ID); func() bool { _, ok := o.Offer(&r, noon); return ok }() {
		t.Error("offered again to somebody who did not want to decide")
	}
	for name, change := range map[string]func(*Request){
		"a result":  func(r *Request) { r.Evidence = "ev-1" },
		"cut":       func(r *Request) { r.Cut = true },
		"long":      func(r *Request) { r.Arguments = strings.Repeat("x", maxOffered+1) },
		"decided":   func(r *Request) { r.State = Granted },
		"too late":  func(r *Request) { r.Expires = noon },
		"a release": func(r *Request) { r.ID, r.Evidence = ReleaseID("c1"), "ev-c1" },
	} {
		o, r, _ := offered(t)
		r.ID = "another"
		if change(&r); func() bool { _, ok := o.Offer(&r, noon); return ok }() {
			t.Errorf("%s is offered", name)
		}
	}
	o, r, _ = offered(t)
	for i := range maxRemembered + 10 {
		r.ID = ID(fmt.Sprint("r", i))
		o.Offer(&r, noon)
	}
	if len(o.open) != maxRemembered {
		t.Errorf("%d requests are remembered", len(o.open))
	}
	r.ID, r.Created, r.Expires = "later", r.Expires, r.Expires.Add(time.Hour)
	if _, ok := o.Offer(&r, r.Created); !ok || len(o.open) != 1 {
		t.Errorf("what is over is not forgotten: %d", len(o.open))
	}
}

// The form has our words and the caller's, secrets gone, and nothing of a provider's but the name of its tool.
func TestR7_6_Form(t *testing.T) {
	_, r, _ := offered(t)
	var err error
	if r.Description, err = Describe(aCall(), func(key, text string) string { return strings.ReplaceAll(text, "9007199254740993", "[redacted]") }); err != nil {
		t.Fatal(err)
	}
	want := "A call waits until somebody agrees to it. Nothing has been sent.\n\nTool: aur.mcp.files.write\nEffect: EXTERNAL_SIDE_EFFECT\nArguments:\n" + r.Arguments +
		"\n\nTo approve lets exactly this call through, once. (request a001)"
	if got := r.Form(); got != want || !strings.Contains(got, `"path": "/tmp/x"`) || !strings.Contains(got, "[redacted]") {
		t.Errorf("%q", got)
	}
}

// F-53: who decides by a form may agree once, on the request of that very caller, and only where the rules say so.
func TestF53_ByElicitation(t *testing.T) {
	f := newFixture()
	c := aCall()
	r, err := f.ask(c, noon)
	if err != nil {
		t.Fatal(err)
	}
	by := ByElicitation("alice")
	if err := f.grant(r.ID, ApprovedOnce, by, noon); !errors.Is(err, ErrNotEntitled) {
		t.Errorf("where nobody says so: %v", err)
	}
	on := true
	f.Entitled = func(decider string, q *Request) bool { return on && decider == ByElicitation(q.Principal) }
	if err := f.grant(r.ID, ApprovedForSession, by, noon); !errors.Is(err, ErrScope) {
		t.Errorf("for the session: %v", err)
	}
	for _, who := range []string{ByElicitation("mallory"), "alice", elicitation} {
		if err := f.grant(r.ID, ApprovedOnce, who, noon); !errors.Is(err, ErrNotEntitled) {
			t.Errorf("%q: %v", who, err)
		}
	}
	if err := f.grant(r.ID, ApprovedOnce, by, noon); err != nil {
		t.Fatal(err)
	}
	on = false // R7.5: it is asked again when the grant is spent
	if f.spend(r.ID, c, noon) == nil {
		t.Error("spent after it was switched off")
	}
	on = true
	if err := f.spend(r.ID, c, noon); err != nil {
		t.Error(err)
	}
}

// Property: whatever is offered, answered, dismissed and replayed, in whatever order: a state opens at most once, for the
// request that it was made for, by the call that was asked about, and before its time is over.
func TestS054_Offers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, err := NewOffers()
		if err != nil {
			t.Fatal(err)
		}
		now := noon
		type made struct {
			of    int
			state string
			at    time.Time
			used  bool
		}
		var requests []Request
		for i := range 4 {
			c := aCall()
			c.Principal = []string{"alice", "bob"}[i%2]
			c.Arguments = fmt.Appendf(nil, `{"n":%d}`, i/2)
			b, err := Bind(c)
			if err != nil {
				t.Fatal(err)
			}
			requests = append(requests, Request{ID: ID(fmt.Sprint("r", i)), Binding: b, Created: noon, Expires: noon.Add(time.Hour)})
		}
		var states []*made
		newest := map[int]*made{}
		offers, dismissed := map[int]int{}, map[int]bool{}
		any := rapid.IntRange(0, len(requests)-1)
		t.Repeat(map[string]func(*rapid.T){
			"offer": func(t *rapid.T) {
				i := any.Draw(t, "request")
				state, ok := o.Offer(&requests[i], now)
				if may := offers[i] < maxOffers && !dismissed[i] && now.Before(requests[i].Expires); ok != may {
					t.Fatalf("offered: %t, want %t", ok, may)
				}
				if ok {
					offers[i]++
					m := &made{of: i, state: state, at: now}
					states, newest[i] = append(states, m), m
				}
			},
			"dismiss": func(t *rapid.T) {
				i := any.Draw(t, "request")
				o.Dismiss(requests[i].ID)
				dismissed[i] = dismissed[i] || offers[i] > 0
			},
			"time": func(t *rapid.T) {
				now = now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 6 * time.Minute}).Draw(t, "passes"))
			},
			"take": func(t *rapid.T) {
				if len(states) == 0 {
					t.Skip("no state is out")
				}
				m := states[rapid.IntRange(0, len(states)-1).Draw(t, "state")]
				by := rapid.SampledFrom([]int{m.of, m.of, any.Draw(t, "by")}).Draw(t, "who")
				id, err := o.Take(m.state, &requests[by].Binding, now)
				may := by == m.of && !m.used && newest[m.of] == m && now.Before(m.at.Add(offerLife))
				if (err == nil) != may || err == nil && id != requests[m.of].ID {
					t.Fatalf("%+v by %d: %q, %v, want %t", m, by, id, err, may)
				}
				if by == m.of && newest[m.of] == m {
					m.used = true // also when it came too late
				}
			},
		})
	})
}

// No text but a state that was given opens anything.
func FuzzTake(f *testing.F) {
	o, r, state := offered(f)
	f.Add(state + "A")
	f.Add(base64.RawURLEncoding.EncodeToString([]byte("a001")))
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if s == state {
			return
		}
		if id, err := o.Take(s, &r.Binding, noon); err == nil {
			t.Fatalf("%q opens %q", s, id)
		}
	})
}
