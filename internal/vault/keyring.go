package vault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"filippo.io/age"
	"github.com/zalando/go-keyring"
)

// Keyring keeps short secrets for the user who is logged in. Its methods may wait for that user.
type Keyring interface {
	// Get is ErrNotFound if there is no such item.
	Get(service, account string) (string, error)
	// Set makes or replaces an item.
	Set(service, account, value string) error
}

const keyringService = "ostiary"

var errKeyringSilent = errors.New("it does not answer: it may be locked, or wait for somebody who is not there")

// ringPlace is the operating system's keyring. Its calls cannot be ended from outside, so each runs in a goroutine that
// is left behind when its time is over; as long as one is left, no other is started, so there is never more than one.
type ringPlace struct {
	ring    Keyring
	account string
	timeout time.Duration
	turn    chan struct{} // capacity 1: a call runs
}

func (p ringPlace) String() string {
	return fmt.Sprintf("the operating system's keyring (service %q, account %q)", keyringService, p.account)
}

func (p ringPlace) load(ctx context.Context) (keys, error) {
	text, err := p.call(ctx, func() (string, error) { return p.ring.Get(keyringService, p.account) })
	if errors.Is(err, ErrNotFound) {
		return keys{}, fmt.Errorf("%w in %s", errNoKey, p)
	}
	if err != nil {
		return keys{}, fmt.Errorf("%s: %w", p, err)
	}
	k, err := parseKeyText(text)
	if err != nil {
		return keys{}, fmt.Errorf("%s: %w", p, err)
	}
	return k, nil
}

func (p ringPlace) store(ctx context.Context, ids ...*age.X25519Identity) error {
	text := keyText(ids)
	if _, err := p.call(ctx, func() (string, error) { return "", p.ring.Set(keyringService, p.account, text) }); err != nil {
		return fmt.Errorf("write to %s: %w", p, err)
	}
	return nil
}

// call bounds a call of the keyring in time.
func (p ringPlace) call(ctx context.Context, fn func() (string, error)) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, errKeyringSilent)
	defer cancel()
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	type answer struct {
		text string
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		defer func() { <-p.turn }()
		text, err := fn()
		answered <- answer{text, err}
	}()
	select {
	case a := <-answered:
		return a.text, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// osKeyring is the keyring of the operating system.
type osKeyring struct {
	env func(string) (string, bool)
}

func (k osKeyring) Get(service, account string) (string, error) {
	if err := keyringThere(k.env); err != nil {
		return "", err
	}
	v, err := keyring.Get(service, account)
	if errors.Is(err, keyring.ErrNotFound) {
		return "", ErrNotFound
	}
	return v, err
}

func (k osKeyring) Set(service, account, value string) error {
	if err := keyringThere(k.env); err != nil {
		return err
	}
	return keyring.Set(service, account, value)
}
