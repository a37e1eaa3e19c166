package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/approval"
	"github.com/ostiary/ostiary/internal/store"
)

// Approval is a request with something in every field.
func Approval(id approval.ID, d byte) approval.Request {
	return approval.Request{
		ID: id, CallID: "c1",
		Binding: approval.Binding{CallDigest: call.Digest{d, 1}, GrantDigest: call.Digest{d >> 1, 2}, Principal: "alice", Session: "s1\x00", Tool: "aur.mcp.files.write",
			Descriptor: call.Digest{3}, Effect: call.SensitiveRead, Policy: call.Digest{4}, Attachment: "builtin/files", Origin: call.Digest{5}, ArgumentsDigest: call.Digest{6}},
		Evidence: "ev-1", Export: "default", Provider: "files", Sensitivity: approval.Sensitive,
		Description: approval.Description{Summary: "a call\u202e", Arguments: "{}", Cut: true},
		Created:     clock.Add(time.Duration(d)), Expires: clock.Add(time.Hour),
		State: approval.Granted, Decision: approval.ApprovedForSession, Decider: "bob", Decided: clock.Add(time.Minute), Until: clock.Add(2 * time.Hour), Reason: "fine", SpentBy: "c2",
	}
}

func viewApprovals(t *testing.T, s store.Store) (out []approval.Request) {
	t.Helper()
	if err := s.View(t.Context(), func(v store.View) error {
		return v.EachApproval(func(r approval.Request) bool { out = append(out, r); return true })
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func testApprovals(t *testing.T, s store.Store) {
	a, b := Approval("a", 9), Approval("b", 8) // b is the older one
	plain := approval.Request{ID: "plain", Created: clock.Add(time.Second)}
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.PutApproval(a), tx.PutApproval(b), tx.PutApproval(plain))
	})
	want := []approval.Request{b, a, plain}
	if got := viewApprovals(t, s); !gocmp.Equal(got, want) {
		t.Error(gocmp.Diff(want, got))
	}
	a.State, a.Decision, a.GrantDigest = approval.Spent, approval.ApprovedOnce, call.Digest{77}
	update(t, s, func(tx store.Tx) error {
		for d, want := range map[call.Digest]string{a.CallDigest: "[a]", {4, 2}: "[b a]", b.CallDigest: "[b]", {}: "[plain]", {77}: "[]"} {
			if got := under(t, tx, d); got != want {
				t.Errorf("under %s: %s, want %s", d, got, want)
			}
		}
		if err := errors.Join(tx.PutApproval(a), tx.DeleteApproval("plain"), tx.DeleteApproval("none")); err != nil {
			return err
		}
		for d, want := range map[call.Digest]string{a.CallDigest: "[a]", {4, 2}: "[b]", {77}: "[a]", {}: "[]"} {
			if got := under(t, tx, d); got != want {
				t.Errorf("afterwards, under %s: %s, want %s", d, got, want)
			}
		}
		if r, ok, err := tx.Approval("a"); err != nil || !ok || !gocmp.Equal(r, a) {
			t.Errorf("got %+v, %t, %v", r, ok, err)
		}
		if _, ok, err := tx.Approval("plain"); err != nil || ok {
			t.Errorf("a row that is deleted: %t, %v", ok, err)
		}
		n := 0
		return errors.Join(tx.EachApproval(func(approval.Request) bool { n++; return false }), func() error {
			if n != 1 {
				t.Errorf("%d rows after the last", n)
			}
			return nil
		}())
	})
	if got := viewApprovals(t, s); !gocmp.Equal(got, []approval.Request{b, a}) {
		t.Error(gocmp.Diff([]approval.Request{b, a}, got))
	}
	if err := s.View(t.Context(), func(v store.View) error {
		r, ok, err := v.Approval("a")
		if !ok || !gocmp.Equal(r, a) {
			t.Errorf("got %+v, %t", r, ok)
		}
		_, ok, err2 := v.Approval("plain")
		if ok {
			t.Error("a row that is deleted is shown")
		}
		return errors.Join(err, err2)
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutApproval(approval.Request{}) }); err == nil {
		t.Error("a request without an id is taken")
	}
	var over store.Tx
	update(t, s, func(tx store.Tx) error { over = tx; return nil })
	if over.PutApproval(a) == nil || over.DeleteApproval("a") == nil {
		t.Error("a transaction that is over takes a request")
	}
}

func under(t *testing.T, tx store.Tx, d call.Digest) string {
	t.Helper()
	rs, err := tx.ApprovalsUnder(d)
	if err != nil {
		t.Error(err)
	}
	ids := make([]approval.ID, len(rs))
	for i := range rs {
		ids[i] = rs[i].ID
	}
	return fmt.Sprint(ids)
}

func testApprovalsAreUndone(t *testing.T, s store.Store) {
	no := errors.New("no")
	a := Approval("a", 1)
	update(t, s, func(tx store.Tx) error { return tx.PutApproval(a) })
	changed := a
	changed.State, changed.CallDigest = approval.Revoked, call.Digest{99}
	err := s.Update(t.Context(), func(tx store.Tx) error {
		return errors.Join(tx.PutApproval(changed), tx.DeleteApproval("a"), tx.PutApproval(Approval("b", 1)), tx.PutApproval(changed), no)
	})
	if !errors.Is(err, no) {
		t.Fatal(err)
	}
	if got := viewApprovals(t, s); !gocmp.Equal(got, []approval.Request{a}) {
		t.Error(gocmp.Diff([]approval.Request{a}, got))
	}
	update(t, s, func(tx store.Tx) error {
		if got := under(t, tx, a.CallDigest) + under(t, tx, call.Digest{99}); got != "[a][]" {
			t.Errorf("the index is %s", got)
		}
		return nil
	})
}

// Whatever is put and deleted, in transactions that fail or not, a transaction and a view see the same rows.
func testApprovalsAgree(t *testing.T, s store.Store) {
	no := errors.New("no")
	model := map[approval.ID]approval.Request{}
	rapid.Check(t, func(rt *rapid.T) {
		next := maps.Clone(model)
		fails := rapid.Bool().Draw(rt, "fails")
		n := rapid.IntRange(0, 5).Draw(rt, "n")
		type step struct {
			id     approval.ID
			digest byte
			put    bool
		}
		var steps []step
		for range n {
			steps = append(steps, step{approval.ID(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "id")), byte(rapid.IntRange(0, 3).Draw(rt, "digest")), rapid.Bool().Draw(rt, "put")})
		}
		err := s.Update(t.Context(), func(tx store.Tx) error {
			next = maps.Clone(model)
			for _, st := range steps {
				r := Approval(st.id, st.digest)
				if !st.put {
					delete(next, st.id)
					if err := tx.DeleteApproval(st.id); err != nil {
						return err
					}
					continue
				}
				next[st.id] = r
				if err := tx.PutApproval(r); err != nil {
					return err
				}
			}
			for d := range byte(4) {
				var want []approval.ID
				for _, r := range slices.SortedFunc(maps.Values(next), func(a, b approval.Request) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) }) {
					if r.CallDigest == (call.Digest{d, 1}) {
						want = append(want, r.ID)
					}
				}
				if got := under(t, tx, call.Digest{d, 1}); got != fmt.Sprint(want) {
					rt.Fatalf("under %d: %s, want %v", d, got, want)
				}
			}
			if fails {
				return no
			}
			return nil
		})
		if fails != errors.Is(err, no) || !fails && err != nil {
			rt.Fatal(err)
		}
		if !fails {
			model = next
		}
		want := slices.SortedFunc(maps.Values(model), func(a, b approval.Request) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
		if got := viewApprovals(t, s); len(got)+len(want) > 0 && !gocmp.Equal(got, want) {
			rt.Fatal(gocmp.Diff(want, got))
		}
	})
}

func rules() *approval.Rules {
	r := approval.DefaultRules()
	r.Entitled = func(string, *approval.Request) bool { return true }
	return &r
}

func granted(t *testing.T, s store.Store) (approval.ID, approval.Call) {
	t.Helper()
	c := approval.Call{ID: "c1", Principal: "alice", Session: "s1", Tool: "aur.mcp.files.write", Arguments: []byte(`{}`)}
	var r approval.Request
	update(t, s, func(tx store.Tx) (err error) {
		if r, err = rules().Ask(tx, approval.Question{ID: "a", Call: c}, clock); err == nil {
			r, err = rules().Grant(tx, r.ID, approval.ApprovedOnce, "bob", "", clock)
		}
		return err
	})
	return r.ID, c
}

// S-054: a grant is spent exactly if the intent of its call is committed.
func testGrantIsSpentWithTheIntent(t *testing.T, s store.Store) {
	id, c := granted(t, s)
	spend := func(tx store.Tx) error { _, err := rules().Spend(tx, id, c, clock); return err }
	no := errors.New("no")
	if err := s.Update(t.Context(), func(tx store.Tx) error { return errors.Join(spend(tx), OpenCall("c1")(tx), no) }); !errors.Is(err, no) {
		t.Fatal(err)
	}
	if r := viewApprovals(t, s)[0]; r.State != approval.Granted {
		t.Errorf("the grant is %s, and its call was not let through", r.State)
	}
	update(t, s, func(tx store.Tx) error { return errors.Join(spend(tx), OpenCall("c1")(tx)) })
	if r := viewApprovals(t, s)[0]; r.State != approval.Spent || r.SpentBy != "c1" {
		t.Errorf("the grant is %s", r.State)
	}
}

// F-53: of many calls that want one grant at once, one gets it.
func testGrantIsSpentOnce(t *testing.T, s store.Store) {
	id, c := granted(t, s)
	var wg sync.WaitGroup
	errs := make([]error, 32)
	for i := range errs {
		wg.Go(func() {
			own := c
			own.ID = call.ID(fmt.Sprint("call", i))
			errs[i] = s.Update(t.Context(), func(tx store.Tx) error {
				if _, err := rules().Spend(tx, id, own, clock); err != nil {
					return err
				}
				return OpenCall(own.ID)(tx)
			})
		})
	}
	wg.Wait()
	passed := 0
	for _, err := range errs {
		if err == nil {
			passed++
		} else if f, ok := errors.AsType[*approval.Refusal](err); !ok || f.Code != call.CodeApprovalPending {
			t.Errorf("got %v, want a refusal", err)
		}
	}
	if open := intents(t, s); passed != 1 || len(open) != 1 {
		t.Errorf("%d calls went through, with %d intents", passed, len(open))
	}
}
