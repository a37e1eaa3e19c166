package vault

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
)

// Place is where the key may be kept.
type Place string

// The places of a key.
const (
	InEnvironment Place = "env"     // an environment variable
	InFile        Place = "file"    // a key file
	InKeyring     Place = "keyring" // the keyring of the operating system
)

// NewKey makes a key in the form in which an environment variable or a key file has it.
func NewKey() (Secret, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return Secret{}, fmt.Errorf("make vault key: %w", err)
	}
	return NewSecret(id.String()), nil
}

const (
	maxKeys    = 16
	maxKeyText = 16 << 10
)

// errNoKey says that a place has no key.
var errNoKey = errors.New("no key")

// keyPlace is one place. Its methods are called by one writer at a time, or by readers.
type keyPlace interface {
	// load reads the keys; errNoKey, wrapped with where it looked, if there are none.
	load(ctx context.Context) (keys, error)
	// store replaces the keys. ErrFixedKey, wrapped: this place is only ever read.
	store(ctx context.Context, ids ...*age.X25519Identity) error
	// String names the place for messages.
	String() string
}

// keys are what a place has: one key, or while the key is changed the new one and the old one, in that order.
type keys struct {
	ids   []*age.X25519Identity
	fixed bool // the place, or what is in it, is not this program's to change
}

// of is the key that belongs to the recipient, or nil.
func (k keys) of(recipient string) *age.X25519Identity {
	for _, id := range k.ids {
		if id.Recipient().String() == recipient {
			return id
		}
	}
	return nil
}

// recipients lists the public halves, for messages.
func (k keys) recipients() string {
	names := make([]string, len(k.ids))
	for i, id := range k.ids {
		names[i] = id.Recipient().String()
	}
	return strings.Join(names, ", ")
}

// parseKeys reads identities that stand on lines of their own, as in files of the age tool, or with commas or blanks
// between them. No error quotes the text.
func parseKeys(text string) ([]*age.X25519Identity, error) {
	if len(text) > maxKeyText {
		return nil, fmt.Errorf("more than %d bytes are no key", maxKeyText)
	}
	var ids []*age.X25519Identity
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' }) {
			id, err := age.ParseX25519Identity(word)
			if err != nil {
				return nil, errors.New("it is not a key: expected AGE-SECRET-KEY-1…")
			}
			if ids = append(ids, id); len(ids) > maxKeys {
				return nil, fmt.Errorf("more than %d keys", maxKeys)
			}
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("it has no key in it: expected AGE-SECRET-KEY-1…")
	}
	return ids, nil
}

// managedMark begins what this program has written and may rewrite.
const managedMark = "# Key of an Ostiary vault. `ostiary vault rotate` rewrites this text."

func keyText(ids []*age.X25519Identity) string {
	var b strings.Builder
	b.WriteString(managedMark + "\n")
	for _, id := range ids {
		b.WriteString(id.String() + "\n")
	}
	return b.String()
}

// parseKeyText reads the text of a file or a keyring, where only what this program has written is its to change.
func parseKeyText(text string) (keys, error) {
	ids, err := parseKeys(text)
	return keys{ids: ids, fixed: !strings.HasPrefix(text, managedMark+"\n")}, err
}

// envPlace is an environment variable.
type envPlace struct {
	name   string
	lookup func(string) (string, bool)
}

func (p envPlace) String() string { return "the environment variable " + p.name }

func (p envPlace) load(context.Context) (keys, error) {
	text, ok := p.lookup(p.name)
	if !ok || text == "" {
		return keys{}, fmt.Errorf("%w in %s", errNoKey, p)
	}
	ids, err := parseKeys(text)
	if err != nil {
		return keys{}, fmt.Errorf("%s: %w", p, err)
	}
	return keys{ids: ids, fixed: true}, nil
}

func (p envPlace) store(context.Context, ...*age.X25519Identity) error {
	return fmt.Errorf("%s: %w", p, ErrFixedKey)
}
