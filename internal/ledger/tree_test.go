package ledger

import (
	"encoding/binary"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// The edge's root is the root that tlog computes from all hashes, at every size; and it survives being kept.
func TestEdgeAgreesWithTlog(t *testing.T) {
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, n := range indexes {
			out[i] = stored[n]
		}
		return out, nil
	})
	var edge Edge
	for n := range int64(300) {
		leaf := tlog.RecordHash(binary.BigEndian.AppendUint64(nil, uint64(n)))
		hashes, err := tlog.StoredHashesForRecordHash(n, leaf, reader)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, hashes...)
		edge.Append(Hash(leaf))
		want, err := tlog.TreeHash(n+1, reader)
		if err != nil {
			t.Fatal(err)
		}
		if got := edge.Root(); tlog.Hash(got) != want {
			t.Fatalf("root at %d: got %s, want %s", n+1, got, want)
		}
		again, err := ParseEdge(edge.Size(), edge.Nodes())
		if err != nil || again.Root() != edge.Root() {
			t.Fatalf("edge at %d does not read back: %v", n+1, err)
		}
		clone := edge.Clone()
		clone.Append(Hash{})
		if tlog.Hash(edge.Root()) != want {
			t.Fatalf("edge at %d shares memory with its clone", n+1)
		}
	}
	if _, err := ParseEdge(3, make([]byte, 32)); err == nil {
		t.Error("an edge with too few nodes is taken")
	}
	var empty Edge
	if want, _ := tlog.TreeHash(0, reader); tlog.Hash(empty.Root()) != want {
		t.Errorf("root of the empty tree: %s, want %s", empty.Root(), want)
	}
}
