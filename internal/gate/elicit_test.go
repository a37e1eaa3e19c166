package gate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/gate"
	"github.com/ostiary/ostiary/internal/store"
)

// eliciting lets the people behind clients decide as long as on says so.
func eliciting(t testing.TB, s store.Store, on *bool) *fixture {
	f := newFixture(t, s, false)
	var err error
	if f.options.Offers, err = approval.NewOffers(); err != nil {
		t.Fatal(err)
	}
	f.options.Elicit = func(string) bool { return *on }
	f.rules.Entitled = func(decider string, r *approval.Request) bool {
		return decider == "operator" || *on && decider == approval.ByElicitation(r.Principal)
	}
	f.options.Hold = 5 * time.Millisecond
	f.remake(t)
	return f
}

// Property: whatever the people behind clients, the operator and the clients themselves do, with states that are answered,
// replayed, swapped and made up: of each call no more go out than somebody has agreed to, where a yes counts once for the
// state that it came with, and for nothing where policy lets those people decide nothing; and a call that brings a no is
// never sent.
func TestR7_6_NoCallWithoutAYes(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	on := true
	f := eliciting(t, s, &on)
	f.rules.PerMinute, f.rules.WaitingPrincipal, f.rules.Waiting, f.rules.Declines, f.rules.CoolDown, f.rules.ExpiryRest = 1e6, 1e6, 1e6, 1e6, 0, 0
	type key struct{ principal, args string }
	sent, agreed := map[key]int{}, map[key]int{}
	var now key // of the call in work
	f.answer = func(_ context.Context, c gate.Cleared) call.Answer {
		if string(c.Arguments()) != now.args {
			t.Errorf("%s was sent for %+v", c.Arguments(), now)
		}
		sent[now]++
		return call.Answer{Delivery: call.Confirmed, Result: []byte(`{"content":[]}`), ResultType: "complete"}
	}
	type question struct {
		of    key
		state string
		yes   bool // somebody has said yes with it, and that may count
	}
	var questions []*question
	consents := rapid.SampledFrom([]call.Consent{call.Agreed, call.Agreed, call.Disagreed, call.Dismissed, call.NoConsent})
	replayed, through := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		anyKey := func(rt *rapid.T) key {
			return key{rapid.SampledFrom([]string{"alice", "bob"}).Draw(rt, "principal"), fmt.Sprintf(`{"n":%d}`, rapid.IntRange(0, 2).Draw(rt, "n"))}
		}
		place := func(rt *rapid.T, k key, change func(*call.Request)) call.Reply {
			r := call.Request{Principal: call.Principal{ID: k.principal}, Session: "s", Export: "x", Tool: "aur.mcp.p.ask", Arguments: []byte(k.args)}
			change(&r)
			now = k
			before := sent[k]
			reply := f.gate.Call(context.Background(), r)
			if went := sent[k] - before; went > 1 || went == 1 != (reply.Outcome.Delivery == call.Confirmed) {
				rt.Fatalf("%d sent: %+v", went, reply.Outcome)
			}
			if reply.Question != nil {
				if !on || !r.AskBack || reply.State == "" || reply.Outcome.Status != call.InputRequired || strings.Contains(reply.Question.Message, "[rule") {
					rt.Fatalf("asked back: %+v", reply)
				}
				questions = append(questions, &question{of: k, state: reply.State})
			}
			return reply
		}
		steps := map[string]func(*rapid.T){
			"modern": func(rt *rapid.T) { place(rt, anyKey(rt), func(r *call.Request) { r.AskBack = true }) },
			"answer": func(rt *rapid.T) {
				if len(questions) == 0 {
					return
				}
				q := questions[max(0, len(questions)-1-rapid.IntRange(0, 3).Draw(rt, "which"))]
				k, c, state := q.of, consents.Draw(rt, "consent"), q.state
				switch rapid.IntRange(0, 9).Draw(rt, "lie") {
				case 0:
					k = anyKey(rt)
				case 1:
					state = "x" + state
				}
				if k == q.of && state == q.state && c == call.Agreed && on {
					if q.yes {
						replayed++
					} else {
						q.yes = true
						agreed[k]++
					}
				}
				before := sent[k]
				reply := place(rt, k, func(r *call.Request) { r.AskBack, r.Answered = true, &call.Answered{State: state, Consent: c} })
				if c == call.Disagreed && sent[k] != before {
					rt.Fatalf("sent after a no: %+v", reply.Outcome)
				}
			},
			"legacy": func(rt *rapid.T) {
				k, c := anyKey(rt), consents.Draw(rt, "consent")
				asked := false
				before := sent[k]
				reply := place(rt, k, func(r *call.Request) {
					r.Ask = func(context.Context, call.Question) call.Consent {
						asked = true
						return c
					}
				})
				if asked && !on {
					rt.Fatal("somebody was asked whom policy lets decide nothing")
				}
				if asked && c == call.Agreed {
					agreed[k]++
				}
				if asked && c == call.Disagreed && sent[k] != before {
					rt.Fatalf("sent after a no: %+v", reply.Outcome)
				}
			},
			"operator": func(rt *rapid.T) {
				var waiting []approval.Request
				if err := s.View(context.Background(), func(v store.View) (err error) {
					waiting, err = approval.Pending(v, time.Now())
					return err
				}); err != nil {
					rt.Fatal(err)
				}
				if len(waiting) == 0 {
					return
				}
				r := waiting[rapid.IntRange(0, len(waiting)-1).Draw(rt, "request")]
				yes := rapid.Bool().Draw(rt, "yes")
				scope := map[bool]approval.Decision{true: approval.ApprovedOnce, false: approval.Rejected}[yes]
				if err := f.decide(r.ID, scope); err != nil {
					rt.Fatal(err)
				}
				if yes {
					agreed[key{r.Principal, strings.NewReplacer(" ", "", "\n", "").Replace(r.Arguments)}]++
				}
			},
			"policy": func(*rapid.T) { on = !on },
		}
		for range rapid.IntRange(1, 10).Draw(rt, "steps") {
			steps[rapid.SampledFrom([]string{"modern", "modern", "answer", "answer", "answer", "legacy", "legacy", "operator", "policy"}).Draw(rt, "step")](rt)
			for k, n := range sent {
				if n > agreed[k] {
					rt.Fatalf("%+v was sent %d times, and agreed to %d times", k, n, agreed[k])
				}
			}
		}
		on = true
	})
	for _, n := range sent {
		through += n
	}
	if through == 0 || replayed == 0 {
		t.Errorf("%d calls went through, %d states were replayed: the property says little", through, replayed)
	}
}

// R7.6: what a form cannot show, nobody agrees to in it: neither a call whose arguments the firewall wants looked at nor one
// in whose arguments something is redacted is put to the person behind the client, in either way. It waits for the operator.
func TestR7_6_WhatIsRedactedIsNotOffered(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	on := true
	f := eliciting(t, s, &on)
	const secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a" // made up, of the shape of a token
	of := func(a firewall.Action) firewall.Rules {
		return firewall.Rules{Codes: map[firewall.Code]firewall.Action{"provider_token": a, "known_secret": a}}
	}
	asks, accepts := of(firewall.Ask), of(firewall.Accept)
	for name, c := range map[string]struct {
		tool    call.ToolID
		args    string
		rules   firewall.Rules
		offered bool
	}{
		"plain":                      {"aur.mcp.p.ask", `{"n":1}`, accepts, true},
		"the firewall asks":          {"aur.mcp.p.write", `{"text":"` + secret + `"}`, asks, false},
		"the firewall asks as well":  {"aur.mcp.p.ask", `{"text":"a ` + secret + `"}`, asks, false},
		"accepted, and not shown":    {"aur.mcp.p.ask", `{"text":"b ` + secret + `"}`, accepts, false},
		"accepted, a name not shown": {"aur.mcp.p.ask", `{"` + secret + `":1}`, accepts, false},
	} {
		f.options.FirewallRules = func(*call.Descriptor) firewall.Rules { return c.rules }
		f.remake(t)
		for _, modern := range []bool{false, true} {
			asked := false
			r := call.Request{Principal: alice, Session: "s", Export: "x", Tool: c.tool, Arguments: []byte(c.args), AskBack: modern}
			if !modern {
				r.Ask = func(context.Context, call.Question) call.Consent { asked = true; return call.NoConsent }
			}
			reply := f.gate.Call(t.Context(), r)
			if asked = asked || reply.Question != nil; asked != c.offered {
				t.Errorf("%s, modern client %v: asked %v: %+v", name, modern, asked, reply.Outcome)
			}
			if reply.Outcome.Delivery != call.NotSent || reply.Outcome.Code != call.CodeApprovalPending {
				t.Errorf("%s, modern client %v: %+v", name, modern, reply.Outcome)
			}
		}
	}
}

// F-64: a panic of the edge that asks somebody is no yes, and ends nothing but the question.
func TestF64_APanicWhileAskingIsNoYes(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	on := true
	f := eliciting(t, s, &on)
	asked := false
	r := call.Request{Principal: alice, Session: "s", Export: "x", Tool: "aur.mcp.p.ask", Arguments: []byte(`{"n":1}`),
		Ask: func(context.Context, call.Question) call.Consent { asked = true; panic("the edge") }}
	if o := f.gate.Call(t.Context(), r).Outcome; !asked || o.Delivery != call.NotSent || o.Code != call.CodeApprovalPending || f.calls.Load() != 0 {
		t.Errorf("asked %v: %+v", asked, o)
	}
}
