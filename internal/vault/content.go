package vault

import (
	"bytes"
	"fmt"
	"time"

	"filippo.io/age"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxSealing bounds the identities for sealing that a vault keeps. Each [Vault.Rotate] adds one.
const maxSealing = 256

// content is what the vault file hides. Its canonical JSON has the members in the order of RFC 8785.
type content struct {
	Entries map[string]entry `json:"entries"`
	Sealing []sealing        `json:"sealing"` // oldest first, never empty
}

type entry struct {
	Changed time.Time `json:"changed"`
	Value   string    `json:"value"`
}

// sealing is an identity that evidence is or was sealed to.
type sealing struct {
	Created  time.Time `json:"created"`
	Identity string    `json:"identity"`
}

// newContent is that of an empty vault.
func newContent(now time.Time) (*content, error) {
	c := &content{Entries: map[string]entry{}}
	return c, c.addSealing(now)
}

func (c *content) addSealing(now time.Time) error {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	c.Sealing = append(c.Sealing, sealing{Created: stamp(now), Identity: id.String()})
	return nil
}

// stamp is a time as the content keeps it.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// sealTo is the recipient of the newest identity for sealing.
func (c *content) sealTo() string {
	id, err := age.ParseX25519Identity(c.Sealing[len(c.Sealing)-1].Identity)
	if err != nil {
		panic("vault: content was not checked") // decodeContent and addSealing let no other in
	}
	return id.Recipient().String()
}

// encode is the canonical JSON of the content.
func (c *content) encode() ([]byte, error) {
	b, err := json.Marshal(c, json.Deterministic(true))
	if err != nil {
		return nil, damaged("the content cannot be encoded") // the error may quote it
	}
	v := jsontext.Value(b)
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return nil, damaged("the content cannot be encoded")
	}
	if len(v) > maxContent {
		return nil, fmt.Errorf("%w: all together have %d bytes, at most %d are possible", ErrInvalid, len(v), maxContent)
	}
	return v, nil
}

// decodeContent reads what encode has written, and nothing else. No error quotes the content: it is secret.
func decodeContent(b []byte) (*content, error) {
	if len(b) > maxContent {
		return nil, damaged("the content has more than %d bytes", maxContent)
	}
	var c content
	if err := json.Unmarshal(b, &c, json.RejectUnknownMembers(true)); err != nil {
		return nil, damaged("the content is not that of a vault")
	}
	if c.Entries == nil || len(c.Entries) > MaxEntries || len(c.Sealing) == 0 || len(c.Sealing) > maxSealing {
		return nil, damaged("the content is not that of a vault")
	}
	for name, e := range c.Entries {
		if CheckName(name) != nil || checkValue(e.Value) != nil {
			return nil, damaged("an entry is not that of a vault")
		}
	}
	for _, s := range c.Sealing {
		if _, err := age.ParseX25519Identity(s.Identity); err != nil {
			return nil, damaged("an identity for sealing is not one")
		}
	}
	if again, err := c.encode(); err != nil || !bytes.Equal(again, b) {
		return nil, damaged("the content is not canonical")
	}
	return &c, nil
}
