package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"time"
)

// Burial takes the content of records away, for good: what remains of each is a tombstone, with the record's hash. So the
// chain, the tree and every signed checkpoint still hold, though the content cannot be checked any more. A record of its
// own, of [KindPruned], vouches for the tombstones: without one, a content that is missing is a content that was taken.
type Burial struct {
	By     string // the principal, or who decides when no person does
	At     time.Time
	Before time.Time // only what is older was to go
}

// prunedBody is the body of a ledger.pruned record.
type prunedBody struct {
	Before string `json:"before"`
	Count  int64  `json:"count"`
	Digest string `json:"digest"` // over the lines of all its tombstones
	First  int64  `json:"first"`
	Last   int64  `json:"last"`
}

// Of makes the tombstones of records, which stand in order, and the entry that vouches for them. at is the sequence that it
// will have.
func (b Burial) Of(records []Record, at int64) ([]Record, Entry, error) {
	if len(records) == 0 || b.By == "" {
		return nil, Entry{}, fmt.Errorf("prune %d records: neither none nor by nobody", len(records))
	}
	tombs := make([]Record, len(records))
	g := newGrave()
	for i := range records {
		r := &records[i]
		if r.Pruned != 0 || r.Kind == KindPruned || r.Seq >= at || i > 0 && r.Seq <= records[i-1].Seq {
			return nil, Entry{}, fmt.Errorf("prune record %d: it is pruned already, or vouches for others, or does not stand in order", r.Seq)
		}
		tombs[i] = r.Tombstone(at)
		g.add(&tombs[i])
	}
	body := make([]byte, 0, 192)
	body = append(body, `{"before":"`...)
	body = b.Before.UTC().AppendFormat(body, time.RFC3339Nano)
	body = append(body, `","count":`...)
	body = strconv.AppendInt(body, g.count, 10)
	body = append(body, `,"digest":"`...)
	body = append(body, g.digest()...)
	body = append(body, `","first":`...)
	body = strconv.AppendInt(body, g.first, 10)
	body = append(body, `,"last":`...)
	body = strconv.AppendInt(body, g.last, 10)
	body = append(body, '}')
	return tombs, Entry{Time: b.At, Kind: KindPruned, Principal: b.By, Body: body}, nil
}

// Tombstone is what remains of a record whose content the ledger.pruned record with that sequence has taken away.
func (r Record) Tombstone(pruned int64) Record {
	return Record{Seq: r.Seq, Entry: Entry{Time: r.Time, Kind: r.Kind, CallID: r.CallID}, Prev: r.Prev, Hash: r.Hash, Pruned: pruned}
}

// appendTombstone appends the one spelling of a tombstone: its line of an export.
func appendTombstone(dst []byte, r *Record) []byte {
	dst = append(dst, `{"call":`...)
	dst = appendString(dst, string(r.CallID))
	dst = append(dst, `,"hash":"`...)
	dst = hex.AppendEncode(dst, r.Hash[:])
	dst = append(dst, `","kind":`...)
	dst = appendString(dst, string(r.Kind))
	dst = append(dst, `,"prev":"`...)
	dst = hex.AppendEncode(dst, r.Prev[:])
	dst = append(dst, `","pruned":`...)
	dst = strconv.AppendInt(dst, r.Pruned, 10)
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendInt(dst, r.Seq, 10)
	dst = append(dst, `,"time":"`...)
	dst = r.Time.UTC().AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"', '}')
}

// grave is the tombstones that one record vouches for, as they are met.
type grave struct {
	first, last, count int64
	sum                hash.Hash
	line               []byte // scratch
}

func newGrave() *grave { return &grave{sum: sha256.New()} }

func (g *grave) add(r *Record) {
	if g.count == 0 {
		g.first = r.Seq
	}
	g.last = r.Seq
	g.count++
	g.line = append(appendTombstone(g.line[:0], r), '\n')
	g.sum.Write(g.line)
}

func (g *grave) digest() string { return "sha256:" + hex.EncodeToString(g.sum.Sum(nil)) }

// tombstone checks what can be known of a tombstone when it is met.
func (w *Walker) tombstone(r *Record) error {
	if r.Pruned <= r.Seq || r.Kind == KindPruned || r.Session != "" || r.Principal != "" || len(r.Body) != 0 {
		return &Problem{r.Seq, FaultTombstone, "it is not what a pruned record leaves behind"}
	}
	if w.graves == nil {
		w.graves = map[int64]*grave{}
	}
	g := w.graves[r.Pruned]
	if g == nil {
		g = newGrave()
		w.graves[r.Pruned] = g
	}
	g.add(r)
	w.report.Tombstones++
	return nil
}

// vouch checks the tombstones that name r against what r says of them.
func (w *Walker) vouch(r *Record) error {
	g := w.graves[r.Seq]
	delete(w.graves, r.Seq)
	if r.Kind != KindPruned || r.Pruned != 0 {
		if g != nil {
			return &Problem{g.first, FaultTombstone, fmt.Sprintf("record %d, which it names, has not pruned it", r.Seq)}
		}
		return nil
	}
	b, err := read[prunedBody](r)
	switch {
	case err != nil || b.Count < 1 || b.First < 1 || b.Last >= r.Seq:
		return &Problem{r.Seq, FaultTombstone, "it does not say what it has pruned"}
	case b.First < w.begin:
		if g != nil { // some of them, or all, are before the beginning
			w.report.Unvouched += g.count
		}
		return nil
	case g == nil:
		return &Problem{r.Seq, FaultTombstone, fmt.Sprintf("it says that %d records from %d to %d were pruned, and they are not", b.Count, b.First, b.Last)}
	case g.first != b.First || g.last != b.Last || g.count != b.Count || g.digest() != b.Digest:
		return &Problem{min(g.first, b.First), FaultTombstone, fmt.Sprintf("the tombstones from %d to %d are not those that record %d has left", g.first, g.last, r.Seq)}
	}
	return nil
}

// unvouched names a tombstone whose record has not come; nil if there is none.
func (w *Walker) unvouched() *Problem {
	var p *Problem
	for seq, g := range w.graves {
		if p == nil || g.first < p.Seq {
			p = &Problem{g.first, FaultTombstone, fmt.Sprintf("record %d, which it names, is not there", seq)}
		}
	}
	return p
}
