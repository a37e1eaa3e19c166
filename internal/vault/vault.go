package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"filippo.io/age"
)

// Vault is the vault of one data directory. It keeps no file open. All methods may be called concurrently, from several
// processes too.
type Vault struct {
	o      Options
	path   string
	places []keyPlace

	mu  sync.Mutex
	key *age.X25519Identity // the last that opened the file; guarded by mu
}

// Open makes a vault of what the data directory has. It reads the first line alone and asks for no key: a vault that is
// locked can be opened, and what needs a secret finds out. A missing file is an empty vault; a damaged one is ErrDamaged.
func Open(o Options) (*Vault, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("open vault: %w", err)
	}
	v := &Vault{o: o, path: filepath.Join(o.Dir, File), places: o.places()}
	if _, err := v.read(); err != nil {
		return nil, fmt.Errorf("open vault: %w", err)
	}
	return v, nil
}

// Get is the secret of that name, or ErrNotFound, ErrLocked or ErrDamaged, wrapped.
func (v *Vault) Get(ctx context.Context, name string) (Secret, error) {
	if err := CheckName(name); err != nil {
		return Secret{}, err
	}
	st, err := v.load(ctx)
	if err != nil {
		return Secret{}, fmt.Errorf("read secret %s: %w", name, err)
	}
	e, ok := st.content.Entries[name]
	if !ok {
		return Secret{}, fmt.Errorf("read secret %s: %w: add it with `ostiary vault set %s`", name, ErrNotFound, name)
	}
	return NewSecret(e.Value), nil
}

// Info is what may be told of a secret.
type Info struct {
	Name    string
	Changed time.Time
}

// List lists the secrets by name. Names are secret too: it needs the key.
func (v *Vault) List(ctx context.Context) ([]Info, error) {
	st, err := v.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	var infos []Info
	for _, name := range slices.Sorted(maps.Keys(st.content.Entries)) {
		infos = append(infos, Info{name, st.content.Entries[name].Changed})
	}
	return infos, nil
}

// Check says whether the vault can be read: nil, also when it is empty, or ErrLocked or ErrDamaged, wrapped.
func (v *Vault) Check(ctx context.Context) error {
	if _, err := v.load(ctx); err != nil {
		return fmt.Errorf("check vault: %w", err)
	}
	return nil
}

// state is an open vault. The identity of one that has no file yet is nil.
type state struct {
	content *content
	id      *age.X25519Identity
}

// read reads the file up to its content; nil if there is none.
func (v *Vault) read() (*file, error) {
	b, err := v.o.disk.read(v.path, maxFile, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read vault: %w", err)
	}
	f, err := parseFile(b)
	if err != nil {
		return nil, v.broken(err)
	}
	return f, nil
}

// broken says which file is damaged, and what to do.
func (v *Vault) broken(err error) error {
	if errors.Is(err, ErrDamaged) {
		return fmt.Errorf("vault %s: %w: restore a backup, or move the file away to begin with an empty vault", v.path, err)
	}
	return fmt.Errorf("vault %s: %w", v.path, err)
}

// load opens the vault with the key.
func (v *Vault) load(ctx context.Context) (state, error) {
	f, err := v.read()
	for {
		if err != nil {
			return state{}, err
		}
		if f == nil {
			return state{content: &content{}}, nil
		}
		id, lockedErr := v.identity(ctx, f)
		if lockedErr == nil {
			c, err := f.open(id)
			if err != nil {
				return state{}, v.broken(err)
			}
			v.remember(id)
			return state{c, id}, nil
		}
		// Between the reading of the file and of the key both may have been replaced: then it is another file now. It is
		// not replaced so often that this would not end; if it were, ctx ends it.
		before := f
		if f, err = v.read(); err == nil && f != nil && (f.recipient == before.recipient || ctx.Err() != nil) {
			return state{}, lockedErr
		}
	}
}

// identity finds the key of the file.
func (v *Vault) identity(ctx context.Context, f *file) (*age.X25519Identity, error) {
	if id := v.remembered(f.recipient); id != nil {
		return id, nil
	}
	_, k, err := v.keys(ctx)
	if err != nil {
		return nil, err
	}
	if id := k.of(f.recipient); id != nil {
		return id, nil
	}
	return nil, &LockedError{
		Cause:  fmt.Errorf("it belongs to the key of %s, and the key that was found is that of %s", f.recipient, k.recipients()),
		Advice: "put the right key back",
	}
}

// keys reads the keys of the first place that has one.
func (v *Vault) keys(ctx context.Context) (keyPlace, keys, error) {
	var looked []string
	for _, p := range v.places {
		k, err := p.load(ctx)
		if err == nil {
			return p, k, nil
		}
		looked = append(looked, err.Error())
		if !errors.Is(err, errNoKey) {
			return nil, keys{}, &LockedError{Cause: err, Advice: "make the key readable there"}
		}
	}
	return nil, keys{}, &LockedError{
		Cause:  fmt.Errorf("%w: %s", errNoKey, strings.Join(looked, "; ")),
		Advice: "put the key back; if it is lost, so are the secrets: move " + v.path + " away to begin with an empty vault",
	}
}

func (v *Vault) remembered(recipient string) *age.X25519Identity {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.key != nil && v.key.Recipient().String() == recipient {
		return v.key
	}
	return nil
}

func (v *Vault) remember(id *age.X25519Identity) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.key = id
}

func sameIdentity(a, b *age.X25519Identity) bool {
	return bytes.Equal([]byte(a.String()), []byte(b.String()))
}
