package vault

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Names of the files in the data directory, and of the environment variable.
const (
	File        = "vault.age"
	KeyFile     = "vault.key" // mode 0600
	LockFile    = "vault.lock"
	KeyVariable = "OSTIARY_VAULT_KEY"
)

// Options says where and how a vault is kept. Only Dir is required; zero means the default.
type Options struct {
	Dir    string           // the data directory
	Logger *slog.Logger     // default: none
	Now    func() time.Time // default: time.Now

	Keys        []Place // where the key is looked for, in order. A new one goes to the first that can be written. env, file, keyring
	KeyVariable string  // OSTIARY_VAULT_KEY
	KeyFile     string  // of this vault alone. vault.key in Dir
	Account     string  // of the keyring's item. The absolute path of Dir

	Env            func(string) (string, bool) // default: os.LookupEnv
	Keyring        Keyring                     // default: the operating system's
	KeyringTimeout time.Duration               // how long the keyring may take, its user included. 5 s
	LockTimeout    time.Duration               // how long a writer waits for others. 5 s

	disk disk // for tests
}

// DefaultOptions is what zero values mean, for the data directory dir.
func DefaultOptions(dir string) Options {
	o := Options{
		Dir:            dir,
		Logger:         slog.New(slog.DiscardHandler),
		Now:            time.Now,
		Keys:           []Place{InEnvironment, InFile, InKeyring},
		KeyVariable:    KeyVariable,
		KeyFile:        filepath.Join(dir, KeyFile),
		Account:        dir,
		Env:            os.LookupEnv,
		KeyringTimeout: 5 * time.Second,
		LockTimeout:    5 * time.Second,
		disk:           osDisk{},
	}
	if abs, err := filepath.Abs(dir); err == nil {
		o.Account = abs
	}
	return o
}

func (o Options) withDefaults() Options {
	d := DefaultOptions(o.Dir)
	if o.Logger == nil {
		o.Logger = d.Logger
	}
	if o.Now == nil {
		o.Now = d.Now
	}
	if o.Keys == nil {
		o.Keys = d.Keys
	}
	if o.Env == nil {
		o.Env = d.Env
	}
	if o.Keyring == nil {
		o.Keyring = osKeyring{o.Env}
	}
	if o.disk == nil {
		o.disk = d.disk
	}
	setDefault(&o.KeyVariable, d.KeyVariable)
	setDefault(&o.KeyFile, d.KeyFile)
	setDefault(&o.Account, d.Account)
	setDefault(&o.KeyringTimeout, d.KeyringTimeout)
	setDefault(&o.LockTimeout, d.LockTimeout)
	return o
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (o Options) validate() error {
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("no data directory is given"))
	}
	if len(o.Keys) == 0 {
		errs = append(errs, errors.New("no place for the key is given"))
	}
	for i, p := range o.Keys {
		if p != InEnvironment && p != InFile && p != InKeyring {
			errs = append(errs, fmt.Errorf("place of the key %q: expected env, file or keyring", p))
		}
		if slices.Contains(o.Keys[:i], p) {
			errs = append(errs, fmt.Errorf("place of the key %q is given twice", p))
		}
	}
	if o.KeyringTimeout < 0 || o.LockTimeout < 0 {
		errs = append(errs, errors.New("a bound is negative"))
	}
	return errors.Join(errs...)
}

// places are the places of the key, in order.
func (o Options) places() []keyPlace {
	var places []keyPlace
	for _, p := range o.Keys {
		switch p {
		case InEnvironment:
			places = append(places, envPlace{o.KeyVariable, o.Env})
		case InFile:
			places = append(places, filePlace{o.KeyFile, o.disk})
		case InKeyring:
			places = append(places, ringPlace{o.Keyring, o.Account, o.KeyringTimeout, make(chan struct{}, 1)})
		}
	}
	return places
}
