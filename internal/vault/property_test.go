package vault

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The same for each operation by itself, at each of its steps, with the least and with the most that a loss of power leaves.
func TestInterruptedAtEachStep(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	for name, operation := range map[string]func(*Vault) error{
		"init":   func(v *Vault) error { return v.Init(ctx) },
		"set":    func(v *Vault) error { return v.Set(ctx, "b", NewSecret("two")) },
		"remove": func(v *Vault) error { return v.Remove(ctx, "b") },
		"rotate": func(v *Vault) error { return v.Rotate(ctx) },
	} {
		for _, filled := range []bool{true, false} {
			for _, choose := range []func(least, most int) int{func(least, _ int) int { return least }, func(_, most int) int { return most }} {
				for steps, done := 0, false; !done; steps++ {
					d := newPowerDisk()
					o := Options{Dir: dir, Keys: []Place{InFile}, Env: noEnv, disk: d}
					v := openTest(t, o)
					if filled {
						set(t, v, "a", "one")
						set(t, v, "b", "one")
					}
					d.steps = steps
					err := operation(v)
					done = !errors.Is(err, errPower)
					d.restart(choose)
					v = openTest(t, o)
					if err := v.Check(ctx); err != nil {
						t.Fatalf("%s, interrupted at step %d: %v", name, steps, err)
					}
					if filled {
						checkGet(t, v, "a", "one")
					}
					// And it goes on from there.
					set(t, v, "a", "three")
					if err := v.Rotate(ctx); err != nil {
						t.Fatalf("%s, interrupted at step %d, then rotate: %v", name, steps, err)
					}
					checkGet(t, openTest(t, o), "a", "three")
				}
			}
		}
	}
}

// After any sequence of operations, each of them interrupted at any point of any write, the vault opens with the content
// from before the operation or from after it; from after it if the operation has said so. What was sealed opens too.
func TestInterruptedAnywhere(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		d := newPowerDisk()
		ctx := context.Background()
		open := func() *Vault {
			v, err := Open(Options{Dir: dir, Keys: []Place{InFile}, Env: noEnv, disk: d})
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			return v
		}
		content := func(v *Vault) map[string]string {
			got := map[string]string{}
			infos, err := v.List(ctx)
			if err != nil {
				t.Fatalf("list: %v", err)
			}
			for _, i := range infos {
				s, err := v.Get(ctx, i.Name)
				if err != nil {
					t.Fatalf("get: %v", err)
				}
				got[i.Name] = s.Reveal()
			}
			return got
		}
		v, now := open(), map[string]string{}
		var evidence []byte
		for range rapid.IntRange(1, 8).Draw(t, "operations") {
			before, after := now, maps.Clone(now)
			d.steps = rapid.IntRange(-1, 24).Draw(t, "steps")
			name := rapid.SampledFrom([]string{"a", "b", "c/d"}).Draw(t, "name")
			var err error
			switch op := rapid.SampledFrom([]string{"set", "set", "remove", "rotate", "init"}).Draw(t, "operation"); op {
			case "set":
				value := rapid.StringN(1, 30, -1).Draw(t, "value")
				after[name] = value
				err = v.Set(ctx, name, NewSecret(value))
			case "remove":
				delete(after, name)
				if err = v.Remove(ctx, name); errors.Is(err, ErrNotFound) {
					err = nil
				}
			case "rotate":
				if err = v.Rotate(ctx); errors.Is(err, ErrNoVault) {
					err = nil
				}
			case "init":
				err = v.Init(ctx)
			}
			if err != nil && !errors.Is(err, errPower) {
				t.Fatalf("an operation failed though there was power: %v", err)
			}
			lost := d.steps == 0
			if lost || rapid.Bool().Draw(t, "restart") {
				d.restart(func(least, most int) int { return rapid.IntRange(least, most).Draw(t, "kept") })
				v = open()
			}
			d.steps = -1
			now = content(v)
			if !cmp.Equal(now, after) && (err == nil || !cmp.Equal(now, before)) {
				t.Fatalf("error %v: the vault has %v, before it was %v, after it should be %v", err, now, before, after)
			}
			if evidence != nil {
				if got, err := v.Unseal(ctx, evidence, nil); err != nil || string(got) != "evidence" {
					t.Fatalf("what was sealed: %q, %v", got, err)
				}
			} else if b, err := v.Seal([]byte("evidence"), nil); err == nil {
				evidence = b
			} else if !errors.Is(err, ErrNoVault) {
				t.Fatalf("seal: %v", err)
			}
		}
	})
}
