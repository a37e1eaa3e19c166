package vault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// noEnv is an environment without variables: no key in it, and no session bus.
func noEnv(string) (string, bool) { return "", false }

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func openTest(t *testing.T, o Options) *Vault {
	t.Helper()
	if o.Env == nil {
		o.Env = noEnv
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	v, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func set(t *testing.T, v *Vault, name, value string) {
	t.Helper()
	if err := v.Set(t.Context(), name, NewSecret(value)); err != nil {
		t.Fatal(err)
	}
}

func checkGet(t *testing.T, v *Vault, name, want string) {
	t.Helper()
	got, err := v.Get(t.Context(), name)
	if err != nil || got.Reveal() != want {
		t.Errorf("get %s: got %q, %v, want %q", name, got.Reveal(), err, want)
	}
}

func checkErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func TestSetGetListRemove(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 9, 1, 12, 0, 0, 5, time.UTC)
	v := openTest(t, Options{Dir: dir, Now: func() time.Time { return now }})
	_, err := v.Get(t.Context(), "a")
	checkErr(t, err, ErrNotFound) // R12.3: a missing file is an empty vault
	checkErr(t, v.Remove(t.Context(), "a"), ErrNotFound)
	if infos, err := v.List(t.Context()); err != nil || len(infos) != 0 {
		t.Errorf("list of an empty vault: %v, %v", infos, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 1 {
		t.Errorf("reading has made files: %v, %v", entries, err)
	}
	set(t, v, "user/alice/token", "one")
	set(t, v, "b", "two\n\"é\u2028")
	set(t, v, "b", "three")
	other := openTest(t, Options{Dir: dir})
	checkGet(t, other, "user/alice/token", "one")
	checkGet(t, other, "b", "three")
	infos, err := other.List(t.Context())
	if err != nil || len(infos) != 2 || infos[0].Name != "b" || infos[1].Name != "user/alice/token" || !infos[0].Changed.Equal(now.Truncate(time.Second)) {
		t.Errorf("list: %+v, %v", infos, err)
	}
	if err := other.Remove(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	_, err = v.Get(t.Context(), "b")
	checkErr(t, err, ErrNotFound)
	if err := v.Init(t.Context()); err != nil { // there already
		t.Fatal(err)
	}
	checkGet(t, v, "user/alice/token", "one")
}

func TestNamesAndValues(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "search-token": true, "A.b_c-1/x": true, "0": true, strings.Repeat("a", MaxName): true,
		"": false, "/a": false, "a/": false, "a//b": false, ".a": false, "a/../b": false, "-a": false, "env:NAME": false, "a b": false,
		"a\n": false, "é": false, strings.Repeat("a", MaxName+1): false,
	} {
		if err := CheckName(name); (err == nil) != ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	v := openTest(t, Options{Dir: t.TempDir()})
	for _, value := range []string{"", "canary\xff", "canary" + strings.Repeat("x", MaxSecret)} {
		err := v.Set(t.Context(), "a", NewSecret(value))
		checkErr(t, err, ErrInvalid)
		if strings.Contains(err.Error(), "canary") {
			t.Error("the error quotes the secret")
		}
	}
	checkErr(t, v.Set(t.Context(), "../a", NewSecret("x")), ErrInvalid)
}

// R6.9: a secret does not print, whatever prints it.
func TestR6_9_SecretNeverPrints(t *testing.T) {
	const canary = "canary-7f3a"
	s := NewSecret(canary)
	type hidden struct{ s Secret }
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "in", hidden{s}, "pointer", &s)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s, "in", hidden{s})
	out := log.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%08.3f", "%c", "%U", "%p"} {
		for _, x := range []any{s, &s, hidden{s}, &hidden{s}, []Secret{s}, map[string]Secret{"a": s}} {
			out += fmt.Sprintf(verb, x) + "\n"
		}
	}
	b, err := json.Marshal(map[string]any{"a": s, "b": &s, "c": []Secret{s}})
	out += string(b)
	if err != nil || strings.Contains(out, canary) || strings.Contains(out, fmt.Sprintf("%x", canary)) {
		t.Errorf("the secret is in clear: %s", out)
	}
	if s.Reveal() != canary || (Secret{}).Reveal() != "" {
		t.Error("Reveal does not")
	}
}

// F-11: without the right key the vault is locked, for what needs a secret alone, and the refusal says why and what to do.
func TestF11_Locked(t *testing.T) {
	other, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name   string
		break_ func(t *testing.T, o *Options)
		says   string
	}{
		{"missing", func(t *testing.T, o *Options) { remove(t, o.Dir, KeyFile) }, "no session bus"},
		{"missing, file only", func(t *testing.T, o *Options) { remove(t, o.Dir, KeyFile); o.Keys = []Place{InFile} }, "does not exist"},
		{"wrong in file", func(t *testing.T, o *Options) { write(t, o.Dir, KeyFile, other.Reveal()) }, "put the right key back"},
		{"wrong in environment", func(t *testing.T, o *Options) { o.Env = env(KeyVariable, other.Reveal()) }, "put the right key back"},
		{"malformed in environment", func(t *testing.T, o *Options) { o.Env = env(KeyVariable, "canary") }, KeyVariable},
		{"empty file", func(t *testing.T, o *Options) { write(t, o.Dir, KeyFile, "") }, "has no key in it"},
		{"keyring fails", func(t *testing.T, o *Options) {
			o.Keys, o.Keyring = []Place{InKeyring}, &fakeKeyring{err: errors.New("collection is locked")}
		}, "collection is locked"},
		{"keyring is empty", func(t *testing.T, o *Options) { o.Keys, o.Keyring = []Place{InKeyring}, &fakeKeyring{} }, "no key"},
		{"keyring hangs", func(t *testing.T, o *Options) {
			hang := make(chan struct{})
			t.Cleanup(func() { close(hang) })
			o.Keys, o.Keyring, o.KeyringTimeout = []Place{InKeyring}, &fakeKeyring{hang: hang}, 20*time.Millisecond
		}, "does not answer"},
	}
	if runtime.GOOS != "windows" {
		cases = append(cases, struct {
			name   string
			break_ func(t *testing.T, o *Options)
			says   string
		}{"readable by others", func(t *testing.T, o *Options) {
			if err := os.Chmod(filepath.Join(o.Dir, KeyFile), 0o640); err != nil {
				t.Fatal(err)
			}
		}, "chmod 600"})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			set(t, openTest(t, Options{Dir: dir}), "a", "canary")
			before, err := os.ReadFile(filepath.Join(dir, File))
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Dir: dir}
			c.break_(t, &o)
			v := openTest(t, o) // a locked vault opens
			_, err = v.Get(t.Context(), "a")
			_, lerr := v.List(t.Context())
			_, uerr := v.Unseal(t.Context(), sealed(t, v, "x"), nil) // sealing needs no key
			for _, err := range []error{err, lerr, uerr, v.Check(t.Context()), v.Set(t.Context(), "b", NewSecret("x")), v.Remove(t.Context(), "a"), v.Rotate(t.Context())} {
				checkErr(t, err, ErrLocked)
				l, ok := errors.AsType[*LockedError](err)
				if !ok || l.Advice == "" || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "SECRET-KEY-1Q") {
					t.Errorf("the refusal is %v, want %q in it", err, c.says)
				}
			}
			if err := v.Init(t.Context()); err != nil {
				t.Errorf("init of a locked vault: %v", err)
			}
			after, err := os.ReadFile(filepath.Join(dir, File))
			if err != nil || string(after) != string(before) {
				t.Errorf("a locked vault was changed: %v", err)
			}
		})
	}
}

func sealed(t *testing.T, v *Vault, plain string) []byte {
	t.Helper()
	b, err := v.Seal([]byte(plain), nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The first place that has a key is used, and a vault that was locked opens when the key is back.
func TestPlacesOfTheKey(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ring := &fakeKeyring{}
	inEnv := Options{Dir: dir, Env: env(KeyVariable, " "+key.Reveal()+"\n"), Keyring: ring}
	set(t, openTest(t, inEnv), "a", "one")
	if _, err := os.Stat(filepath.Join(dir, KeyFile)); err == nil {
		t.Error("the key of the environment was written to a file")
	}
	v := openTest(t, Options{Dir: dir, Keyring: ring})
	checkErr(t, v.Check(t.Context()), ErrLocked)
	write(t, dir, KeyFile, "# created by age-keygen\n"+key.Reveal()+"\n")
	checkGet(t, v, "a", "one")

	byRing := Options{Dir: t.TempDir(), Keys: []Place{InKeyring}, Keyring: ring}
	set(t, openTest(t, byRing), "a", "one")
	checkGet(t, openTest(t, byRing), "a", "one")
	if _, err := os.Stat(filepath.Join(byRing.Dir, KeyFile)); err == nil {
		t.Error("the key of the keyring was written to a file")
	}
	only := openTest(t, Options{Dir: t.TempDir(), Keys: []Place{InEnvironment}})
	checkErr(t, only.Init(t.Context()), ErrLocked) // nowhere to put a key
	for _, o := range []Options{{}, {Dir: dir, Keys: []Place{}}, {Dir: dir, Keys: []Place{"memory"}}, {Dir: dir, Keys: []Place{InFile, InFile}}, {Dir: dir, LockTimeout: -1}} {
		if _, err := Open(o); err == nil {
			t.Errorf("options %+v are taken", o.Keys)
		}
	}
}

// R12.3: a damaged file is an error, at every byte of it; so is a cut one, one of a newer program, and one that somebody
// wrote who knows the recipient and not the key.
func TestR12_3_Damaged(t *testing.T) {
	dir := t.TempDir()
	v := openTest(t, Options{Dir: dir})
	set(t, v, "a", "canary")
	good, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, b []byte, want ...error) {
		t.Helper()
		write(t, dir, File, string(b))
		v, err := Open(Options{Dir: dir, Env: noEnv})
		if err == nil {
			err = v.Check(t.Context())
		}
		ok := false
		for _, w := range want {
			ok = ok || errors.Is(err, w)
		}
		if !ok || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 1
		check(fmt.Sprint("changed byte ", i), bad, ErrDamaged, ErrNewer)
	}
	for _, n := range []int{0, 1, 20, 200, len(good) - 1} {
		check(fmt.Sprint("cut to ", n), good[:n], ErrDamaged)
	}
	check("longer", append(append([]byte(nil), good...), 'x'), ErrDamaged)
	check("newer", append([]byte(magic+"2 something new\n"), good...), ErrNewer)
	check("large", make([]byte, maxFile+1), ErrDamaged)

	f, err := parseFile(good)
	if err != nil {
		t.Fatal(err)
	}
	stranger := openTest(t, Options{Dir: t.TempDir()})
	set(t, stranger, "a", "forged")
	b, err := os.ReadFile(filepath.Join(stranger.o.Dir, File))
	if err != nil {
		t.Fatal(err)
	}
	forged, err := parseFile(b)
	if err != nil {
		t.Fatal(err)
	}
	// Encrypted to our recipient by who has not our key, with a recipient for sealing of its own.
	line := fmt.Sprintf("%s%s %s %s %x\n", magic, version, f.recipient, forged.sealTo, forged.mac)
	check("forged", append([]byte(line), f.body...), ErrDamaged)
	_, err = v.Seal([]byte("x"), nil) // v has the key
	checkErr(t, err, ErrDamaged)
	write(t, dir, File, string(good))
	checkGet(t, v, "a", "canary")
}

func TestRotate(t *testing.T) {
	dir := t.TempDir()
	v := openTest(t, Options{Dir: dir})
	checkErr(t, v.Rotate(t.Context()), ErrNoVault)
	set(t, v, "a", "one")
	old, err := os.ReadFile(filepath.Join(dir, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	kept := sealed(t, v, "evidence")
	other := openTest(t, Options{Dir: dir})
	checkGet(t, other, "a", "one") // has the old key in memory
	for range 3 {
		if err := v.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkGet(t, v, "a", "one")
		checkGet(t, other, "a", "one")
	}
	if got, err := other.Unseal(t.Context(), kept, nil); err != nil || string(got) != "evidence" {
		t.Errorf("what was sealed before: %q, %v", got, err)
	}
	write(t, dir, KeyFile, string(old))
	checkErr(t, openTest(t, Options{Dir: dir}).Check(t.Context()), ErrLocked)
}

// A key that an operator keeps is changed by the operator: a new one in front of the old one.
func TestRotateFixedKey(t *testing.T) {
	first, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	second, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []Place{InEnvironment, InFile} {
		dir := t.TempDir()
		with := func(text string) *Vault {
			if place == InFile {
				write(t, dir, KeyFile, text)
				return openTest(t, Options{Dir: dir})
			}
			return openTest(t, Options{Dir: dir, Env: env(KeyVariable, text)})
		}
		v := with(first.Reveal())
		set(t, v, "a", "one")
		checkErr(t, v.Rotate(t.Context()), ErrFixedKey)
		v = with(second.Reveal() + "\n" + first.Reveal())
		checkGet(t, v, "a", "one")
		if err := v.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkGet(t, v, "a", "one")
		checkGet(t, with(second.Reveal()), "a", "one")
		checkErr(t, with(first.Reveal()).Check(t.Context()), ErrLocked)
	}
}

func TestSeal(t *testing.T) {
	v := openTest(t, Options{Dir: t.TempDir()})
	_, err := v.Seal([]byte("x"), nil)
	checkErr(t, err, ErrNoVault)
	_, err = v.Unseal(t.Context(), []byte(sealedMagic+"x"), nil)
	checkErr(t, err, ErrNoVault)
	if err := v.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("a large result ", 1<<16)
	for _, plain := range []string{"", "x", big} {
		b, err := v.Seal([]byte(plain), []byte("item 1"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := v.Unseal(t.Context(), b, []byte("item 1")); err != nil || string(got) != plain {
			t.Errorf("%d bytes came back as %d, %v", len(plain), len(got), err)
		}
		_, err = v.Unseal(t.Context(), b, []byte("item 2"))
		checkErr(t, err, ErrDamaged)
		_, err = v.Unseal(t.Context(), b[:len(b)-1], []byte("item 1"))
		checkErr(t, err, ErrDamaged)
	}
	_, err = v.Seal(make([]byte, MaxSealed+1), nil)
	checkErr(t, err, ErrInvalid)
}

// A writer that waits for another gives up in time.
func TestLockIsBounded(t *testing.T) {
	dir := t.TempDir()
	release, err := takeLock(t.Context(), filepath.Join(dir, LockFile), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	v := openTest(t, Options{Dir: dir, LockTimeout: 30 * time.Millisecond})
	checkErr(t, v.Set(t.Context(), "a", NewSecret("x")), ErrBusy)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	checkErr(t, v.Set(ctx, "a", NewSecret("x")), context.Canceled)
	if err := release(); err != nil {
		t.Fatal(err)
	}
	set(t, v, "a", "x")
}

// A keyring that hangs is asked once: there is never more than one goroutine left behind.
func TestKeyringIsAskedOnce(t *testing.T) {
	hang := make(chan struct{})
	ring := &fakeKeyring{hang: hang}
	dir := t.TempDir()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	set(t, openTest(t, Options{Dir: dir, Env: env(KeyVariable, key.Reveal())}), "a", "one")
	v := openTest(t, Options{Dir: dir, Keyring: ring, KeyringTimeout: 10 * time.Millisecond})
	for range 5 {
		checkErr(t, v.Check(t.Context()), ErrLocked)
	}
	if n := ring.asked.Load(); n != 1 {
		t.Errorf("the keyring was asked %d times while it hung", n)
	}
	ring.items = map[string]string{"ostiary/" + v.o.Account: key.Reveal()} // no call reads it before hang is closed
	close(hang)
	patient := openTest(t, Options{Dir: dir, Keyring: ring})
	checkGet(t, patient, "a", "one")
}
