package review

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many combining marks may stand on one character before the rest is shown as escapes: what is stacked
// higher covers the lines above.
const maxMarks = 3

// Visible writes s so that no part of it can hide or act: control characters, escape sequences, bidirectional controls,
// zero-width and other ignorable characters, tags, variation selectors, fillers, private use and broken UTF-8 become
// escapes. A backslash is doubled, so two different texts never look the same for their escapes. The result is
// one line.
func Visible(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/4)
	marks := 0
	for i, w := 0, 0; i < len(s); i += w {
		var r rune
		r, w = utf8.DecodeRuneInString(s[i:])
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && w == 1:
			fmt.Fprintf(&b, `\x%02X`, s[i])
		case r == '\\':
			b.WriteString(`\\`)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case Hidden(r) || marks > maxMarks || marks > 0 && b.Len() == 0:
			fmt.Fprintf(&b, `\u{%04X}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// plain says that s is printable ASCII without a backslash, as most text is.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return true
}

// Hidden says that a reader would not see r, or not for what it is.
func Hidden(r rune) bool {
	switch r {
	case '\u2800', // braille pattern blank
		'\U0001D159': // musical symbol null notehead
		return true
	}
	return !unicode.IsPrint(r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Count says how many hidden characters are in s, line breaks, tabs and broken bytes included.
func Count(s string) (n int) {
	for _, r := range s {
		if Hidden(r) || r == utf8.RuneError {
			n++
		}
	}
	return n
}

// Clip is the visible form of s in at most limit bytes, with a mark where it was cut.
func Clip(s string, limit int) string {
	const mark = " …"
	if len(s) <= limit {
		if v := Visible(s); len(v) <= limit {
			return v
		}
	}
	if limit < len(mark) {
		return ""
	}
	if len(s) > limit {
		s = s[:limit] // the visible form is never shorter than the text
	}
	v := Visible(strings.ToValidUTF8(s, ""))
	cut := 0
	for i := range v { // not within a rune; within an escape at worst
		if i > limit-len(mark) {
			break
		}
		cut = i
	}
	if len(v) <= limit-len(mark) {
		cut = len(v)
	}
	return v[:cut] + mark
}
