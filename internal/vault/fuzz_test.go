package vault

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"filippo.io/age"
)

func testIdentity(tb testing.TB) *age.X25519Identity {
	tb.Helper()
	// A key of no vault.
	id, err := age.ParseX25519Identity("AGE-SECRET-KEY-184JMZMVQH3E6U0PSL869004Y3U2NYV7R30EU99CSEDNPH02YUVFSZW44VU")
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

// What reads a file never panics, and what it does not take is damaged or newer.
func FuzzFile(f *testing.F) {
	id := testIdentity(f)
	c, err := newContent(time.Unix(0, 0))
	if err != nil {
		f.Fatal(err)
	}
	good, err := encodeFile(c, id)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte(magic + "2 x\n"))
	f.Add([]byte(magic + "1 a b c\nage-encryption.org/v1\n-> X25519 x\n\n--- x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := parseFile(b)
		if err == nil {
			var c *content
			if c, err = file.open(id); err == nil && (c.sealTo() != file.sealTo || id.Recipient().String() != file.recipient) {
				t.Fatal("the first line is not that of the content")
			}
			_, _ = decrypt(file.body, maxContent, id) // what is behind the MAC has to stand alone, too
		}
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
			t.Fatalf("got %v", err)
		}
	})
}

// What reads content takes what was written and nothing else.
func FuzzContent(f *testing.F) {
	c, err := newContent(time.Unix(0, 0))
	if err != nil {
		f.Fatal(err)
	}
	c.Entries["a/b"] = entry{stamp(time.Unix(1, 0)), "x\u2028\"é"}
	good, err := c.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"entries":{},"sealing":[]}`))
	f.Add([]byte(`{"entries":{"a":{"changed":"2026-01-01T00:00:00+01:00","value":"x"}},"sealing":[],"sealing":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeContent(b)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("got %v", err)
			}
			return
		}
		again, err := c.encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%q was read and is written as %q, %v", b, again, err)
		}
		c.sealTo()
	})
}

// What reads keys finds the keys that it has written, and quotes none.
func FuzzKeyText(f *testing.F) {
	id := testIdentity(f)
	f.Add(keyText([]*age.X25519Identity{id, id}))
	f.Add("# comment\r\n\r\n" + id.String() + "," + id.String())
	f.Add("AGE-SECRET-KEY-1")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := parseKeyText(text)
		if err != nil {
			return
		}
		again, err := parseKeyText(keyText(k.ids))
		if err != nil || again.fixed || again.recipients() != k.recipients() {
			t.Fatalf("keys of %s are read back as %s, %v", k.recipients(), again.recipients(), err)
		}
	})
}
