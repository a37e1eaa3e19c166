package approval

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
)

func code(t *testing.T, err error) call.Code {
	t.Helper()
	if f, ok := errors.AsType[*Refusal](err); ok {
		return f.Code
	}
	t.Fatalf("got %v, want a refusal", err)
	return ""
}

// R7.4, R7.5: ask, join, grant, spend once, ask anew.
func TestR7_5_OnceAndNoMore(t *testing.T) {
	f, c := newFixture(), aCall()
	a, err := f.ask(c, noon)
	if err != nil || a.State != Waiting || a.ID != "a001" {
		t.Fatalf("asked: %+v, %v", a, err)
	}
	again := c
	again.ID, again.Arguments = "c2", []byte(` { "n": 9007199254740993, "path": "/tmp/\u0078" } `)
	if b, err := f.ask(again, noon.Add(time.Second)); err != nil || b.ID != a.ID {
		t.Fatalf("a repeat makes request %q, %v: it should join %q", b.ID, err, a.ID)
	}
	if err := f.spend(a.ID, again, noon); code(t, err) != call.CodeApprovalPending {
		t.Errorf("spent before it was granted: %v", err)
	}
	if err := f.grant(a.ID, ApprovedOnce, "bob", noon.Add(2*time.Second)); err != nil {
		t.Fatal(err)
	}
	if b, err := f.ask(again, noon.Add(3*time.Second)); err != nil || b.ID != a.ID || b.State != Granted {
		t.Fatalf("the grant is not found: %+v, %v", b, err)
	}
	if err := f.spend(a.ID, again, noon.Add(4*time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := f.rows[a.ID]; got.State != Spent || got.SpentBy != "c2" || got.Decider != "bob" {
		t.Errorf("spent: %+v", got)
	}
	if err := f.spend(a.ID, again, noon.Add(4*time.Second)); code(t, err) != call.CodeApprovalPending {
		t.Errorf("spent twice: %v", err)
	}
	if b, err := f.ask(c, noon.Add(5*time.Second)); err != nil || b.ID == a.ID || b.State != Waiting {
		t.Errorf("after it was spent: %+v, %v: the call should be asked for anew", b, err)
	}
}

// R7.5, A-32: a grant does not hold for a call that differs in anything.
func TestA32_MismatchIsAskedAnew(t *testing.T) {
	for field, change := range map[string]func(*Call){
		"principal":    func(c *Call) { c.Principal = "mallory" },
		"session":      func(c *Call) { c.Session = "s2" },
		"tool":         func(c *Call) { c.Tool = "aur.mcp.files.delete" },
		"descriptor":   func(c *Call) { c.Descriptor[31]++ },
		"effect class": func(c *Call) { c.Effect = call.SensitiveRead },
		"policy":       func(c *Call) { c.Policy[0]++ },
		"attachment":   func(c *Call) { c.Attachment = "s2/files" },
		"provider":     func(c *Call) { c.Origin[5]++ },
		"arguments":    func(c *Call) { c.Arguments = []byte(`{"path":"/tmp/x","n":9007199254740992}`) },
	} {
		for _, scope := range []Decision{ApprovedOnce, ApprovedForSession} {
			f, c := newFixture(), aCall()
			a, err := f.ask(c, noon)
			if err == nil {
				err = f.grant(a.ID, scope, "bob", noon)
			}
			if err != nil {
				t.Fatal(err)
			}
			other := aCall()
			change(&other)
			err = f.spend(a.ID, other, noon)
			if field == "arguments" && scope == ApprovedForSession {
				if err != nil {
					t.Errorf("a grant for the session does not hold for other arguments: %v", err)
				}
				continue
			}
			m, ok := errors.AsType[*Mismatch](err)
			if !ok || !slices.Equal(m.Fields, []string{field}) {
				t.Errorf("%s changed, %s: got %v, want a mismatch of it", field, scope, err)
			}
			if b, err := f.ask(other, noon); err != nil || b.ID == a.ID || b.State != Waiting {
				t.Errorf("%s changed: the call is not asked for anew: %+v, %v", field, b, err)
			}
			if got := f.rows[a.ID].State; got != Granted {
				t.Errorf("%s changed: the grant is %s afterwards", field, got)
			}
		}
	}
}

func TestR7_4_ForASession(t *testing.T) {
	f, c := newFixture(), aCall()
	a, _ := f.ask(c, noon)
	if err := f.grant(a.ID, ApprovedForSession, "bob", noon); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		other := c
		other.Arguments = fmt.Appendf(nil, `{"i":%d}`, i)
		b, err := f.ask(other, noon)
		if err != nil || b.ID != a.ID || f.spend(b.ID, other, noon.Add(time.Hour)) != nil {
			t.Fatalf("call %d: %+v, %v", i, b, err)
		}
	}
	end := noon.Add(f.SessionLife)
	if err := f.spend(a.ID, c, end); code(t, err) != call.CodeApprovalExpired {
		t.Errorf("A-31: a session's grant has no end: %v", err)
	}
	if b, err := f.ask(c, end); err != nil || b.ID == a.ID {
		t.Errorf("after its end: %+v, %v", b, err)
	}
	c.Session = ""
	b, _ := f.ask(c, noon)
	if err := f.grant(b.ID, ApprovedForSession, "bob", noon); !errors.Is(err, ErrNoSession) {
		t.Errorf("without a session: %v", err)
	}
	if err := f.grant(b.ID, Rejected, "bob", noon); !errors.Is(err, ErrScope) {
		t.Errorf("granted as REJECTED: %v", err)
	}
}

func TestRevoke(t *testing.T) {
	f, c := newFixture(), aCall()
	a, _ := f.ask(c, noon)
	revoke := func(who string) error {
		return f.update(func(tx Tx) error { _, err := f.Revoke(tx, a.ID, who, "enough", noon); return err })
	}
	if err := revoke("bob"); !errors.Is(err, ErrNotGranted) {
		t.Errorf("revoked before it was granted: %v", err)
	}
	_ = f.grant(a.ID, ApprovedForSession, "bob", noon)
	if err := revoke("alice"); !errors.Is(err, ErrNotEntitled) {
		t.Errorf("revoked by the requester: %v", err)
	}
	if err := revoke("eve"); err != nil {
		t.Fatal(err)
	}
	if err := f.spend(a.ID, c, noon); code(t, err) != call.CodeApprovalDeclined {
		t.Errorf("spent after it was revoked: %v", err)
	}
	if _, err := f.ask(c, noon); code(t, err) != call.CodeApprovalDeclined {
		t.Errorf("asked at once after it was revoked: %v", err)
	}
}

// All grants at once: exactly those that can still be spent, and that the decider may decide on.
func TestRevokeAll(t *testing.T) {
	f := newFixture()
	var ids []ID
	for i, who := range []string{"alice", "carol", "bob", "dave"} {
		c := aCall()
		c.Principal = who
		r, err := f.ask(c, noon.Add(time.Duration(i)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	for i, id := range ids[:3] {
		decider := "bob"
		if i == 2 {
			decider = "eve" // it is bob's own call
		}
		if err := f.grant(id, ApprovedOnce, decider, noon.Add(time.Duration(i)*f.OnceLife/4)); err != nil {
			t.Fatal(err)
		}
	}
	var revoked []Request
	if err := f.update(func(tx Tx) (err error) {
		revoked, err = f.RevokeAll(tx, "bob", "enough", noon.Add(f.OnceLife))
		return err
	}); err != nil || len(revoked) != 1 || revoked[0].ID != ids[1] || revoked[0].Reason != "enough" {
		t.Errorf("revoked %+v, %v", revoked, err)
	}
	for i, want := range []State{Granted, Revoked, Granted, Waiting} {
		if got := f.rows[ids[i]].State; got != want {
			t.Errorf("request %d is %s, want %s", i, got, want)
		}
	}
}

// F-53: of all that decide at once exactly one wins; who asks does not decide.
func TestF53_Races(t *testing.T) {
	f, c := newFixture(), aCall()
	a, _ := f.ask(c, noon)
	for _, who := range []string{"alice", "mallory", ""} {
		if err := f.grant(a.ID, ApprovedOnce, who, noon); !errors.Is(err, ErrNotEntitled) {
			t.Errorf("%q grants: %v", who, err)
		}
		if err := f.decline(a.ID, who, noon); !errors.Is(err, ErrNotEntitled) {
			t.Errorf("%q declines: %v", who, err)
		}
	}
	f.Entitled = func(string, *Request) bool { return true }
	if err := f.grant(a.ID, ApprovedOnce, "alice", noon); !errors.Is(err, ErrNotEntitled) {
		t.Errorf("the requester decides on her own request: %v", err)
	}
	var wg sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wg.Go(func() {
			if who := fmt.Sprint("decider", i); i%2 == 0 {
				errs[i] = f.grant(a.ID, ApprovedOnce, who, noon)
			} else {
				errs[i] = f.decline(a.ID, who, noon)
			}
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, ErrDecided) {
			t.Errorf("got %v, want ErrDecided", err)
		}
	}
	if won != 1 {
		t.Errorf("%d decisions were taken", won)
	}

	// Double spend.
	c.Arguments = nil
	b, _ := f.ask(c, noon)
	if err := f.grant(b.ID, ApprovedOnce, "bob", noon); err != nil {
		t.Fatal(err)
	}
	for i := range errs {
		wg.Go(func() { errs[i] = f.spend(b.ID, c, noon) })
	}
	wg.Wait()
	if n := len(slices.DeleteFunc(errs, func(err error) bool { return err != nil })); n != 1 {
		t.Errorf("spent %d times", n)
	}
}

// R7.5: a decider who is no longer entitled when the grant is spent is none.
func TestR7_5_DeciderIsStillEntitled(t *testing.T) {
	f, c := newFixture(), aCall()
	a, _ := f.ask(c, noon)
	_ = f.grant(a.ID, ApprovedOnce, "bob", noon)
	f.Entitled = func(who string, _ *Request) bool { return who == "eve" }
	if err := f.spend(a.ID, c, noon); code(t, err) != call.CodeApprovalPending {
		t.Errorf("spent: %v", err)
	}
	if b, err := f.ask(c, noon); err != nil || b.State != Waiting || b.ID == a.ID {
		t.Errorf("asked: %+v, %v", b, err)
	}
	f.Entitled = nil
	if err := f.grant("a002", ApprovedOnce, "eve", noon); !errors.Is(err, ErrNotEntitled) {
		t.Errorf("without a rule somebody decides: %v", err)
	}
}

func TestR7_5_DeclinedAndExpired(t *testing.T) {
	f, c := newFixture(), aCall()
	a, _ := f.ask(c, noon)
	if err := f.decline(a.ID, "bob", noon); err != nil {
		t.Fatal(err)
	}
	if err := f.spend(a.ID, c, noon); code(t, err) != call.CodeApprovalDeclined {
		t.Errorf("spent what was declined: %v", err)
	}
	if _, err := f.ask(c, noon.Add(f.CoolDown-1)); code(t, err) != call.CodeApprovalDeclined {
		t.Errorf("A-31: asked again at once: %v", err)
	}
	b, err := f.ask(c, noon.Add(f.CoolDown))
	if err != nil || b.ID == a.ID {
		t.Fatalf("after the cool-down: %+v, %v", b, err)
	}
	late := b.Expires
	if err := f.grant(b.ID, ApprovedOnce, "bob", late); !errors.Is(err, ErrOver) {
		t.Errorf("F-53: granted after its expiry: %v", err)
	}
	if err := f.spend(b.ID, c, late); code(t, err) != call.CodeApprovalExpired {
		t.Errorf("spent after its expiry: %v", err)
	}
	if _, err := f.ask(c, late); code(t, err) != call.CodeApprovalExpired {
		t.Errorf("asked at its expiry: %v", err)
	}
	if ended := f.expire(late); len(ended) != 1 || ended[0].State != Expired || ended[0].Decision != TimedOut {
		t.Errorf("ended %+v", ended)
	}
	if err := f.grant(b.ID, ApprovedOnce, "bob", noon); !errors.Is(err, ErrOver) {
		t.Errorf("granted once it is EXPIRED: %v", err)
	}
	d, err := f.ask(c, late.Add(f.ExpiryRest))
	if err != nil || d.State != Waiting {
		t.Fatalf("asked later: %+v, %v", d, err)
	}
	_ = f.grant(d.ID, ApprovedOnce, "bob", d.Created)
	if err := f.spend(d.ID, c, d.Created.Add(f.OnceLife)); code(t, err) != call.CodeApprovalExpired {
		t.Errorf("spent after the grant's end: %v", err)
	}
	if ended := f.expire(d.Created.Add(f.OnceLife)); len(ended) != 1 || ended[0].State != Lapsed || ended[0].Decider != "bob" {
		t.Errorf("ended %+v", ended)
	}
	if err := f.grant("nothing", ApprovedOnce, "bob", noon); !errors.Is(err, ErrUnknown) {
		t.Errorf("granted what does not exist: %v", err)
	}
}

func TestR7_4_PolicyBlocks(t *testing.T) {
	f, c := newFixture(), aCall()
	a, _ := f.ask(c, noon)
	if err := f.update(func(tx Tx) error { _, err := f.Block(tx, a.ID, "the tool is denied now", noon); return err }); err != nil {
		t.Fatal(err)
	}
	if got := f.rows[a.ID]; got.Decision != PolicyBlocked || got.State != Declined || got.Decider != "" {
		t.Errorf("%+v", got)
	}
	if err := f.grant(a.ID, ApprovedOnce, "bob", noon); !errors.Is(err, ErrDecided) {
		t.Errorf("granted: %v", err)
	}
}

// F-09: whatever the clock does, nothing that has expired is accepted.
func TestF09_ClockJumps(t *testing.T) {
	const life = 10 * time.Minute
	for _, c := range []struct {
		name         string
		wall, steady time.Duration
		over         bool
	}{
		{"in time", 5 * time.Minute, 5 * time.Minute, false},
		{"at its end", life, life, true},
		{"set back by an hour", -55 * time.Minute, 5 * time.Minute, false},
		{"set back by an hour, and too late", -50 * time.Minute, life, true},
		{"set back by ten years, and too late", -87600 * time.Hour, life, true},
		{"put forward by ten years", 87600 * time.Hour, 5 * time.Minute, true},
		{"the machine slept", time.Hour, time.Minute, true},
		{"read from disk, before it was made", -time.Second, -time.Second, true},
	} {
		if got := outlived(c.wall, c.steady, life); got != c.over {
			t.Errorf("%s: over is %t", c.name, got)
		}
	}
	// With the monotonic clock's reading, and without it as after a restart.
	now := time.Now()
	for _, made := range []time.Time{now, now.Round(0)} {
		r := Request{Created: made, Expires: made.Add(life)}
		if r.over(now.Add(life-1)) || !r.over(now.Add(life)) || made == now.Round(0) && !r.over(now.Add(-time.Minute)) {
			t.Errorf("made at %s", made)
		}
	}
	f := newFixture()
	a, _ := f.ask(aCall(), noon)
	if err := f.grant(a.ID, ApprovedOnce, "bob", noon); err != nil {
		t.Fatal(err)
	}
	for _, jump := range []time.Duration{-time.Hour, time.Hour, -87600 * time.Hour, 87600 * time.Hour} {
		if err := f.spend(a.ID, aCall(), noon.Add(jump)); err == nil {
			t.Errorf("spent with the clock %s off", jump)
		}
	}
	// A row from a clock that was years ahead keeps nobody from asking for years.
	f.rows["a001"] = Request{ID: "a001", Binding: a.Binding, State: Declined, Decided: noon.AddDate(10, 0, 0), Created: noon.AddDate(10, 0, 0)}
	if b, err := f.ask(aCall(), noon); err != nil || b.State != Waiting {
		t.Errorf("%+v, %v", b, err)
	}
}

// a hundred requests in a minute do not reach a reviewer.
func TestA31_ReviewersAreNotWornOut(t *testing.T) {
	f := newFixture()
	call100 := func(principal string) (made int, last error) {
		for i := range 100 {
			c := aCall()
			c.Principal, c.Arguments = principal, fmt.Appendf(nil, `{"i":%d}`, i)
			if _, err := f.ask(c, noon.Add(time.Duration(i)*time.Millisecond)); err == nil {
				made++
			} else {
				last = err
			}
		}
		return made, last
	}
	if made, err := call100("alice"); made != f.WaitingPrincipal || code(t, err) != call.CodeOverloaded {
		t.Errorf("%d requests of one caller wait, %v", made, err)
	}
	if c := aCall(); true {
		c.Arguments = []byte(`{"i":3}`)
		if r, err := f.ask(c, noon.Add(time.Second)); err != nil || r.State != Waiting {
			t.Errorf("a repeat does not join: %v", err)
		}
	}
	if made, _ := call100("carol"); made == 0 {
		t.Error("one caller keeps another from asking")
	}
	for id := range f.rows { // decided on at once: the rate is bounded all the same
		_ = f.decline(id, "bob", noon.Add(time.Second))
	}
	c := aCall()
	c.Arguments = []byte(`{"other":1}`)
	if _, err := f.ask(c, noon.Add(2*time.Second)); code(t, err) != call.CodeOverloaded {
		t.Errorf("after many were declined: %v", err)
	}
	if _, err := f.ask(c, noon.Add(f.CoolDown+time.Minute)); err != nil {
		t.Errorf("after the cool-down: %v", err)
	}
	f = newFixture()
	f.Waiting = 3
	for i := range 5 {
		c := aCall()
		c.Principal = fmt.Sprint("p", i)
		if _, err := f.ask(c, noon); (err == nil) != (i < 3) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	f = newFixture()
	f.WaitingPrincipal = 1000
	if made, err := call100("dave"); made != f.PerMinute || code(t, err) != call.CodeOverloaded {
		t.Errorf("%d requests in a minute, %v", made, err)
	}
}

func TestExpireForgets(t *testing.T) {
	f := newFixture()
	f.KeepMost, f.CoolDown = 3, time.Hour
	for i := range 5 {
		c := aCall()
		c.Principal = fmt.Sprint("p", i)
		a, err := f.ask(c, noon.Add(time.Duration(i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.decline(a.ID, "bob", noon.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	f.expire(noon.Add(time.Minute))
	if _, ok := f.rows["a003"]; len(f.rows) != 3 || !ok {
		t.Errorf("%d rows are left, want the newest three", len(f.rows))
	}
	f.expire(noon.Add(f.Keep + time.Minute))
	if len(f.rows) != 0 {
		t.Errorf("%d rows are left after their time", len(f.rows))
	}
}

// Every state but Granted refuses, with its own code.
func TestRefusalOfEachState(t *testing.T) {
	for s, want := range map[State]call.Code{Waiting: call.CodeApprovalPending, Spent: call.CodeApprovalPending, Declined: call.CodeApprovalDeclined,
		Revoked: call.CodeApprovalDeclined, Expired: call.CodeApprovalExpired, Lapsed: call.CodeApprovalExpired, 99: call.CodeApprovalPending} {
		r := Request{State: s}
		if f := r.Refusal(); f == nil || f.Code != want || f.Text == "" {
			t.Errorf("%s: %+v", s, f)
		}
	}
	if f := (&Request{State: Granted}).Refusal(); f != nil {
		t.Errorf("GRANTED: %v", f)
	}
}

func TestPendingAndShow(t *testing.T) {
	f := newFixture()
	a, _ := f.ask(aCall(), noon)
	c := aCall()
	c.Principal = "carol"
	b, _ := f.ask(c, noon.Add(time.Minute))
	list, err := Pending(f, noon.Add(2*time.Minute))
	if err != nil || len(list) != 2 || list[0].ID != a.ID || list[1].ID != b.ID {
		t.Errorf("pending: %+v, %v", list, err)
	}
	if list, _ = Pending(f, a.Expires); len(list) != 1 || list[0].ID != b.ID {
		t.Errorf("pending later: %+v", list)
	}
	if r, err := Show(f, a.ID, a.Expires); err != nil || r.State != Expired {
		t.Errorf("shown as %s, %v", r.State, err)
	}
	if _, err := Show(f, "x", noon); !errors.Is(err, ErrUnknown) {
		t.Errorf("shown: %v", err)
	}
}

// R9.1: the record has what joins it to a call, in canonical order, and neither arguments nor summary.
func TestR9_1_Record(t *testing.T) {
	f := newFixture()
	a, _ := f.ask(aCall(), noon)
	a.Summary, a.Arguments, a.Reason = "secret", "secret", "bad\xff"
	b := a.Record()
	c, err := canonical(b)
	if err != nil || string(c) != string(b) {
		t.Errorf("%s is not canonical: %v", b, err)
	}
	if strings.Contains(string(b), "secret") || !strings.Contains(string(b), a.CallDigest.String()) || !strings.Contains(string(b), `"asked_by":"c1"`) {
		t.Errorf("%s", b)
	}
}

func TestRulesValidate(t *testing.T) {
	r := DefaultRules()
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
	if err := new(Rules).Validate(); err == nil || !strings.Contains(err.Error(), "OnceLife") {
		t.Errorf("got %v", err)
	}
	r.CoolDown = -1
	if r.Validate() == nil {
		t.Error("a negative cool-down is taken")
	}
}

func TestNames(t *testing.T) {
	for i := range 8 {
		var s State
		var d Decision
		var n Sensitivity
		if i < len(stateNames) && (s.UnmarshalText([]byte(State(i).String())) != nil || s != State(i)) ||
			i < len(decisionNames) && (d.UnmarshalText([]byte(Decision(i).String())) != nil || d != Decision(i)) ||
			i < len(sensitivityNames) && (n.UnmarshalText([]byte(Sensitivity(i).String())) != nil || n != Sensitivity(i)) {
			t.Errorf("%d does not come back", i)
		}
	}
	if new(State).UnmarshalText([]byte("granted")) == nil {
		t.Error("a name that does not exist is read")
	}
}
