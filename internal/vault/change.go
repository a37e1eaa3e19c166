package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"filippo.io/age"

	"github.com/ostiary/ostiary/internal/durable"
)

// Init makes the key and an empty vault, where there is none. It does nothing to a vault that is there, locked or not.
func (v *Vault) Init(ctx context.Context) error {
	if err := v.cleanUp(ctx); err != nil {
		return fmt.Errorf("init vault: %w", err)
	}
	if f, err := v.read(); err != nil || f != nil {
		return err
	}
	return v.change(ctx, "init vault", true, func(*content) error { return nil })
}

// cleanUp removes what a crash in the midst of writing a file has left: there may be half a key in it.
func (v *Vault) cleanUp(ctx context.Context) (err error) {
	paths := []string{v.path}
	for _, p := range v.places {
		if f, ok := p.(filePlace); ok {
			paths = append(paths, f.path)
		}
	}
	if !slices.ContainsFunc(paths, func(path string) bool {
		_, err := v.o.disk.read(durable.Unfinished(path), maxFile, false)
		return !errors.Is(err, fs.ErrNotExist)
	}) {
		return nil
	}
	release, err := takeLock(ctx, filepath.Join(v.o.Dir, LockFile), v.o.LockTimeout) // whoever is writing now has it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	return durable.CleanUp(v.o.disk, paths...)
}

// Set keeps a secret, in place of the one of that name if there is one.
func (v *Vault) Set(ctx context.Context, name string, secret Secret) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := checkValue(secret.Reveal()); err != nil {
		return fmt.Errorf("keep secret %s: %w", name, err)
	}
	return v.change(ctx, "keep secret "+name, true, func(c *content) error {
		if _, there := c.Entries[name]; !there && len(c.Entries) >= MaxEntries {
			return fmt.Errorf("%w: there are %d secrets already", ErrInvalid, MaxEntries)
		}
		c.Entries[name] = entry{Changed: stamp(v.o.Now()), Value: secret.Reveal()}
		return nil
	})
}

// Remove takes a secret out; ErrNotFound if there is none of that name.
func (v *Vault) Remove(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return v.change(ctx, "remove secret "+name, false, func(c *content) error {
		if _, there := c.Entries[name]; !there {
			return ErrNotFound
		}
		delete(c.Entries, name)
		return nil
	})
}

// change reads the content, lets fn change it and writes it, as the only writer. When it returns nil the change is durable;
// after an error the vault has either content.
func (v *Vault) change(ctx context.Context, what string, create bool, fn func(*content) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
	}()
	release, err := takeLock(ctx, filepath.Join(v.o.Dir, LockFile), v.o.LockTimeout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	st, err := v.load(ctx)
	if err != nil {
		return err
	}
	if st.id == nil && create {
		if st.content, err = newContent(v.o.Now()); err != nil {
			return err
		}
		if st.id, err = v.firstKey(ctx); err != nil {
			return err
		}
	}
	if err := fn(st.content); err != nil {
		return err
	}
	return v.write(st.content, st.id)
}

func (v *Vault) write(c *content, id *age.X25519Identity) error {
	b, err := encodeFile(c, id)
	if err != nil {
		return err
	}
	if err := durable.Replace(v.o.disk, v.path, b); err != nil {
		return err
	}
	v.remember(id)
	return nil
}

// firstKey is the key for a vault that has no file yet: one that is there, or a new one in the first place that takes it.
// It is durable before the vault is written.
func (v *Vault) firstKey(ctx context.Context) (*age.X25519Identity, error) {
	for _, p := range v.places {
		k, err := p.load(ctx)
		if err == nil {
			return k.ids[0], nil
		}
		if !errors.Is(err, errNoKey) {
			return nil, &LockedError{Cause: err, Advice: "make the key readable there"}
		}
		id, err := age.GenerateX25519Identity()
		if err != nil {
			return nil, fmt.Errorf("make vault key: %w", err)
		}
		err = p.store(ctx, id)
		if errors.Is(err, ErrFixedKey) {
			continue
		}
		if err != nil {
			return nil, err
		}
		v.o.Logger.Info("vault key made", "place", p.String(), "recipient", id.Recipient().String())
		return id, nil
	}
	return nil, &LockedError{Cause: errNoKey, Advice: "set " + v.o.KeyVariable + " to a new key, such as `ostiary vault key` prints"}
}

// Rotate changes the key. The new key is kept beside the old one, then all is encrypted to the new one, and only when that
// is durable the old one is given up; whatever happens in between, the keys that are kept open the file that is there. The
// identity for sealing is changed too; what was sealed before stays readable.
//
// A key in the environment, or in a file that was not made by this program, is not this program's to change: put the new
// key in front of the old one there, and Rotate takes it. Otherwise it is ErrFixedKey.
func (v *Vault) Rotate(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("rotate vault key: %w", err)
		}
	}()
	release, err := takeLock(ctx, filepath.Join(v.o.Dir, LockFile), v.o.LockTimeout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	st, err := v.load(ctx)
	if err != nil {
		return err
	}
	if st.id == nil {
		return ErrNoVault
	}
	place, have, err := v.keys(ctx) // the remembered key says nothing of where it is kept
	if err != nil {
		return err
	}
	if len(st.content.Sealing) >= maxSealing {
		return fmt.Errorf("%w: the key was changed %d times", ErrInvalid, maxSealing)
	}
	if err := st.content.addSealing(v.o.Now()); err != nil {
		return err
	}
	if have.fixed {
		next := have.ids[0]
		if sameIdentity(next, st.id) {
			return fmt.Errorf("%s: %w: put a new key in front of the old one there and rotate again", place, ErrFixedKey)
		}
		return v.write(st.content, next)
	}
	next, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	if err := place.store(ctx, next, st.id); err != nil {
		return err
	}
	if err := v.write(st.content, next); err != nil {
		return err
	}
	if err := place.store(ctx, next); err != nil {
		return fmt.Errorf("the vault has its new key, but the old one could not be taken away: %w", err)
	}
	v.o.Logger.Info("vault key changed", "place", place.String(), "recipient", next.Recipient().String())
	return nil
}
