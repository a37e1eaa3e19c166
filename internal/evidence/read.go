package evidence

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"
)

// Opener opens what a [Sealer] has made. It needs the vault's key and may wait for it.
type Opener interface {
	Unseal(ctx context.Context, sealed, associated []byte) ([]byte, error)
}

// Load reads an item with its sealed payload. To open it takes [Read], outside of the transaction. What is purged or whose
// time is over is ErrOver.
func Load(v View, id ID, now time.Time) (Sealed, error) {
	i, ok, err := v.Evidence(id)
	if err != nil {
		return Sealed{}, fmt.Errorf("read evidence %s: %w", clip(string(id), maxText), err)
	}
	if !ok {
		return Sealed{}, fmt.Errorf("read evidence %s: %w", clip(string(id), maxText), ErrUnknown)
	}
	if i.State == Purged || i.over(now) {
		return Sealed{}, fmt.Errorf("read evidence %s: %w", id, ErrOver)
	}
	b, ok, err := v.SealedEvidence(id)
	if err != nil {
		return Sealed{}, fmt.Errorf("read evidence %s: %w", id, err)
	}
	if !ok {
		return Sealed{}, fmt.Errorf("read evidence %s: %w: its payload is missing", id, ErrDamaged)
	}
	return Sealed{Item: i, Payload: b}, nil
}

// Read opens the payload: the very bytes that were held, whatever the state of the item. Whether they may go on is for
// [Item.Admitted] to say.
func Read(ctx context.Context, o Opener, h Sealed) ([]byte, error) {
	if h.Payload == nil {
		return nil, fmt.Errorf("read evidence %s: %w", h.Item.ID, ErrOver)
	}
	b, err := o.Unseal(ctx, h.Payload, h.Item.associated())
	if err != nil {
		return nil, fmt.Errorf("read evidence %s: %w", h.Item.ID, err)
	}
	if int64(len(b)) != h.Item.Size || sha256.Sum256(b) != h.Item.SHA256 {
		return nil, fmt.Errorf("read evidence %s: %w: its hash is another", h.Item.ID, ErrDamaged)
	}
	return b, nil
}
