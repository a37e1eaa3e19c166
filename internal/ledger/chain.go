package ledger

import "crypto/sha256"

// Chain is the growing end of a ledger: what the next record is hashed onto. The zero value is an empty ledger. It is not
// safe for concurrent use.
type Chain struct {
	Seq  int64 // of the last record
	Hash Hash  // of the last record

	buf []byte
}

// Append makes e the next record. Its canonical body is appended to *bodies and the record's Body is a part of that; the
// caller owns both. On error the chain has not moved.
func (c *Chain) Append(e Entry, bodies *[]byte) (Record, error) {
	if err := normalise(&e); err != nil {
		return Record{}, err
	}
	start := len(*bodies)
	b, err := AppendBody(*bodies, e.Body)
	*bodies = b
	if err != nil {
		return Record{}, err
	}
	e.Body = b[start:len(b):len(b)]
	r := Record{Seq: c.Seq + 1, Entry: e, Prev: c.Hash}
	r.Hash = c.leaf(&r)
	c.Seq, c.Hash = r.Seq, r.Hash
	return r, nil
}

// leaf is the RFC 6962 leaf hash of the record's canonical JSON: SHA-256 over a zero byte and the text, which is what
// tlog.RecordHash computes, without its allocations.
func (c *Chain) leaf(r *Record) Hash {
	c.buf = AppendCanonical(append(c.buf[:0], 0), r)
	return sha256.Sum256(c.buf)
}
