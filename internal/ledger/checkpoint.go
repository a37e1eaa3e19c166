package ledger

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Checkpoint is what a signature of the ledger promises: these are the first Size records, and no others.
type Checkpoint struct {
	Origin   string // which ledger, see [Origin]
	Size     int64  // number of records, which is the sequence of the last one
	Root     Hash   // RFC 6962 root over their hashes
	Previous int64  // Size of the checkpoint before; 0 for the first. It makes a missing checkpoint visible.
}

// ErrCheckpoint says that a checkpoint's text or signature is not right.
var ErrCheckpoint = errors.New("bad checkpoint")

const checkpointPrevious = "previous "

// Sign writes the checkpoint as a signed note (golang.org/x/mod/sumdb/note).
func (c Checkpoint) Sign(signer note.Signer) ([]byte, error) {
	msg, err := note.Sign(&note.Note{Text: c.text()}, signer)
	if err != nil {
		return nil, fmt.Errorf("sign checkpoint at %d: %w", c.Size, err)
	}
	return msg, nil
}

func (c Checkpoint) text() string {
	return c.Origin + "\n" + strconv.FormatInt(c.Size, 10) + "\n" +
		base64.StdEncoding.EncodeToString(c.Root[:]) + "\n" +
		checkpointPrevious + strconv.FormatInt(c.Previous, 10) + "\n"
}

// OpenCheckpoint verifies a signed note and reads it. Exactly one signature is taken, that of the verifier, in its only
// spelling: no byte of a note can be changed unnoticed.
func OpenCheckpoint(msg []byte, verifier note.Verifier) (Checkpoint, error) {
	n, err := note.Open(msg, note.VerifierList(verifier))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	if len(n.Sigs) != 1 || len(n.UnverifiedSigs) != 0 {
		return Checkpoint{}, fmt.Errorf("%w: it has more than one signature", ErrCheckpoint)
	}
	// Base64 leaves spare bits in its last character; a decoder that ignores them would take a changed one.
	if _, err := base64.StdEncoding.Strict().DecodeString(n.Sigs[0].Base64); err != nil {
		return Checkpoint{}, fmt.Errorf("%w: signature: %w", ErrCheckpoint, err)
	}
	if again := n.Text + "\n\u2014 " + n.Sigs[0].Name + " " + n.Sigs[0].Base64 + "\n"; again != string(msg) {
		return Checkpoint{}, fmt.Errorf("%w: signature is not in its only spelling", ErrCheckpoint)
	}
	c, err := parseCheckpoint(n.Text)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	if want := Origin(verifier.Name()); c.Origin != want {
		return Checkpoint{}, fmt.Errorf("%w: origin is %q, want %q", ErrCheckpoint, c.Origin, want)
	}
	return c, nil
}

func parseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[3], checkpointPrevious) {
		return Checkpoint{}, errors.New("it does not have four lines")
	}
	c := Checkpoint{Origin: lines[0]}
	var err error
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil {
		return Checkpoint{}, fmt.Errorf("size: %w", err)
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != len(c.Root) {
		return Checkpoint{}, errors.New("root hash is not 32 bytes of base64")
	}
	c.Root = Hash(root)
	if c.Previous, err = strconv.ParseInt(lines[3][len(checkpointPrevious):], 10, 64); err != nil {
		return Checkpoint{}, fmt.Errorf("previous: %w", err)
	}
	if c.Size < 1 || c.Previous < 0 || c.Previous >= c.Size || c.text() != text {
		return Checkpoint{}, errors.New("it is not in its only spelling")
	}
	return c, nil
}
