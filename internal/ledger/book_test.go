package ledger

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ostiary/ostiary/call"
)

// book is a ledger in memory: a View, and what a store does to write one.
type book struct {
	signer   note.Signer
	verifier string
	records  []Record
	notes    []signedNote
	chain    Chain
	edge     Edge
}

// newKey makes a key that is the same for each seed.
func newKey(t interface{ Fatal(...any) }, seed byte) (note.Signer, string) {
	random := rand.NewChaCha8([32]byte{seed})
	secret, verifier, err := note.GenerateKey(random, fmt.Sprintf("ostiary-ledger-%02x", seed))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		t.Fatal(err)
	}
	return signer, verifier
}

// newBook writes records with a checkpoint after each of points.
func newBook(t interface{ Fatal(...any) }, records int, points ...int64) *book {
	b := &book{}
	b.signer, b.verifier = newKey(t, 1)
	for i := range records {
		b.append(t, Entry{
			Time: time.Date(2026, 9, 1, 12, 0, i, i*1000, time.UTC), Kind: KindCallIntent, CallID: call.ID(fmt.Sprint("c", i/2)), Session: "s", Principal: "alice",
			Body: fmt.Appendf(nil, `{"b":%d,"a":"\u0041"}`, i),
		})
		for _, p := range points {
			if p == b.chain.Seq {
				b.sign(t)
			}
		}
	}
	return b
}

func (b *book) append(t interface{ Fatal(...any) }, e Entry) {
	var body []byte
	r, err := b.chain.Append(e, &body)
	if err != nil {
		t.Fatal(err)
	}
	b.records = append(b.records, r)
	b.edge.Append(r.Hash)
}

func (b *book) sign(t interface{ Fatal(...any) }) {
	c := Checkpoint{Origin: Origin(b.signer.Name()), Size: b.edge.Size(), Root: b.edge.Root()}
	if n := len(b.notes); n > 0 {
		c.Previous = b.notes[n-1].seq
	}
	msg, err := c.Sign(b.signer)
	if err != nil {
		t.Fatal(err)
	}
	b.notes = append(b.notes, signedNote{c.Size, msg})
}

// clone is a copy whose records and checkpoints may be changed.
func (b *book) clone() *book {
	c := *b
	c.records = append([]Record(nil), b.records...)
	for i := range c.records {
		c.records[i].Body = bytes.Clone(c.records[i].Body)
	}
	c.notes = append([]signedNote(nil), b.notes...)
	return &c
}

// rehash makes the chain fit from record i on, as somebody who can write the store but has no key would.
func (b *book) rehash(i int) {
	var prev Hash
	if i > 0 {
		prev = b.records[i-1].Hash
	}
	for ; i < len(b.records); i++ {
		r := &b.records[i]
		r.Seq, r.Prev = int64(i+1), prev
		r.Hash = sha256.Sum256(AppendCanonical([]byte{0}, r))
		prev = r.Hash
	}
}

func (b *book) Records(after int64, limit int, yield func(Record) error) error {
	for _, r := range b.records {
		if r.Seq <= after {
			continue
		}
		if err := yield(r); err != nil {
			return err
		}
		if limit--; limit == 0 {
			break
		}
	}
	return nil
}

func (b *book) RecordsOfCall(id call.ID, yield func(Record) error) error {
	for _, r := range b.records {
		if r.CallID == id {
			if err := yield(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *book) RecordsOfKind(kind Kind, yield func(Record) error) error {
	for _, r := range b.records {
		if r.Kind == kind && r.CallID == "" {
			if err := yield(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *book) Head() (int64, Hash, error) {
	if len(b.records) == 0 {
		return 0, Hash{}, nil
	}
	r := b.records[len(b.records)-1]
	return r.Seq, r.Hash, nil
}

func (b *book) Checkpoints(yield func(int64, []byte) error) error {
	for _, n := range b.notes {
		if err := yield(n.seq, n.msg); err != nil {
			return err
		}
	}
	return nil
}

// export is the book's export as lines, without their newlines.
func (b *book) export(t *testing.T, o ExportOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Export(t.Context(), b, b.verifier, &out, o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func verify(t *testing.T, src Source, verifier string, known ...[]byte) Report {
	t.Helper()
	report, err := Verify(t.Context(), src, verifier, known...)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func verifyExport(t *testing.T, b *book, export []byte, known ...[]byte) Report {
	t.Helper()
	return verify(t, FromExport(bytes.NewReader(export)), b.verifier, known...)
}
