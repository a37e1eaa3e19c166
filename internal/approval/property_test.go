package approval

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
)

// Whatever callers, reviewers and the clock do: no call is spent without a grant that an entitled person other than the
// caller gave for exactly it, or for its tool and session; a grant for one call is spent at most once; a request that was
// declined, expired or revoked never yields one; the first decision stands; and nothing leads back to an earlier state. A
// request to release a result is never spent by a call, and is never GRANTED: it is done once somebody has agreed.
func TestR7_5_Invariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture()
		f.Entitled = func(decider string, _ *Request) bool { return decider != "mallory" }
		now := noon
		var calls []Call
		for i := range 4 {
			c := aCall()
			c.Arguments = fmt.Appendf(nil, `{"i":%d}`, i/2)
			if i%2 == 1 {
				c.Principal = "carol"
			}
			calls = append(calls, c)
		}
		// The model: what was granted, to what, by whom; what was decided.
		type grant struct {
			call  int
			scope Decision
			until time.Time
		}
		grants, spent, first, last := map[ID]grant{}, map[ID]int{}, map[ID]Decision{}, map[ID]State{}
		asked, results := map[ID]int{}, map[ID]bool{}
		var requests []ID
		ids := func(t *rapid.T) ID { // the requests that there were, the latest most of all
			if n := len(requests); n > 0 {
				return requests[max(0, n-1-rapid.IntRange(0, 3).Draw(t, "id"))]
			}
			return "none"
		}
		aCallNo := rapid.IntRange(0, len(calls)-1)
		who := rapid.SampledFrom([]string{"bob", "bob", "eve", "alice", "carol", "mallory", ""})
		decided := func(t *rapid.T, id ID, d Decision, by string, err error) {
			if err != nil {
				return
			}
			if first[id] != Undecided {
				t.Fatalf("%s was decided as %s, and then as %s", id, first[id], d)
			}
			if by == calls[asked[id]].Principal || by == "mallory" || by == "" {
				t.Fatalf("%q decides on a request of %s", by, calls[asked[id]].Principal)
			}
			first[id] = d
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				i := aCallNo.Draw(t, "call")
				r, err := f.ask(calls[i], now)
				if _, refused := errors.AsType[*Refusal](err); err != nil && !refused {
					t.Fatal(err)
				}
				if err == nil && r.ID == ID(fmt.Sprintf("a%03d", f.n%1000)) {
					asked[r.ID] = i
					requests = append(requests, r.ID)
				}
			},
			"ask to release": func(t *rapid.T) {
				i := aCallNo.Draw(t, "call")
				c := calls[i]
				f.n++
				c.ID = call.ID(fmt.Sprint("r", f.n))
				var r Request
				err := f.update(func(tx Tx) (err error) {
					r, err = f.AskRelease(tx, Question{Call: c, Provider: "files"}, "ev-"+string(c.ID), now)
					return err
				})
				if _, refused := errors.AsType[*Refusal](err); err != nil && !refused {
					t.Fatal(err)
				}
				if err == nil {
					asked[r.ID], results[r.ID] = i, true
					requests = append(requests, r.ID)
				}
			},
			"settle": func(t *rapid.T) {
				id, released := ids(t), rapid.Bool().Draw(t, "released")
				var ok bool
				if err := f.update(func(tx Tx) (err error) { _, ok, err = f.Settle(tx, id, released, "eve", "", now); return err }); err != nil {
					t.Fatal(err)
				}
				if ok {
					if !results[id] {
						t.Fatalf("%s asks to let a call out, and was settled", id)
					}
					decided(t, id, ApprovedOnce, "eve", nil)
				}
			},
			"grant": func(t *rapid.T) {
				id, by := ids(t), who.Draw(t, "who")
				scope := rapid.SampledFrom([]Decision{ApprovedOnce, ApprovedForSession}).Draw(t, "scope")
				err := f.grant(id, scope, by, now)
				decided(t, id, scope, by, err)
				if err == nil && !results[id] {
					life := f.OnceLife
					if scope == ApprovedForSession {
						life = f.SessionLife
					}
					grants[id] = grant{asked[id], scope, now.Add(life)}
				}
			},
			"decline": func(t *rapid.T) {
				id, by := ids(t), who.Draw(t, "who")
				decided(t, id, Rejected, by, f.decline(id, by, now))
			},
			"revoke": func(t *rapid.T) {
				id := ids(t)
				if f.update(func(tx Tx) error { _, err := f.Revoke(tx, id, "eve", "", now); return err }) == nil {
					delete(grants, id)
				}
			},
			"revoke all": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") > 0 {
					return
				}
				var revoked []Request
				if err := f.update(func(tx Tx) (err error) { revoked, err = f.RevokeAll(tx, "eve", "", now); return err }); err != nil {
					t.Fatal(err)
				}
				for _, r := range revoked {
					delete(grants, r.ID)
				}
				for id, g := range grants {
					if now.Before(g.until) && spent[id] == 0 {
						t.Fatalf("%s can still be spent", id)
					}
				}
			},
			"expire": func(t *rapid.T) {
				for _, r := range f.expire(now) {
					if r.State == Expired {
						first[r.ID] = TimedOut
					}
				}
			},
			"time": func(t *rapid.T) {
				now = now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Second, 5 * time.Minute, 10 * time.Minute, 9 * time.Hour}).Draw(t, "passes"))
			},
			"spend": func(t *rapid.T) {
				id := ids(t)
				i := rapid.SampledFrom([]int{asked[id], asked[id], aCallNo.Draw(t, "call")}).Draw(t, "by")
				if f.spend(id, calls[i], now) != nil {
					return
				}
				g, ok := grants[id]
				if !ok || !now.Before(g.until) {
					t.Fatalf("%s is spent without a grant", id)
				}
				spent[id]++
				want, got := calls[g.call], calls[i]
				if g.scope == ApprovedOnce && (spent[id] > 1 || string(want.Arguments) != string(got.Arguments)) || want.Principal != got.Principal {
					t.Fatalf("%s (%s, for call %d) is spent by call %d, %d times", id, g.scope, g.call, i, spent[id])
				}
			},
			"": func(t *rapid.T) {
				open := map[call.Digest]ID{}
				for id, r := range f.rows {
					if from := last[id]; from != r.State && (from.Ended() || from == Granted && r.State == Waiting) {
						t.Fatalf("%s went from %s to %s", id, from, r.State)
					}
					last[id] = r.State
					if results[id] && (r.State == Granted || r.State == Spent && r.Decision != ApprovedOnce) {
						t.Fatalf("%s asks to release a result and is %s, %s", id, r.State, r.Decision)
					}
					if r.State == Waiting && !r.over(now) {
						if other, ok := open[r.CallDigest]; ok {
							t.Fatalf("%s and %s wait for the same call", id, other)
						}
						open[r.CallDigest] = id
					}
				}
			},
		})
	})
}

// One byte changed in the call changes the digest, in whatever part of it.
func TestA32_OneByteChangesTheDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00\"é")), 1, 8, -1)
		c := Call{Principal: word.Draw(t, "principal"), Session: word.Draw(t, "session"), Tool: call.ToolID(word.Draw(t, "tool")),
			Attachment: word.Draw(t, "attachment"), Arguments: fmt.Appendf(nil, `{"k":[%d]}`, rapid.Int64().Draw(t, "n"))}
		before, err := Bind(c)
		if err != nil {
			t.Fatal(err)
		}
		flip := func(s string) string {
			b := []byte(s)
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			return string(b)
		}
		d := c
		switch rapid.IntRange(0, 9).Draw(t, "part") {
		case 0:
			d.Principal = flip(d.Principal)
		case 1:
			d.Session = flip(d.Session)
		case 2:
			d.Tool = call.ToolID(flip(string(d.Tool)))
		case 3:
			d.Attachment = flip(d.Attachment)
		case 4:
			d.Descriptor[rapid.IntRange(0, 31).Draw(t, "at")]++
		case 5:
			d.Policy[rapid.IntRange(0, 31).Draw(t, "at")]++
		case 6:
			d.Origin[rapid.IntRange(0, 31).Draw(t, "at")]++
		case 7:
			d.Effect = call.EffectClass(rapid.IntRange(1, 4).Draw(t, "effect"))
		case 8: // a byte moves from one part to the next
			d.Principal, d.Session = c.Principal+c.Session[:1], c.Session[1:]
		case 9:
			d.Arguments = []byte(flip(string(c.Arguments)))
		}
		after, err := Bind(d)
		if err != nil {
			return // no longer a JSON object: it never gets so far
		}
		if after.CallDigest == before.CallDigest {
			t.Fatalf("%+v and %+v have one digest", c, d)
		}
	})
}

func TestBindCanonical(t *testing.T) {
	bind := func(args, meta string) call.Digest {
		c := aCall()
		c.Arguments, c.Meta = []byte(args), []byte(meta)
		if args == "" {
			c.Arguments = nil
		}
		if meta == "" {
			c.Meta = nil
		}
		b, err := Bind(c)
		if err != nil {
			t.Fatalf("%s, %s: %v", args, meta, err)
		}
		return b.CallDigest
	}
	base := bind(`{"a":1,"b":"x"}`, "")
	for _, same := range [][2]string{{` { "b" : "\u0078", "a":1 } `, ""}, {`{"a":1,"b":"x"}`, `{}`}, {`{"a":1,"b":"x"}`, `{"traceparent":"00-1-2-01","tracestate":"x"}`}} {
		if bind(same[0], same[1]) != base {
			t.Errorf("%v is another call", same)
		}
	}
	for _, other := range [][2]string{{`{"a":1.0,"b":"x"}`, ""}, {`{"a":1e0,"b":"x"}`, ""}, {`{"a":1,"b":"x "}`, ""}, {`{"a":1,"b":"x","c":null}`, ""}, {`{"a":1,"b":"x"}`, `{"k":1}`}, {`{}`, `{"a":1,"b":"x"}`}, {"", ""}} {
		if bind(other[0], other[1]) == base {
			t.Errorf("%v is the same call", other)
		}
	}
	if bind("", "") == bind("{}", "") {
		t.Error("no arguments and empty arguments are sent differently, and are the same call here")
	}
	if bind(`{"n":9007199254740993.0}`, "") == bind(`{"n":9007199254740992.0}`, "") {
		t.Error("numbers are rounded")
	}
	for _, bad := range []string{`{"a":1,"a":2}`, `{`, "{\"a\":\"\xff\"}"} {
		c := aCall()
		c.Arguments = []byte(bad)
		if _, err := Bind(c); err == nil {
			t.Errorf("%q is bound", bad)
		}
	}
}

// The digest of arguments is that of their meaning: written differently they are equal, and equal digests mean equal
// canonical bytes.
func FuzzBind(f *testing.F) {
	f.Add([]byte(`{"a":1}`), []byte(`{"a":1.0}`))
	f.Add([]byte(`{"a":"\u00e9"}`), []byte(`{"a":"é"}`))
	f.Fuzz(func(t *testing.T, x, y []byte) {
		c, d := aCall(), aCall()
		c.Arguments, d.Arguments = x, y
		bc, errC := Bind(c)
		bd, errD := Bind(d)
		if errC != nil || errD != nil {
			return
		}
		cx, _ := canonical(x)
		cy, _ := canonical(y)
		if (bc.CallDigest == bd.CallDigest) != (string(cx) == string(cy)) {
			t.Fatalf("%q and %q", x, y)
		}
		again := c
		again.Arguments = cx
		if ba, err := Bind(again); err != nil || ba.CallDigest != bc.CallDigest {
			t.Fatalf("the canonical form %q has another digest, %v", cx, err)
		}
		if _, err := Describe(c, nil); (err == nil) != (cx[0] == '{') {
			t.Fatalf("Describe(%q): %v", x, err)
		}
	})
}
