package evidence

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/vault"
)

var clock = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

func item(id ID) Item {
	return Item{ID: id, CallID: call.ID("call-" + id), Session: "s", Principal: "alice", Provider: "files", Tool: "aur.mcp.files.read",
		Verdict: "QUARANTINED", Reasons: []string{"credential.token"}, Sensitivity: "CREDENTIAL_LIKE", Excerpt: "key: [redacted]", Created: clock}
}

func by(who string, at time.Time) Decision { return Decision{By: who, At: at, Reason: "looked at it"} }

func hold(t *testing.T, id ID, payload string) Sealed {
	t.Helper()
	h, err := Hold(fakeSeal{}, item(id), []byte(payload), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func keep(t *testing.T, tx Tx, h Sealed) Item {
	t.Helper()
	i, err := Keep(tx, h)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func checkErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

// R8.6: what is quarantined is kept encrypted, with a redacted excerpt, a reviewer's decision and a retention time.
// R8.7: it has its hash before anything else happens to it.
func TestR8_6_KeptSealedDecided(t *testing.T) {
	const secret = "canary-91c2 token"
	v, err := vault.Open(vault.Options{Dir: t.TempDir(), Keys: []vault.Place{vault.InFile}})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	h, err := Hold(v, item("e1"), []byte(secret), Limits{Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if h.Item.SHA256 != sha256.Sum256([]byte(secret)) || h.Item.Size != int64(len(secret)) || !h.Item.Expires.Equal(clock.Add(time.Hour)) {
		t.Errorf("held as %+v", h.Item)
	}
	if bytes.Contains(h.Payload, []byte("canary")) {
		t.Error("the payload is in clear")
	}
	m := newMemory()
	keep(t, m, h)
	back, err := Load(m, "e1", clock)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Read(t.Context(), v, back); err != nil || string(got) != secret {
		t.Errorf("read: %q, %v", got, err)
	}
	back.Item.CallID = "another"
	_, err = Read(t.Context(), v, back)
	checkErr(t, err, vault.ErrDamaged)

	if back.Item.Admitted(clock) {
		t.Error("R8.1: what is held is admitted")
	}
	i, err := Release(m, "e1", by("bob", clock.Add(time.Minute)))
	if err != nil || i.State != Released || i.Decision != (Decision{Released, "bob", clock.Add(time.Minute), "looked at it"}) {
		t.Errorf("released as %+v, %v", i, err)
	}
	if !i.Admitted(clock.Add(59*time.Minute)) || i.Admitted(clock.Add(time.Hour)) {
		t.Error("what is released is admitted until its time is over, and no longer")
	}
	_, err = Reject(m, "e1", by("carol", clock))
	checkErr(t, err, ErrDecided)
}

func TestRetention(t *testing.T) {
	m := newMemory()
	for _, id := range []ID{"e1", "e2", "e3"} {
		keep(t, m, hold(t, id, "payload"))
	}
	late := clock.Add(DefaultLimits().Retention)
	if _, err := Reject(m, "e2", by("bob", clock)); err != nil {
		t.Fatal(err)
	}
	if _, err := Purge(m, "e3", by("bob", clock)); err != nil {
		t.Fatal(err)
	}
	if ids, err := Expired(m, late.Add(-1), 0); err != nil || len(ids) != 0 {
		t.Errorf("expired too early: %v, %v", ids, err)
	}
	// Time that is over is over, whether or not somebody has swept.
	_, err := Release(m, "e1", by("bob", late))
	checkErr(t, err, ErrOver)
	_, err = Load(m, "e1", late)
	checkErr(t, err, ErrOver)
	ids, err := Expired(m, late, 0)
	if err != nil || len(ids) != 2 {
		t.Fatalf("expired: %v, %v", ids, err)
	}
	if swept, err := Sweep(m, append(ids, "none", "e3"), late); err != nil || len(swept) != 2 {
		t.Errorf("swept %v, %v", swept, err)
	}
	for _, i := range m.items {
		if i.State != Purged || i.Excerpt != "" || i.Purge.By == "" || len(m.sealed) != 0 {
			t.Errorf("purged as %+v", i)
		}
	}
	if i, _, _ := m.Evidence("e2"); i.Decision.To != Rejected || i.Decision.By != "bob" || i.Purge.By != Gateway {
		t.Errorf("what was decided is lost: %+v", i)
	}
}

func TestBounds(t *testing.T) {
	m := newMemory()
	h, err := Hold(fakeSeal{}, item("large"), make([]byte, 101), Limits{MaxPayload: 100})
	if err != nil || h.Payload != nil || h.Item.State != Purged || h.Item.SHA256 != sha256.Sum256(make([]byte, 101)) {
		t.Errorf("held as %+v, %v", h, err)
	}
	keep(t, m, h)
	fault := errors.New("no vault")
	h, err = Hold(fakeSeal{fault}, item("unsealed"), []byte("x"), Limits{})
	checkErr(t, err, fault)
	if i := keep(t, m, h); i.State != Purged || i.Purge.Reason == "" {
		t.Errorf("kept as %+v", i)
	}
	limits := Limits{MaxTotal: 4 * (sha256.Size + 10)}
	for n, want := range []State{Held, Held, Purged} {
		h, err := Hold(fakeSeal{}, item(ID(rune('a'+n))), make([]byte, 10), limits)
		if err != nil {
			t.Fatal(err)
		}
		if i := keep(t, m, h); i.State != want {
			t.Errorf("item %d is kept as %s, want %s", n, i.State, want)
		}
	}
	i := item("texts")
	i.Excerpt = strings.Repeat("é", maxExcerpt) + "\xff"
	i.Reasons = slicesOf("r", 100)
	i.Principal = "a\xff"
	h, err = Hold(fakeSeal{}, i, nil, Limits{})
	if err != nil || len(h.Item.Excerpt) > maxExcerpt || !strings.HasSuffix(h.Item.Excerpt, "é") || len(h.Item.Reasons) != maxReasons || h.Item.Principal != "a\uFFFD" {
		t.Errorf("held with %d bytes of excerpt, %d reasons, %v", len(h.Item.Excerpt), len(h.Item.Reasons), err)
	}
	for _, break_ := range []func(*Item){
		func(i *Item) { i.ID = "" }, func(i *Item) { i.Provider = "" }, func(i *Item) { i.Verdict = "" }, func(i *Item) { i.Created = time.Time{} },
		func(i *Item) { i.Direction = 99 },
	} {
		i := item("x")
		break_(&i)
		_, err := Hold(fakeSeal{}, i, nil, Limits{})
		checkErr(t, err, ErrInvalid)
	}
	_, err = Keep(m, Sealed{Item: item("forged")})
	checkErr(t, err, ErrInvalid)
}

func slicesOf(s string, n int) []string { return strings.Split(strings.Repeat(s+",", n-1)+s, ",") }

func TestDecisionsNameWho(t *testing.T) {
	m := newMemory()
	keep(t, m, hold(t, "e1", "x"))
	for _, d := range []Decision{{At: clock}, {By: "bob"}, {By: strings.Repeat("b", maxText+1), At: clock}} {
		for _, step := range []func(Tx, ID, Decision) (Item, error){Release, Reject, Purge} {
			_, err := step(m, "e1", d)
			checkErr(t, err, ErrInvalid)
		}
	}
	_, err := Release(m, "e2", by("bob", clock))
	checkErr(t, err, ErrUnknown)
	_, err = Load(m, "e2", clock)
	checkErr(t, err, ErrUnknown)
}

func TestDamagedPayload(t *testing.T) {
	m := newMemory()
	keep(t, m, hold(t, "e1", "x"))
	keep(t, m, hold(t, "e2", "y"))
	a, err := Load(m, "e1", clock)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Load(m, "e2", clock)
	if err != nil {
		t.Fatal(err)
	}
	a.Payload, b.Payload = b.Payload, a.Payload
	if _, err := Read(t.Context(), fakeSeal{}, a); err == nil {
		t.Error("another item's payload opens")
	}
	b.Payload = append(b.Payload[:0:0], mustSeal(t, &b.Item, "z")...)
	_, err = Read(t.Context(), fakeSeal{}, b)
	checkErr(t, err, ErrDamaged)
	delete(m.sealed, "e1")
	_, err = Load(m, "e1", clock)
	checkErr(t, err, ErrDamaged)
}

func mustSeal(t *testing.T, i *Item, payload string) []byte {
	t.Helper()
	b, err := fakeSeal{}.Seal([]byte(payload), i.associated())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNames(t *testing.T) {
	for s := Held; s <= Purged; s++ {
		b, _ := s.MarshalText()
		var back State
		if err := back.UnmarshalText(b); err != nil || back != s {
			t.Errorf("%s is read as %s, %v", b, back, err)
		}
	}
	for d := Result; d <= Progress; d++ {
		b, _ := d.MarshalText()
		var back Direction
		if err := back.UnmarshalText(b); err != nil || back != d {
			t.Errorf("%s is read as %s, %v", b, back, err)
		}
	}
	if new(State).UnmarshalText([]byte("held")) == nil || new(Direction).UnmarshalText(nil) == nil || State(9).String() == "" {
		t.Error("a name that is none is taken")
	}
}
