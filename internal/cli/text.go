package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// clean makes text that others wrote safe for a terminal (F-59): escape sequences, control, bidirectional, zero-width and
// tag characters are taken out; line ends and tabs stay. What is not UTF-8 shows as replacement characters.
func clean(s string) string {
	s = strings.ToValidUTF8(stripEscapes(s), "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || printable(r) {
			return r
		}
		return -1
	}, s)
}

// visible shows what clean takes out: each character that would hide, move or colour text is written as its number. Line
// ends and tabs stay. It is for texts that somebody has to judge.
func visible(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && strings.HasPrefix(s[i:], string(utf8.RuneError)) || r == '\n' || r == '\t' || r != utf8.RuneError && printable(r):
			b.WriteRune(r)
		case r == utf8.RuneError:
			fmt.Fprintf(&b, "\\x{%02x}", s[i])
		default:
			fmt.Fprintf(&b, "\\u{%04x}", r)
		}
	}
	return b.String()
}

// inert writes those characters of JSON as escapes that would hide, move or colour text on a terminal. What the JSON
// means stays the same: outside of strings it has none of them.
func inert(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for rest := b; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r == '\n' || r == '\t' || printable(r):
			out = append(out, rest[:n]...)
		case r > 0xffff:
			a, b := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, a, b)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		rest = rest[n:]
	}
	return out
}

// cleanLine is clean for a place that holds one line of at most so many characters.
func cleanLine(s string, most int) string {
	// Cut before the work, so that a title of a megabyte costs no more than it shows.
	if len(s) > 16*most {
		s = s[:16*most]
	}
	s = strings.Join(strings.Fields(clean(s)), " ")
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most-1]) + "…"
	}
	return s
}

// printable says whether a character shows and stays where it is put. Format characters (category Cf) hide and reorder
// text; the variation selectors and fillers that Unicode counts elsewhere hide too.
func printable(r rune) bool {
	switch {
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp):
		return false
	case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return false
	}
	return true
}

// stripEscapes takes out whole escape sequences, so that their parameters do not stay behind as litter: CSI up to its
// final byte, the string sequences (OSC, DCS, APC, PM, SOS) up to their terminator, any other up to its final byte.
func stripEscapes(s string) string {
	if !strings.ContainsAny(s, "\x1b\u0090\u0098\u009b\u009d\u009e\u009f") {
		return s
	}
	var b strings.Builder
	runes := []rune(s)
	for i := 0; i < len(runes); i++ {
		kind := rune(0)
		switch r := runes[i]; {
		case r == 0x1b && i+1 < len(runes):
			i++
			kind = runes[i]
		case r == 0x9b:
			kind = '['
		case r == 0x9d, r == 0x90, r == 0x98, r == 0x9e, r == 0x9f:
			kind = ']'
		case r != 0x1b:
			b.WriteRune(r)
			continue
		}
		switch {
		case kind == '[':
			for i+1 < len(runes) && runes[i+1] >= 0x20 && runes[i+1] < 0x40 {
				i++
			}
			if i+1 < len(runes) && runes[i+1] >= 0x40 && runes[i+1] < 0x7f {
				i++
			}
		case strings.ContainsRune("]PX^_", kind):
			i = endOfString(runes, i)
		case kind >= 0x20 && kind < 0x30:
			for i+1 < len(runes) && runes[i+1] >= 0x20 && runes[i+1] < 0x30 {
				i++
			}
			i++
		}
	}
	return b.String()
}

// endOfString finds the last rune of a string sequence. One without a terminator ends with its line: the rest of the text
// must not vanish with it.
func endOfString(runes []rune, i int) int {
	for i+1 < len(runes) {
		i++
		switch {
		case runes[i] == 0x07 || runes[i] == 0x9c:
			return i
		case runes[i] == 0x1b && i+1 < len(runes) && runes[i+1] == '\\':
			return i + 1
		case runes[i] == '\n':
			return i - 1
		}
	}
	return i
}
