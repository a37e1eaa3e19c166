package admission

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ostiary/ostiary/internal/review"
)

const (
	minColumn = 20
	maxValue  = 16 << 10 // bytes of one value that are shown
	maxShown  = 1 << 20  // bytes of the whole text, roughly
)

// SideBySide writes what differs between two definitions for a reviewer: a heading for each value that differs, and below
// it the old text on the left and the new one on the right, with words that are gone in [-…-] and words that are new in
// {+…+}. Whatever hides is shown as an escape, so the text is safe for a terminal. A nil old or new is nothing. width is that
// of a whole line. Equal definitions are "".
func SideBySide(old, new []byte, width int) string {
	s := sheet{column: max(minColumn, (width-3)/2)}
	before, after := flatten(old), flatten(new)
	values := make(map[string]leaf, len(after))
	for _, l := range after {
		values[l.at] = l
	}
	had := make(map[string]bool, len(before))
	for i := range before {
		l := &before[i]
		had[l.at] = true
		n, ok := values[l.at]
		switch {
		case !ok:
			s.row(l.at, l, nil)
		case n.text != l.text || n.kind != l.kind:
			s.row(l.at, l, &n)
		}
	}
	for i := range after {
		if l := &after[i]; !had[l.at] {
			s.row(l.at, nil, l)
		}
	}
	if s.left > 0 {
		fmt.Fprintf(&s.b, "… and %d more values that differ\n", s.left)
	}
	return s.b.String()
}

// sheet is the text as it grows.
type sheet struct {
	b      strings.Builder
	column int // width of a column
	left   int // values that found no place
}

// row writes one value; old or new is nil where there is none.
func (s *sheet) row(at string, old, new *leaf) {
	if s.b.Len() > maxShown {
		s.left++
		return
	}
	if at == "" {
		at = "/"
	}
	s.b.WriteString(review.Clip(at, 300))
	switch {
	case old == nil:
		s.b.WriteString(" (new)")
	case new == nil:
		s.b.WriteString(" (gone)")
	case old.kind != new.kind:
		fmt.Fprintf(&s.b, " (%s, was %s)", kindName(new), kindName(old))
	}
	s.b.WriteByte('\n')
	a, cutA := valueWords(old)
	b, cutB := valueWords(new)
	mark(a, b)
	l := s.wrap(a, removedMarks, cutA)
	r := s.wrap(b, addedMarks, cutB)
	for i := range max(len(l), len(r)) {
		var x, y string
		if i < len(l) {
			x = l[i]
		}
		if i < len(r) {
			y = r[i]
		}
		line := x + strings.Repeat(" ", max(0, s.column-columns(x))) + " | " + y
		s.b.WriteString(strings.TrimRight(line, " "))
		s.b.WriteByte('\n')
	}
}

func kindName(l *leaf) string {
	switch l.kind {
	case '"':
		return "text"
	case '{':
		return "object"
	case '[':
		return "array"
	case '0':
		return "number"
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	}
	return "not JSON"
}

// valueWords are the words of a value, and how many bytes of it are not among them.
func valueWords(l *leaf) ([]word, int) {
	if l == nil {
		return nil, 0
	}
	text, cut := l.text, 0
	if len(text) > maxValue {
		end := maxValue
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text, cut = text[:end], len(l.text)-end
	}
	return words(text), cut
}

// wrap sets words into lines of a column. A line break of the text is shown and ends a line; a run of them is told as a
// number, so that nothing can be pushed out of sight.
func (s *sheet) wrap(ws []word, marks [2]string, cut int) []string {
	var t typesetter
	t.column = s.column
	for i := 0; i < len(ws); {
		n := 1
		if isSpace(ws[i].text) {
			for i+n < len(ws) && ws[i+n] == ws[i] {
				n++
			}
		}
		if ws[i].differs != t.marked {
			if t.marked {
				t.put(marks[1])
			} else {
				t.put(marks[0])
			}
			t.marked = !t.marked
		}
		t.word(ws[i].text, n)
		i += n
	}
	if t.marked {
		t.put(marks[1])
	}
	if cut > 0 {
		t.end()
		t.put(fmt.Sprintf("(%d bytes more)", cut))
	}
	t.end()
	return t.lines
}

func isSpace(s string) bool {
	r, w := utf8.DecodeRuneInString(s)
	return w == len(s) && unicode.IsSpace(r)
}

// typesetter fills lines.
type typesetter struct {
	column int
	lines  []string
	line   strings.Builder
	used   int
	marked bool // within marks
}

// word puts n times the same word.
func (t *typesetter) word(text string, n int) {
	switch {
	case text == " " && n == 1:
		t.put(" ")
	case isSpace(text):
		shown := review.Visible(text)
		if text == " " {
			shown = "(space)"
		}
		if n > 1 {
			shown += fmt.Sprintf("(×%d)", n)
		}
		t.put(shown)
		if text == "\n" {
			t.end()
		}
	default:
		t.put(unmark.Replace(review.Visible(text)))
	}
}

// put adds text that holds nothing hidden, and begins new lines where the column is full.
func (t *typesetter) put(s string) {
	if n := columns(s); t.used > 0 && t.used+n > t.column && n <= t.column {
		t.end()
	}
	for _, r := range s {
		n := columnsOf(r)
		if t.used+n > t.column {
			t.end()
		}
		t.line.WriteRune(r)
		t.used += n
	}
}

func (t *typesetter) end() {
	if t.line.Len() > 0 {
		t.lines = append(t.lines, t.line.String())
	}
	t.line.Reset()
	t.used = 0
}

// columns is how many columns of a terminal a text takes.
func columns(s string) (n int) {
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r):
		return 0
	case r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff ||
		r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 || r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3fffd):
		return 2
	}
	return 1
}
