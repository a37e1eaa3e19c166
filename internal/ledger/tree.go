package ledger

import (
	"crypto/sha256"
	"fmt"
	"math/bits"
)

// Edge is the right edge of the RFC 6962 tree over the records' hashes: the roots of the complete subtrees that make it
// up, largest first. It is all that is needed to add leaves and to know the root, and a few hundred bytes for any ledger.
// The zero value is the empty tree. It is not safe for concurrent use.
type Edge struct {
	size  int64
	nodes []Hash
}

// Size is the number of leaves.
func (e *Edge) Size() int64 { return e.size }

// Append adds the next leaf.
func (e *Edge) Append(leaf Hash) {
	for n := e.size; n&1 == 1; n >>= 1 {
		last := len(e.nodes) - 1
		leaf = nodeHash(e.nodes[last], leaf)
		e.nodes = e.nodes[:last]
	}
	e.nodes = append(e.nodes, leaf)
	e.size++
}

// Root is the tree's root hash.
func (e *Edge) Root() Hash {
	if len(e.nodes) == 0 {
		return sha256.Sum256(nil)
	}
	root := e.nodes[len(e.nodes)-1]
	for i := len(e.nodes) - 2; i >= 0; i-- {
		root = nodeHash(e.nodes[i], root)
	}
	return root
}

// Clone is a copy that shares nothing with e.
func (e *Edge) Clone() Edge { return Edge{size: e.size, nodes: append([]Hash(nil), e.nodes...)} }

// Nodes is the edge as bytes, to be kept beside a checkpoint and read back by [ParseEdge].
func (e *Edge) Nodes() []byte {
	b := make([]byte, 0, len(e.nodes)*len(Hash{}))
	for _, n := range e.nodes {
		b = append(b, n[:]...)
	}
	return b
}

// ParseEdge reads the edge of a tree of that size. That the nodes are true is known only when their root has been compared
// with a signed one.
func ParseEdge(size int64, b []byte) (Edge, error) {
	const n = len(Hash{})
	if size < 0 || len(b) != n*bits.OnesCount64(uint64(size)) {
		return Edge{}, fmt.Errorf("tree edge of %d leaves has %d bytes", size, len(b))
	}
	e := Edge{size: size}
	for ; len(b) > 0; b = b[n:] {
		e.nodes = append(e.nodes, Hash(b[:n]))
	}
	return e, nil
}

// nodeHash is the RFC 6962 hash of an inner node.
func nodeHash(left, right Hash) Hash {
	var b [1 + 2*len(Hash{})]byte
	b[0] = 1
	copy(b[1:], left[:])
	copy(b[1+len(left):], right[:])
	return sha256.Sum256(b[:])
}
