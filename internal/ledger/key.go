package ledger

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/ostiary/ostiary/internal/durable"
)

// Names of the key files in the data directory.
const (
	KeyFile      = "ledger.key" // the signing key, mode 0600
	VerifierFile = "ledger.pub" // the key that verifies; fit to be given away
)

const keyNamePrefix = "ostiary-ledger-"

// Key signs the checkpoints of one ledger.
type Key struct {
	Signer   note.Signer
	Verifier string // in the encoding of note.NewVerifier
}

// Origin is the first line of the checkpoints that a key of that name signs: "ostiary-ledger" and the ledger's id.
func Origin(keyName string) string {
	return "ostiary-ledger " + strings.TrimPrefix(keyName, keyNamePrefix)
}

// ReadKey reads the key of a data directory. A missing one is fs.ErrNotExist, wrapped.
func ReadKey(dir string) (Key, error) {
	path := filepath.Join(dir, KeyFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return Key{}, fmt.Errorf("read ledger key: %w", err)
	}
	// Neither error below may quote the file: it is a secret.
	signer, err := note.NewSigner(strings.TrimSpace(string(b)))
	if err != nil {
		return Key{}, fmt.Errorf("read ledger key %s: it is not a signing key", path)
	}
	verifier, err := ReadVerifier(dir)
	if err != nil {
		return Key{}, err
	}
	v, err := note.NewVerifier(verifier)
	if err != nil || v.Name() != signer.Name() || v.KeyHash() != signer.KeyHash() {
		return Key{}, fmt.Errorf("read ledger key %s: %s does not belong to it", path, VerifierFile)
	}
	return Key{Signer: signer, Verifier: verifier}, nil
}

// ReadVerifier reads the verifier key of a data directory.
func ReadVerifier(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, VerifierFile))
	if err != nil {
		return "", fmt.Errorf("read ledger verifier key: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// CreateKey makes a key for a new ledger and keeps it in the data directory, where there must be none. The public half is
// written first: a signing key whose other half was lost in a crash would be of no use.
func CreateKey(dir string, random io.Reader) (Key, error) {
	path := filepath.Join(dir, KeyFile)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return Key{}, fmt.Errorf("create ledger key %s: %w", path, fs.ErrExist)
	}
	var id [8]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return Key{}, fmt.Errorf("create ledger key: %w", err)
	}
	secret, verifier, err := note.GenerateKey(random, keyNamePrefix+hex.EncodeToString(id[:]))
	if err != nil {
		return Key{}, fmt.Errorf("create ledger key: %w", err)
	}
	if err := durable.Replace(durable.OS{}, filepath.Join(dir, VerifierFile), []byte(verifier+"\n")); err != nil {
		return Key{}, err
	}
	if err := durable.Replace(durable.OS{}, path, []byte(secret+"\n")); err != nil {
		return Key{}, err
	}
	return ReadKey(dir)
}
