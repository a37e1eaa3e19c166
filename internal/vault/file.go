package vault

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
)

const (
	magic   = "ostiary-vault/"
	version = "1"
	maxLine = 512 // bytes of the first line
)

// file is a vault file whose first line was read, and whose content was not.
type file struct {
	recipient string // of the key
	sealTo    string // recipient for sealing
	mac       []byte
	head      string // the first line up to the MAC
	body      []byte // the age file
}

// parseFile reads the first line. It needs no key, and does not believe what it reads: that takes [file.verify].
func parseFile(b []byte) (*file, error) {
	line, body, ok := bytes.Cut(b, []byte{'\n'})
	if !ok || len(line) > maxLine || !bytes.HasPrefix(line, []byte(magic)) {
		return nil, damaged("it does not begin as a vault does")
	}
	fields := strings.Split(string(line), " ")
	if v := strings.TrimPrefix(fields[0], magic); v != version {
		if v != "" && strings.Trim(v, "0123456789") == "" {
			return nil, fmt.Errorf("%w: it has version %s, this program knows %s", ErrNewer, v, version)
		}
		return nil, damaged("it does not begin as a vault does")
	}
	if len(fields) != 4 {
		return nil, damaged("its first line is not that of a vault")
	}
	for _, r := range fields[1:3] {
		if parsed, err := age.ParseX25519Recipient(r); err != nil || parsed.String() != r {
			return nil, damaged("its first line is not that of a vault")
		}
	}
	mac, err := hex.DecodeString(fields[3])
	if err != nil || len(mac) != sha256.Size || hex.EncodeToString(mac) != fields[3] {
		return nil, damaged("its first line is not that of a vault")
	}
	return &file{recipient: fields[1], sealTo: fields[2], mac: mac, head: strings.Join(fields[:3], " "), body: body}, nil
}

// verify says whether the holder of the identity wrote the file.
func (f *file) verify(id *age.X25519Identity) error {
	want, err := f.computeMAC(id)
	if err != nil {
		return err
	}
	if !hmac.Equal(want, f.mac) {
		return damaged("it was not written by who has its key, or was changed since")
	}
	return nil
}

func (f *file) computeMAC(id *age.X25519Identity) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, []byte(id.String()), nil, "ostiary vault file "+version, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(f.head))
	h.Write([]byte{'\n'})
	h.Write(f.body)
	return h.Sum(nil), nil
}

// open verifies the file and reads its content.
func (f *file) open(id *age.X25519Identity) (*content, error) {
	if err := f.verify(id); err != nil {
		return nil, err
	}
	plain, err := decrypt(f.body, maxContent, id)
	if err != nil {
		return nil, err
	}
	c, err := decodeContent(plain)
	if err != nil {
		return nil, err
	}
	if c.sealTo() != f.sealTo {
		return nil, damaged("its first line is not that of its content")
	}
	return c, nil
}

// encodeFile is the whole file, encrypted to the identity's recipient.
func encodeFile(c *content, id *age.X25519Identity) ([]byte, error) {
	plain, err := c.encode()
	if err != nil {
		return nil, err
	}
	f := &file{recipient: id.Recipient().String(), sealTo: c.sealTo()}
	f.head = magic + version + " " + f.recipient + " " + f.sealTo
	if f.body, err = encrypt(id.Recipient(), plain); err != nil {
		return nil, err
	}
	mac, err := f.computeMAC(id)
	if err != nil {
		return nil, err
	}
	return append([]byte(f.head+" "+hex.EncodeToString(mac)+"\n"), f.body...), nil
}

func encrypt(to age.Recipient, parts ...[]byte) ([]byte, error) {
	var out bytes.Buffer
	size := 512 // about the header
	for _, p := range parts {
		size += len(p) + len(p)>>12 + 16
	}
	out.Grow(size)
	w, err := age.Encrypt(&out, to)
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	for _, p := range parts {
		if _, err := w.Write(p); err != nil {
			return nil, fmt.Errorf("encrypt: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	return out.Bytes(), nil
}

// errOtherKey says that something is encrypted to none of the identities.
var errOtherKey = errors.New("it is encrypted to another key")

// decrypt reads at most limit bytes. Errors of age are not passed on: some quote what they could not read.
func decrypt(b []byte, limit int, ids ...age.Identity) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(b), ids...)
	if _, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return nil, errOtherKey
	}
	if err != nil {
		return nil, damaged("it is not an age file")
	}
	plain, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, damaged("it is cut off or changed")
	}
	if len(plain) > limit {
		return nil, damaged("it is larger than %d bytes", limit)
	}
	return plain, nil
}
