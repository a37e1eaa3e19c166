package evidence

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits bound what is kept. Zero means the default.
type Limits struct {
	MaxPayload int64         // bytes of one payload. 8 MiB
	MaxTotal   int64         // bytes of all sealed payloads, of which one provider has half at most. 1 GiB
	Retention  time.Duration // how long an item is kept. 30 days
}

// DefaultLimits is what zero values mean.
func DefaultLimits() Limits {
	return Limits{MaxPayload: 8 << 20, MaxTotal: 1 << 30, Retention: 30 * 24 * time.Hour}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	if l.MaxPayload <= 0 {
		l.MaxPayload = d.MaxPayload
	}
	if l.MaxTotal <= 0 {
		l.MaxTotal = d.MaxTotal
	}
	if l.Retention <= 0 {
		l.Retention = d.Retention
	}
	return l
}

// Bounds of the texts of an item.
const (
	maxExcerpt = 2 << 10
	maxText    = 512 // a name, a decider
	maxReasons = 64
	maxReason  = 2 << 10 // a decider's words
)

var (
	// ErrInvalid says that an item or a decision lacks what it must have.
	ErrInvalid = errors.New("not fit to be kept as evidence")
	// ErrUnknown says that there is no such item.
	ErrUnknown = errors.New("no such evidence")
	// ErrHeld says that nobody has decided yet.
	ErrHeld = errors.New("evidence is held")
	// ErrDelivered says that the result was handed over already.
	ErrDelivered = errors.New("evidence was handed over already")
	// ErrDecided says that the step does not lead from the item's state.
	ErrDecided = errors.New("evidence is decided already")
	// ErrOver says that the item is purged, or its time is over.
	ErrOver = errors.New("evidence is no longer kept")
	// ErrDamaged says that a payload is not what was held.
	ErrDamaged = errors.New("evidence is damaged")
)

// Sealer encrypts so that only the vault's key opens it again, with the same associated bytes. It needs no key itself and
// may be called concurrently.
type Sealer interface {
	Seal(plaintext, associated []byte) ([]byte, error)
}

// Sealed is an item and its payload, ready to be kept, or read back. A payload of nil is none.
type Sealed struct {
	Item    Item
	Payload []byte
	limits  Limits
}

// Hold seals what was held. It is done outside of any transaction, for it takes time with the size of the payload. The item
// says what it is: all but SHA256, Size, Expires, State, decisions and delivery, which are filled in.
//
// A payload that is too large is not kept, and neither is one that cannot be sealed; then the item is purged from the
// beginning and says why. In the latter case the fault is returned beside the item, which is to be kept all the same: that
// something was held is no less true. ErrInvalid comes without an item.
func Hold(s Sealer, i Item, payload []byte, l Limits) (Sealed, error) {
	l = l.withDefaults()
	if i.ID == "" || i.Provider == "" || i.Verdict == "" || i.Created.IsZero() || len(i.ID) > maxText || int(i.Direction) >= len(directionNames) {
		return Sealed{}, fmt.Errorf("hold evidence %q: %w: id, provider, direction, verdict and time are needed", clip(string(i.ID), maxText), ErrInvalid)
	}
	i.Created = i.Created.UTC().Round(0)
	i.Expires = i.Created.Add(l.Retention)
	i.SHA256, i.Size = sha256.Sum256(payload), int64(len(payload))
	i.State, i.Decision, i.Purge, i.Delivery = Held, Decision{}, Decision{}, Delivery{}
	i.Session, i.Principal = clip(i.Session, maxText), clip(i.Principal, maxText)
	i.Excerpt = clip(i.Excerpt, maxExcerpt)
	i.Reasons = clipAll(i.Reasons)
	h := Sealed{Item: i, limits: l}
	if i.Size > l.MaxPayload {
		return h.without(fmt.Sprintf("the payload has %d bytes, at most %d are kept", i.Size, l.MaxPayload)), nil
	}
	var err error
	if h.Payload, err = s.Seal(payload, i.associated()); err != nil {
		return h.without("the payload could not be sealed"), fmt.Errorf("hold evidence %s: %w", i.ID, err)
	}
	return h, nil
}

// without is the item when its payload is not kept.
func (h Sealed) without(why string) Sealed {
	h.Item.purge(Decision{By: Gateway, At: h.Item.Created, Reason: why})
	h.Payload = nil
	return h
}

// associated binds a payload to its item.
func (i *Item) associated() []byte {
	b := []byte("ostiary evidence 1")
	for _, part := range []string{string(i.ID), string(i.CallID), i.Provider, string(i.Tool), i.Direction.String(), i.SHA256.String()} {
		b = fmt.Appendf(b, "\n%d:%s", len(part), part)
	}
	return b
}

func clipAll(texts []string) []string {
	if len(texts) > maxReasons {
		texts = texts[:maxReasons]
	}
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = clip(t, maxText)
	}
	return out
}

// clip bounds a text, at the end of a character, and makes it valid UTF-8.
func clip(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
