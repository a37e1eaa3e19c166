package admission

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is a run of text that is compared as a whole: white space, or anything else.
type word struct {
	text    string
	differs bool
}

// words cuts a text apart at white space. A line break is a word of its own.
func words(s string) (out []word) {
	start := 0
	for i := 0; i < len(s); {
		r, w := utf8.DecodeRuneInString(s[i:])
		if r == '\n' || unicode.IsSpace(r) {
			if i > start {
				out = append(out, word{text: s[start:i]})
			}
			out = append(out, word{text: s[i : i+w]})
			start = i + w
		}
		i += w
	}
	if start < len(s) {
		out = append(out, word{text: s[start:]})
	}
	return out
}

// maxTable bounds the work of one comparison.
const maxTable = 1 << 20

// mark marks the words of a and b that are not in their longest common subsequence. Texts that are too long for that are
// compared from both ends; what lies between differs as a whole.
func mark(a, b []word) {
	for len(a) > 0 && len(b) > 0 && a[0].text == b[0].text {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1].text == b[len(b)-1].text {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	all := func(ws []word) {
		for i := range ws {
			ws[i].differs = true
		}
	}
	if len(a) == 0 || len(b) == 0 || (len(a)+1)*(len(b)+1) > maxTable {
		all(a)
		all(b)
		return
	}
	// length[i][j] is that of the longest common subsequence of a[i:] and b[j:].
	cols := len(b) + 1
	length := make([]int32, (len(a)+1)*cols)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i].text == b[j].text {
				length[i*cols+j] = length[(i+1)*cols+j+1] + 1
			} else {
				length[i*cols+j] = max(length[(i+1)*cols+j], length[i*cols+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i].text == b[j].text:
			i, j = i+1, j+1
		case length[(i+1)*cols+j] >= length[i*cols+j+1]:
			a[i].differs = true
			i++
		default:
			b[j].differs = true
			j++
		}
	}
	all(a[i:])
	all(b[j:])
}

// marks are what stands around words that differ. In the text itself they are escaped.
var (
	removedMarks = [2]string{"[-", "-]"}
	addedMarks   = [2]string{"{+", "+}"}
	unmark       = strings.NewReplacer("[-", `[\-`, "-]", `-\]`, "{+", `{\+`, "+}", `+\}`)
)
