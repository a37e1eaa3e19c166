package firewall

import (
	"slices"
	"strings"
	"sync"
)

// keywords finds many words in a text at once, whatever their ASCII case (Aho and Corasick's automaton, as one table). It is
// what makes screening cheap: an expression is only run where a word of it stands.
type keywords struct {
	class [256]uint8
	width int
	next  []uint16  // state*width + class → state, with the top bit set if words end there
	out   [][]int32 // state → the words that end there
	words []string
}

const wordEnds = 1 << 15

// newKeywords builds the automaton. Words are in lower case.
func newKeywords(words []string) *keywords {
	k := &keywords{words: words}
	width := 1 // class 0: bytes of no word
	for _, w := range words {
		for i := range len(w) {
			if k.class[w[i]] == 0 {
				k.class[w[i]] = uint8(width)
				width++
			}
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		k.class[c-'a'+'A'] = k.class[c]
	}
	k.width = width
	add := func() int {
		k.next = append(k.next, make([]uint16, width)...)
		k.out = append(k.out, nil)
		return len(k.out) - 1
	}
	add()
	for id, w := range words {
		state := 0
		for i := range len(w) {
			c := int(k.class[w[i]])
			if k.next[state*width+c] == 0 {
				n := add()
				k.next[state*width+c] = uint16(n)
			}
			state = int(k.next[state*width+c])
		}
		k.out[state] = append(k.out[state], int32(id))
	}
	if len(k.out) >= wordEnds {
		panic("firewall: too many keywords for one automaton")
	}
	fail := make([]int, len(k.out))
	var queue []int
	for c := range width {
		if n := int(k.next[c]); n != 0 {
			queue = append(queue, n)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		k.out[state] = append(k.out[state], k.out[fail[state]]...)
		for c := range width {
			n := int(k.next[state*width+c])
			f := int(k.next[fail[state]*width+c])
			if n == 0 {
				k.next[state*width+c] = uint16(f)
				continue
			}
			fail[n] = f
			queue = append(queue, n)
		}
	}
	for i, n := range k.next {
		if len(k.out[n]) > 0 {
			k.next[i] = n | wordEnds
		}
	}
	return k
}

// scan calls hit for every word in t with where it ends, in order, until hit returns false.
func (k *keywords) scan(t []byte, hit func(word, end int) bool) {
	state := uint16(0)
	for i, b := range t {
		state = k.next[int(state&^wordEnds)*k.width+int(k.class[b])]
		if state&wordEnds != 0 {
			for _, w := range k.out[state&^wordEnds] {
				if !hit(int(w), i+1) {
					return
				}
			}
		}
	}
}

// subscriber is who wants to know of a word.
type subscriber struct {
	kind  subscriberKind
	group uint8 // of an instruction rule
	rule  int32
}

type subscriberKind uint8

const (
	forInstruction subscriberKind = iota
	forToken                      // a form of token, by its prefix
	forGitleaks
	forAssignment
	forSecret // other secrets
	forLink
)

// index is the automaton over the words of every inspector, and who wants which.
type index struct {
	*keywords
	subscribers [][]subscriber // by word
	begins      []bool         // by word: it is one only where no letter or digit stands before it
}

// words is built once: it depends on nothing but the rules in this program.
var words = sync.OnceValue(func() *index {
	ix := &index{}
	seen := map[string]int{}
	var list []string
	subscribe := func(word string, sub subscriber) {
		id, ok := seen[word]
		if !ok {
			id = len(list)
			seen[word] = id
			list = append(list, word)
			ix.subscribers = append(ix.subscribers, nil)
		}
		if !slices.Contains(ix.subscribers[id], sub) {
			ix.subscribers[id] = append(ix.subscribers[id], sub)
		}
	}
	for i, r := range instructionRules {
		if len(r.groups) > maxGroups {
			panic("firewall: a rule has too many groups")
		}
		for g, group := range r.groups {
			for _, w := range group {
				subscribe(w, subscriber{forInstruction, uint8(g), int32(i)})
			}
		}
	}
	for i, r := range tokenRules {
		for _, w := range r.prefixes {
			subscribe(lower(w), subscriber{forToken, 0, int32(i)})
		}
	}
	for i, r := range gitleaksRules() {
		for _, w := range r.keywords {
			subscribe(lower(w), subscriber{forGitleaks, 0, int32(i)})
		}
	}
	for i, w := range assignedNames {
		subscribe(w, subscriber{forAssignment, 0, int32(i)})
	}
	for i, r := range otherSecrets {
		for _, w := range r.anchors {
			subscribe(w, subscriber{forSecret, 0, int32(i)})
		}
	}
	for i, r := range linkRules {
		for _, w := range r.anchors {
			subscribe(w, subscriber{forLink, 0, int32(i)})
		}
	}
	for _, w := range list {
		ix.begins = append(ix.begins, w[0] >= 'a' && w[0] <= 'z' && !strings.HasPrefix(w, "n't"))
	}
	ix.keywords = newKeywords(list)
	return ix
})

// lower folds ASCII letters alone.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
