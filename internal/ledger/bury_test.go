package ledger

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// bury takes the content of records away, as a store does.
func (b *book) bury(t interface{ Fatal(...any) }, seqs ...int64) {
	var records []Record
	for _, seq := range seqs {
		records = append(records, b.records[seq-1])
	}
	tombs, e, err := Burial{By: "op", At: b.records[len(b.records)-1].Time, Before: time.Unix(1e9, 0)}.Of(records, b.chain.Seq+1)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tombs {
		b.records[r.Seq-1] = r
	}
	b.append(t, e)
}

// buried is a ledger of 12 records, 4 to 7 and 10 of which were pruned by record 13, and 2 and 11 by record 14.
func buried(t interface{ Fatal(...any) }) *book {
	b := newBook(t, 12, 5, 9)
	b.bury(t, 4, 5, 6, 7, 10)
	b.bury(t, 2, 11)
	b.sign(t)
	return b
}

// R8.6: the chain, the tree and every signed checkpoint hold over tombstones, in the store, in an export and in any part of
// it; checkpoints that were signed before the pruning, and kept elsewhere, still fit.
func TestR8_6_TombstonesVerify(t *testing.T) {
	b := buried(t)
	whole := newBook(t, 12, 5, 9)
	r := verify(t, FromView(b), b.verifier, whole.notes[0].msg, whole.notes[1].msg)
	if r.Bad != nil || r.Records != 14 || r.Tombstones != 7 || r.Unvouched != 0 || r.Checkpoints != 3 {
		t.Errorf("got %+v", r)
	}
	if e := verifyExport(t, b, b.export(t, ExportOptions{}), whole.notes[1].msg); e != r {
		t.Errorf("the export verifies as %+v, the store as %+v", e, r)
	}
	for after := range int64(15) {
		for until := after + 1; until <= 14; until++ {
			got := verifyExport(t, b, b.export(t, ExportOptions{After: after, Until: until}))
			var tombs, unvouched int64
			for _, rec := range b.records[after:until] {
				if rec.Pruned > 0 {
					tombs++
					if rec.Pruned > until || rec.Pruned == 13 && after >= 4 || rec.Pruned == 14 && after >= 2 {
						unvouched++
					}
				}
			}
			if got.Bad != nil || got.Tombstones != tombs || got.Unvouched != unvouched {
				t.Errorf("records %d to %d: got %+v, want %d tombstones, %d without their record", after+1, until, got, tombs, unvouched)
			}
		}
	}
	for name, records := range map[string][]Record{
		"nothing":          nil,
		"pruned already":   {b.records[3]},
		"what vouches":     {b.records[12]},
		"not in order":     {b.records[2], b.records[0]},
		"twice":            {b.records[0], b.records[0]},
		"what comes later": {{Seq: 20, Entry: Entry{Kind: KindOpened}}},
	} {
		if _, _, err := (Burial{By: "op", At: time.Unix(1, 0)}).Of(records, 15); err == nil {
			t.Errorf("%s can be pruned", name)
		}
	}
	if _, _, err := (Burial{At: time.Unix(1, 0)}).Of(b.records[:1], 15); err == nil {
		t.Error("nobody prunes")
	}
}

// F-51: a tombstone is not beyond proof. Its hash, what is left of its record, and that it was pruned at all: none of it can
// be changed, and no content can be made to look as if it had been pruned.
func TestF51_TamperedTombstone(t *testing.T) {
	good := buried(t)
	for name, c := range map[string]struct {
		tamper func(*book)
		seq    int64
		fault  Fault
	}{
		"leaf hash changed":            {func(b *book) { b.records[3].Hash[7] ^= 1 }, 4, FaultTombstone},
		"leaf hash, last of a tree":    {func(b *book) { b.records[4].Hash[7] ^= 1 }, 5, FaultCheckpoint},
		"last leaf hash of a row":      {func(b *book) { b.records[6].Hash[7] ^= 1 }, 7, FaultTombstone},
		"only leaf hash":               {func(b *book) { b.records[1].Hash[7] ^= 1 }, 2, FaultTombstone},
		"kind changed":                 {func(b *book) { b.records[4].Kind = KindClosed }, 4, FaultTombstone},
		"time changed":                 {func(b *book) { b.records[5].Time = b.records[5].Time.Add(time.Hour) }, 4, FaultTombstone},
		"call changed":                 {func(b *book) { b.records[10].CallID = "x" }, 2, FaultTombstone},
		"given to another record":      {func(b *book) { b.records[10].Pruned = 13 }, 4, FaultTombstone},
		"given to no record":           {func(b *book) { b.records[9].Pruned = 99 }, 4, FaultTombstone},
		"given to one that prunes not": {func(b *book) { b.records[9].Pruned = 12 }, 10, FaultTombstone},
		"given to one before":          {func(b *book) { b.records[9].Pruned = 3 }, 10, FaultTombstone},
		"with a content":               {func(b *book) { b.records[9].Body = []byte(`{}`) }, 10, FaultTombstone},
		"with a principal":             {func(b *book) { b.records[9].Principal = "mallory" }, 10, FaultTombstone},
		"content taken, not pruned":    {func(b *book) { b.records[7] = b.records[7].Tombstone(13) }, 4, FaultTombstone},
		"content taken, of nobody":     {func(b *book) { b.records[7] = b.records[7].Tombstone(99) }, 8, FaultTombstone},
		"content taken, of a later":    {func(b *book) { b.records[7] = b.records[7].Tombstone(14) }, 2, FaultTombstone},
		"what vouches is taken":        {func(b *book) { b.records[12] = b.records[12].Tombstone(14) }, 13, FaultTombstone},
		"another content in its place": {func(b *book) {
			r := Record{Seq: 5, Entry: Entry{Time: b.records[4].Time, Kind: KindCallIntent, Body: []byte(`{}`)}, Prev: b.records[4].Prev, Hash: b.records[4].Hash}
			b.records[4] = r
		}, 5, FaultHash},
		"deleted": {func(b *book) { b.records = slices.Delete(b.records, 4, 5) }, 5, FaultGap},
	} {
		b := good.clone()
		c.tamper(b)
		if bad := verify(t, FromView(b), b.verifier).Bad; bad == nil || bad.Seq != c.seq || bad.Fault != c.fault {
			t.Errorf("%s: got %v, want %s at %d", name, bad, c.fault, c.seq)
		}
	}
	// Somebody who can write the store, but has no key, prunes for himself: the signed records tell.
	b := good.clone()
	b.records, b.chain = b.records[:12], Chain{Seq: 12, Hash: b.records[11].Hash}
	b.bury(t, 8)
	if bad := verify(t, FromView(b), b.verifier).Bad; bad == nil {
		t.Error("a pruning in the place of the one that was signed is not found")
	}
}

// F-51: any one change of an export with tombstones in it is found. What is named is not behind the change, and not before
// the first tombstone that was made together with the changed one.
func TestF51_AnyChangeOfTombstonesIsFound(t *testing.T) {
	b := buried(t)
	export := b.export(t, ExportOptions{})
	lines := bytes.SplitAfter(export, []byte("\n"))
	rapid.Check(t, func(rt *rapid.T) {
		i := rapid.IntRange(1, len(lines)-2).Draw(rt, "line")
		at := rapid.IntRange(0, len(lines[i])-1).Draw(rt, "at")
		changed := slices.Clone(lines)
		changed[i] = bytes.Clone(lines[i])
		changed[i][at] ^= byte(rapid.IntRange(1, 255).Draw(rt, "xor"))
		r, err := Verify(t.Context(), FromExport(bytes.NewReader(bytes.Join(changed, nil))), b.verifier)
		if err != nil {
			rt.Fatal(err)
		}
		if r.Bad == nil {
			rt.Fatalf("not found: %s", changed[i])
		}
		if was, ok := parseLine(bytes.TrimSuffix(lines[i], []byte("\n"))); ok {
			first := was.Seq
			switch was.Pruned {
			case 13:
				first = 4
			case 14:
				first = 2
			}
			if was.Kind == KindPruned { // what it says of others is below its own hash
				first = was.Seq
			}
			if r.Bad.Seq < min(first, max(was.Seq-1, 1)) || r.Bad.Seq > was.Seq {
				rt.Fatalf("record %d was changed, named is %v", was.Seq, r.Bad)
			}
		}
	})
}
