package approval

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ostiary/ostiary/call"
)

// memory is a store of approvals: update runs a function in a transaction.
type memory struct {
	mu   sync.Mutex
	rows map[ID]Request
}

func (m *memory) update(fn func(Tx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &memory{rows: maps.Clone(m.rows)}
	if t.rows == nil {
		t.rows = map[ID]Request{}
	}
	err := fn(t)
	if err == nil {
		m.rows = t.rows
	}
	return err
}

func (m *memory) PutApproval(r Request) error { m.rows[r.ID] = r; return nil }
func (m *memory) DeleteApproval(id ID) error  { delete(m.rows, id); return nil }
func (m *memory) Approval(id ID) (Request, bool, error) {
	r, ok := m.rows[id]
	return r, ok, nil
}
func (m *memory) ApprovalsUnder(d call.Digest) (out []Request, err error) {
	for _, r := range m.rows {
		if r.CallDigest == d || r.GrantDigest == d {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, byAge)
	return out, nil
}
func (m *memory) EachApproval(yield func(Request) bool) error {
	for _, r := range slices.SortedFunc(maps.Values(m.rows), byAge) {
		if !yield(r) {
			break
		}
	}
	return nil
}

var (
	_ Tx   = (*memory)(nil)
	_ View = (*memory)(nil)
)

var noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// rules let bob and eve decide.
func rules() *Rules {
	r := DefaultRules()
	r.Entitled = func(decider string, _ *Request) bool { return decider == "bob" || decider == "eve" }
	return &r
}

func aCall() Call {
	return Call{
		ID: "c1", Principal: "alice", Session: "s1", Tool: "aur.mcp.files.write", Descriptor: call.Digest{1}, Policy: call.Digest{2},
		Attachment: "builtin/files", Origin: call.Digest{3}, Arguments: []byte(`{"path":"/tmp/x","n":9007199254740993}`),
	}
}

// fixture has one store and hands out ids.
type fixture struct {
	memory
	*Rules
	n int
}

func newFixture() *fixture { return &fixture{Rules: rules()} }

func (f *fixture) ask(c Call, now time.Time) (r Request, err error) {
	f.n++
	id := ID("a" + string(rune('0'+f.n/100%10)) + string(rune('0'+f.n/10%10)) + string(rune('0'+f.n%10)))
	err = f.update(func(tx Tx) (err error) {
		r, err = f.Ask(tx, Question{ID: id, Call: c, Provider: "files"}, now)
		return err
	})
	return r, err
}

func (f *fixture) grant(id ID, scope Decision, who string, now time.Time) error {
	return f.update(func(tx Tx) error { _, err := f.Grant(tx, id, scope, who, "", now); return err })
}

func (f *fixture) decline(id ID, who string, now time.Time) error {
	return f.update(func(tx Tx) error { _, err := f.Decline(tx, id, who, "", now); return err })
}

func (f *fixture) spend(id ID, c Call, now time.Time) error {
	return f.update(func(tx Tx) error { _, err := f.Spend(tx, id, c, now); return err })
}

func (f *fixture) expire(now time.Time) (out []Request) {
	_ = f.update(func(tx Tx) (err error) { out, err = f.Expire(tx, now); return err })
	return out
}
