package vault

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"filippo.io/age"
)

// MaxSealed bounds what is sealed at once.
const MaxSealed = 64 << 20

const sealedMagic = "ostiary-sealed/1\n"

// Seal encrypts plaintext so that only the vault's key opens it again, together with the same associated bytes. It needs
// no key: evidence can be kept while the vault is locked. ErrNoVault: there is no vault yet to seal to, see [Vault.Init].
//
// What is sealed is secret and cannot be changed. That it was this gateway that sealed it is not proven: the recipient is
// public to who can read the data directory.
func (v *Vault) Seal(plaintext, associated []byte) ([]byte, error) {
	if len(plaintext) > MaxSealed {
		return nil, fmt.Errorf("seal: %w: %d bytes, at most %d are possible", ErrInvalid, len(plaintext), MaxSealed)
	}
	f, err := v.read()
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	if f == nil {
		return nil, fmt.Errorf("seal: %w: make one with `ostiary vault init`", ErrNoVault)
	}
	if id := v.remembered(f.recipient); id != nil {
		// With the key at hand it can be known that the recipient is ours and not slipped in.
		if err := f.verify(id); err != nil {
			return nil, fmt.Errorf("seal: %w", v.broken(err))
		}
	}
	to, err := age.ParseX25519Recipient(f.sealTo)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", v.broken(damaged("its recipient for sealing is not one")))
	}
	bound := sha256.Sum256(associated)
	b, err := encrypt(to, bound[:], plaintext)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return append([]byte(sealedMagic), b...), nil
}

// Unseal opens what Seal has made with the same associated bytes. It needs the key: ErrLocked without it. What is not
// whole, or belongs to other associated bytes, is ErrDamaged.
func (v *Vault) Unseal(ctx context.Context, sealed, associated []byte) ([]byte, error) {
	b, ok := bytes.CutPrefix(sealed, []byte(sealedMagic))
	if !ok {
		return nil, fmt.Errorf("unseal: %w", damaged("it does not begin as what is sealed does"))
	}
	st, err := v.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("unseal: %w", err)
	}
	if st.id == nil {
		return nil, fmt.Errorf("unseal: %w", ErrNoVault)
	}
	ids := make([]age.Identity, 0, len(st.content.Sealing))
	for i := len(st.content.Sealing) - 1; i >= 0; i-- { // newest first
		id, err := age.ParseX25519Identity(st.content.Sealing[i].Identity)
		if err != nil {
			return nil, fmt.Errorf("unseal: %w", v.broken(damaged("an identity for sealing is not one")))
		}
		ids = append(ids, id)
	}
	plain, err := decrypt(b, MaxSealed+sha256.Size, ids...)
	if err != nil {
		return nil, fmt.Errorf("unseal: %w", err)
	}
	bound := sha256.Sum256(associated)
	rest, ok := bytes.CutPrefix(plain, bound[:])
	if !ok {
		return nil, fmt.Errorf("unseal: %w", damaged("it was sealed for something else"))
	}
	return rest, nil
}
