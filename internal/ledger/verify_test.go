package ledger

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"pgregory.net/rapid"
)

func TestVerifyGoodLedger(t *testing.T) {
	for _, records := range []int{0, 1, 2, 9, 40} {
		b := newBook(t, records, 1, 8, 32)
		want := Report{Origin: "ostiary-ledger 01", Records: int64(records), Last: int64(records), Root: b.edge.Root(), Checkpoints: len(b.notes)}
		if records > 0 {
			want.First = 1
			want.Signed = b.notes[len(b.notes)-1].seq
		}
		if got := verify(t, FromView(b), b.verifier); got != want {
			t.Errorf("%d records: got %+v, want %+v", records, got, want)
		}
		if got := verifyExport(t, b, b.export(t, ExportOptions{})); got != want {
			t.Errorf("export of %d records: got %+v, want %+v", records, got, want)
		}
	}
}

// A part of a ledger verifies by itself, wherever it begins and ends.
func TestVerifyParts(t *testing.T) {
	b := newBook(t, 20, 4, 8, 13, 20)
	for after := range int64(21) {
		for until := after; until <= 20; until++ {
			if until == 0 {
				continue // means: to the end
			}
			got := verifyExport(t, b, b.export(t, ExportOptions{After: after, Until: until}))
			if got.Bad != nil || got.Records != until-after {
				t.Errorf("records %d to %d: got %+v", after+1, until, got)
			}
		}
	}
	if err := Export(t.Context(), b, b.verifier, &bytes.Buffer{}, ExportOptions{After: 21}); err == nil {
		t.Error("a range behind the end is exported")
	}
}

// F-51: what somebody who can write the store, but has no key, may do to it.
func TestF51_TamperedStore(t *testing.T) {
	good := newBook(t, 20, 8, 16)
	for _, c := range []struct {
		name   string
		tamper func(*book)
		seq    int64
		fault  Fault
	}{
		{"edited", func(b *book) { b.records[4].Body = []byte(`{"a":"B"}`) }, 5, FaultHash},
		{"edited and hashed", func(b *book) {
			b.records[4].Body = []byte(`{"a":"B"}`)
			b.records[4].Hash = Hash{1}
		}, 5, FaultHash},
		{"edited and all hashed again", func(b *book) {
			b.records[4].Principal = "mallory"
			b.rehash(4)
		}, 8, FaultCheckpoint},
		{"edited after a checkpoint and all hashed again", func(b *book) {
			b.records[9].Principal = "mallory"
			b.rehash(9)
		}, 16, FaultCheckpoint},
		{"not canonical", func(b *book) { b.records[4].Body = []byte(`{"a": "A","b":4}`) }, 5, FaultNotCanonical},
		{"not JSON", func(b *book) { b.records[4].Body = []byte(`{`) }, 5, FaultNotCanonical},
		{"other previous", func(b *book) { b.records[4].Prev[0] ^= 1 }, 5, FaultPrev},
		{"deleted", func(b *book) { b.records = append(b.records[:4], b.records[5:]...) }, 5, FaultGap},
		{"first deleted", func(b *book) { b.records = b.records[1:] }, 1, FaultGap},
		{"deleted and closed up", func(b *book) {
			b.records = append(b.records[:4], b.records[5:]...)
			b.rehash(4)
		}, 8, FaultCheckpoint},
		{"duplicated", func(b *book) { b.records = append(b.records[:6], b.records[5:]...) }, 6, FaultOrder},
		{"swapped", func(b *book) { b.records[4], b.records[5] = b.records[5], b.records[4] }, 5, FaultGap},
		{"swapped with their numbers", func(b *book) {
			b.records[4], b.records[5] = b.records[5], b.records[4]
			b.records[4].Seq, b.records[5].Seq = 5, 6
		}, 5, FaultPrev},
		{"cut below the last checkpoint", func(b *book) { b.records = b.records[:12] }, 13, FaultTruncated},
		{"emptied", func(b *book) { b.records = nil }, 1, FaultTruncated},
		{"checkpoint of another key", func(b *book) {
			signer, _ := newKey(t, 2)
			c := Checkpoint{Origin: Origin(b.signer.Name()), Size: 8, Root: Hash{}}
			b.notes[0].msg, _ = c.Sign(signer)
		}, 8, FaultSignature},
		{"checkpoint text changed", func(b *book) { b.notes[0].msg = bytes.Replace(b.notes[0].msg, []byte("\n8\n"), []byte("\n7\n"), 1) }, 8, FaultSignature},
		{"checkpoint at another place", func(b *book) { b.notes[0].seq = 7 }, 7, FaultCheckpoint},
		{"checkpoint deleted", func(b *book) { b.notes = b.notes[1:] }, 16, FaultCheckpoint},
	} {
		b := good.clone()
		c.tamper(b)
		if bad := verify(t, FromView(b), b.verifier).Bad; bad == nil || bad.Seq != c.seq || bad.Fault != c.fault {
			t.Errorf("%s: got %v, want %s at %d", c.name, bad, c.fault, c.seq)
		}
	}
}

// F-51: an older copy of the store is a good ledger; a checkpoint that was kept elsewhere shows what is missing.
func TestF51_Rollback(t *testing.T) {
	good := newBook(t, 20, 8, 16)
	known := good.notes[1].msg
	if bad := verify(t, FromView(good), good.verifier, known, good.notes[0].msg).Bad; bad != nil {
		t.Errorf("good ledger: %v", bad)
	}
	old := newBook(t, 12, 8)
	if bad := verify(t, FromView(old), old.verifier).Bad; bad != nil {
		t.Errorf("old copy by itself: %v", bad)
	}
	for name, bad := range map[string]*Problem{
		"store":  verify(t, FromView(old), old.verifier, known).Bad,
		"export": verifyExport(t, old, old.export(t, ExportOptions{}), known).Bad,
	} {
		if bad == nil || bad.Seq != 13 || bad.Fault != FaultRollback {
			t.Errorf("old copy of %s: got %v, want rollback at 13", name, bad)
		}
	}
	// Rolled back and written on: the same length, other records.
	fork := newBook(t, 15, 8)
	fork.append(t, Entry{Time: fork.records[0].Time, Kind: KindClosed})
	fork.sign(t)
	if bad := verify(t, FromView(fork), fork.verifier, known).Bad; bad == nil || bad.Seq != 16 || bad.Fault != FaultRollback {
		t.Errorf("fork: got %v, want rollback at 16", bad)
	}
	// A checkpoint can be compared if the export reaches down to it.
	if bad := verifyExport(t, good, good.export(t, ExportOptions{After: 8}), good.notes[0].msg).Bad; bad != nil {
		t.Errorf("part after the checkpoint: %v", bad)
	}
	if _, err := Verify(t.Context(), FromExport(bytes.NewReader(good.export(t, ExportOptions{After: 9}))), good.verifier, good.notes[0].msg); err == nil {
		t.Error("a checkpoint from before the export is silently left out")
	}
	if _, err := Verify(t.Context(), FromView(good), good.verifier, []byte("x")); err == nil {
		t.Error("a checkpoint that is none is taken")
	}
}

func TestVerifyWithAnotherKey(t *testing.T) {
	b := newBook(t, 10, 8)
	_, other := newKey(t, 2)
	if bad := verify(t, FromView(b), other).Bad; bad == nil || bad.Fault != FaultSignature {
		t.Errorf("store: got %v, want %s", bad, FaultSignature)
	}
	if bad := verify(t, FromExport(bytes.NewReader(b.export(t, ExportOptions{}))), other).Bad; bad == nil || bad.Fault != FaultMalformed {
		t.Errorf("export: got %v, want %s", bad, FaultMalformed)
	}
	if _, err := Verify(t.Context(), FromView(b), "nonsense"); err == nil {
		t.Error("a verifier key that is none is taken")
	}
}

// seqsOf tells for each line of an export which record a fault of that line is named by: the record, for a checkpoint the
// last that it covers, for the header any.
func seqsOf(b *book, lines [][]byte) []int64 {
	out := make([]int64, len(lines))
	for i, line := range lines {
		if seq, _, ok := parseCheckpointLine(line); ok {
			out[i] = seq
		} else if r, ok := parseLine(line); ok && i > 0 {
			out[i] = r.Seq
		}
	}
	return out
}

// F-51: any one change of an export, below its last checkpoint or above, is found, and the record that is named is the
// first one that is not as it was.
func TestF51_AnyChangeOfAnExportIsFound(t *testing.T) {
	b := newBook(t, 24, 5, 12, 20)
	exports := [][]byte{b.export(t, ExportOptions{}), b.export(t, ExportOptions{After: 7}), b.export(t, ExportOptions{After: 3, Until: 12})}
	rapid.Check(t, func(rt *rapid.T) {
		export := exports[rapid.IntRange(0, len(exports)-1).Draw(rt, "export")]
		lines := bytes.Split(bytes.TrimSuffix(export, []byte("\n")), []byte("\n"))
		seqs := seqsOf(b, lines)
		i := rapid.IntRange(0, len(lines)-1).Draw(rt, "line")
		named := seqs[i] // where the first difference is
		join := func(lines [][]byte) []byte { return append(bytes.Join(lines, []byte("\n")), '\n') }
		var changed []byte
		switch what := rapid.SampledFrom([]string{"byte", "delete", "duplicate", "swap", "cut", "cut inside", "insert byte"}).Draw(rt, "change"); what {
		case "byte":
			offset := len(bytes.Join(lines[:i], []byte("\n"))) + 1
			if i == 0 {
				offset = 0
			}
			at := offset + rapid.IntRange(0, len(lines[i])).Draw(rt, "at") // the last one is the newline
			changed = bytes.Clone(export)
			changed[at] ^= byte(rapid.IntRange(1, 255).Draw(rt, "xor"))
		case "insert byte":
			at := rapid.IntRange(0, len(lines[i])).Draw(rt, "at")
			inserted := rapid.Byte().Draw(rt, "inserted")
			if inserted == '\n' && (at == 0 || at == len(lines[i])) {
				inserted = ' ' // an empty line is before or after this one, not in it
			}
			line := append(bytes.Clone(lines[i][:at]), inserted)
			line = append(line, lines[i][at:]...)
			changed = join(append(append(append([][]byte(nil), lines[:i]...), line), lines[i+1:]...))
		case "delete":
			changed = join(append(append([][]byte(nil), lines[:i]...), lines[i+1:]...))
		case "duplicate":
			changed = join(append(append([][]byte(nil), lines[:i+1]...), lines[i:]...))
		case "swap":
			j := rapid.IntRange(0, len(lines)-1).Filter(func(j int) bool { return j != i }).Draw(rt, "other")
			swapped := append([][]byte(nil), lines...)
			swapped[i], swapped[j] = swapped[j], swapped[i]
			changed = join(swapped)
			i = min(i, j)
			named = seqs[i]
		case "cut":
			if i == 0 {
				i = 1
			}
			changed = join(lines[:i])
			named = seqs[i]
		case "cut inside":
			line := lines[i]
			changed = join(append(append([][]byte(nil), lines[:i]...), line[:rapid.IntRange(0, len(line)-1).Draw(rt, "at")]))
		}
		report, err := Verify(t.Context(), FromExport(bytes.NewReader(changed)), b.verifier)
		if err != nil {
			rt.Fatal(err)
		}
		if report.Bad == nil {
			rt.Fatalf("not found:\n%s", changed)
		}
		if i == 0 {
			return // the header stands for all
		}
		// A line that is gone or mangled cannot say which it was: a checkpoint's is then named by the next record.
		if got := report.Bad.Seq; got != named && got != named+1 {
			later := false // a checkpoint that is missing shows at the next one, or at the end
			if _, _, ok := parseCheckpointLine(lines[i]); ok {
				later = got > named
			}
			if !later {
				rt.Fatalf("line %d: got %v, want record %d", i, report.Bad, named)
			}
		}
		if _, _, ok := parseCheckpointLine(lines[i]); !ok && report.Bad.Seq != named {
			rt.Fatalf("line %d: got %v, want record %d", i, report.Bad, named)
		}
	})
}

// FuzzExport: whatever is read, verification ends without a panic; and what verifies as good is the export that its own
// records make, byte for byte.
func FuzzExport(f *testing.F) {
	b := newBook(f, 3, 1, 3) // small: the fuzzer's own shrinking of a long input takes minutes
	var whole, part bytes.Buffer
	if err := Export(f.Context(), b, b.verifier, &whole, ExportOptions{}); err != nil {
		f.Fatal(err)
	}
	if err := Export(f.Context(), b, b.verifier, &part, ExportOptions{After: 2}); err != nil {
		f.Fatal(err)
	}
	b.bury(f, 2)
	b.sign(f)
	var pruned bytes.Buffer
	if err := Export(f.Context(), b, b.verifier, &pruned, ExportOptions{}); err != nil {
		f.Fatal(err)
	}
	tombstone := AppendLine(nil, &b.records[1])
	f.Add(whole.Bytes())
	f.Add(part.Bytes())
	f.Add(pruned.Bytes())
	f.Add([]byte("{}\n"))
	f.Add([]byte(strings.Repeat("[", 100)))
	f.Fuzz(func(t *testing.T, in []byte) {
		report, err := Verify(t.Context(), FromExport(bytes.NewReader(in)), b.verifier)
		if err != nil || report.Bad != nil || report.Signed == 0 {
			return
		}
		if report.Tombstones > 0 && report.Unvouched == 0 && !bytes.Contains(in, tombstone) {
			t.Fatalf("verifies with a tombstone that is not ours:\n%s", in)
		}
		if !bytes.HasPrefix(whole.Bytes(), in) && !bytes.HasPrefix(part.Bytes(), in) && !bytes.HasPrefix(pruned.Bytes(), in) {
			// Only the signed records are beyond forging; lines after the last checkpoint may be anything that chains.
			if !bytes.Contains(in, bytes.SplitAfter(part.Bytes(), []byte("\n"))[2]) {
				t.Fatalf("verifies, but is not ours:\n%s", in)
			}
		}
	})
}

// No byte of a signed checkpoint can be changed.
func TestCheckpointHasOneSpelling(t *testing.T) {
	b := newBook(t, 8, 8)
	v, err := note.NewVerifier(b.verifier)
	if err != nil {
		t.Fatal(err)
	}
	msg := b.notes[0].msg
	c, err := OpenCheckpoint(msg, v)
	if err != nil || c != (Checkpoint{Origin: "ostiary-ledger 01", Size: 8, Root: b.edge.Root()}) {
		t.Fatalf("got %+v, %v", c, err)
	}
	for i := range msg {
		for bit := range 8 {
			changed := bytes.Clone(msg)
			changed[i] ^= 1 << bit
			if _, err := OpenCheckpoint(changed, v); err == nil {
				t.Fatalf("byte %d may be %q instead of %q", i, changed[i], msg[i])
			}
		}
	}
	signer, _ := newKey(t, 2)
	twice, err := note.Sign(&note.Note{Text: c.text()}, b.signer, signer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCheckpoint(twice, v); err == nil {
		t.Error("a second signature is taken")
	}
}

// FuzzCheckpoint: a checkpoint's text that is read is the one that would be written.
func FuzzCheckpoint(f *testing.F) {
	f.Add("ostiary-ledger 01\n8\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\nprevious 3\n")
	f.Add("x\n-1\n\nprevious 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := parseCheckpoint(text); err == nil && c.text() != text {
			t.Fatalf("%q is read, but written %q", text, c.text())
		}
	})
}

func TestKeyFiles(t *testing.T) {
	dir := t.TempDir()
	random := bytes.NewReader(bytes.Repeat([]byte{7}, 1000))
	key, err := CreateKey(dir, random)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadKey(dir)
	if err != nil || again.Verifier != key.Verifier || !strings.HasPrefix(key.Verifier, "ostiary-ledger-0707070707070707+") {
		t.Errorf("got %q, %v, want %q", again.Verifier, err, key.Verifier)
	}
	if _, err := CreateKey(dir, random); err == nil {
		t.Error("a key is written over another")
	}
	secret, err := os.ReadFile(filepath.Join(dir, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	_, other := newKey(t, 2)
	if err := os.WriteFile(filepath.Join(dir, VerifierFile), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(dir); err == nil || strings.Contains(err.Error(), strings.TrimSpace(string(secret))) {
		t.Errorf("halves of two keys: got %v, want an error without the key", err)
	}
}
