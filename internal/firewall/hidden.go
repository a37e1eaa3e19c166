package firewall

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The codes of hidden text.
const (
	CodeHiddenTags       Code = "hidden_tags"
	CodeHiddenBidi       Code = "hidden_bidi"
	CodeHiddenZeroWidth  Code = "hidden_zero_width"
	CodeHiddenVariation  Code = "hidden_variation"
	CodeHiddenFiller     Code = "hidden_filler"
	CodeHiddenPrivateUse Code = "hidden_private_use"
	CodeHiddenANSI       Code = "hidden_ansi"
	CodeHiddenControl    Code = "hidden_control"
)

// invisible says that r is drawn as nothing, or turns what is drawn around.
func invisible(r rune) bool {
	return r >= 0xa0 && hiddenCode(r) != "" && hiddenCode(r) != CodeHiddenPrivateUse
}

// hiddenCode is the code of a character that may hide text, "" for others.
func hiddenCode(r rune) Code {
	switch {
	case r < 0x20:
		if plainControl(byte(r)) {
			return CodeHiddenControl
		}
	case r < 0x7f:
	case r < 0xa0:
		return CodeHiddenControl
	case r == 0xad, r == 0x34f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x180e, r == 0x3164, r == 0xffa0,
		r >= 0xfff9 && r <= 0xfffb, r >= 0x206a && r <= 0x206f, r >= 0x1d173 && r <= 0x1d17a:
		return CodeHiddenFiller
	case r < 0x200b:
		if r == 0x61c {
			return CodeHiddenBidi
		}
		if r >= 0x180b && r <= 0x180d {
			return CodeHiddenVariation
		}
	case r <= 0x200d, r >= 0x2060 && r <= 0x2064, r == 0xfeff:
		return CodeHiddenZeroWidth
	case r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return CodeHiddenBidi
	case r >= 0xe000 && r <= 0xf8ff, r >= 0xf0000, r >= 0xfdd0 && r <= 0xfdef, r&0xfffe == 0xfffe:
		return CodeHiddenPrivateUse
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef:
		return CodeHiddenVariation
	case r >= 0xe0000 && r <= 0xe0fff:
		return CodeHiddenTags
	}
	return ""
}

// hidden inspects v for characters that a reader does not see. Sequences that scripts and emoji need are left alone. What
// tags and variation selectors spell is inspected like any text.
func (s *scan) hidden(v *view) {
	t := v.text
	var prev rune // the last visible character
	for i := 0; i < len(t); {
		if c := t[i]; c >= 0x20 && c < 0x7f || c == '\n' || c == '\t' || c == '\r' {
			prev = rune(c)
			i++
			continue
		}
		r, size := utf8.DecodeRune(t[i:])
		code := hiddenCode(r)
		if code == "" {
			prev = r
			i += size
			continue
		}
		if r == 0x1b || r == 0x9b {
			n := escapeSequence(t[i:])
			s.find(v, CodeHiddenANSI, i, i+n)
			i += n
			continue
		}
		end := i + size // of the run of characters of this code
		for end < len(t) {
			next, n := utf8.DecodeRune(t[end:])
			if hiddenCode(next) != code || next == 0x9b {
				break
			}
			end += n
		}
		next, _ := utf8.DecodeRune(t[end:])
		if !needed(code, prev, r, next, t[i:end], t[max(0, i-48):min(len(t), end+48)]) {
			switch code {
			case CodeHiddenTags, CodeHiddenVariation:
				f := s.find(v, code, i, end)
				if spelt := spell(t[i:end]); len(spelt) > 0 {
					f.excerpt = s.excerpt(spelt)
					s.child(v, view{text: spelt, whole: true, from: i, to: end, how: string(code), depth: v.depth + 1})
				}
			default:
				s.find(v, code, i, end)
			}
		}
		i = end
	}
}

// needed says that a run of one kind, whose first character is r, stands where writing needs it.
func needed(code Code, prev, r, next rune, run, around []byte) bool {
	single := utf8.RuneCount(run) == 1
	switch code {
	case CodeHiddenZeroWidth:
		switch {
		case !single:
			return false
		case r == 0x200d: // joins emoji, and letters of scripts that join
			return (emoji(prev) || prev == 0xfe0f) && emoji(next) || joins(prev) && joins(next) || indic(prev)
		case r == 0x200c:
			return joins(prev) || indic(prev)
		case r == 0x200b:
			return unicode.In(prev, unicode.Thai, unicode.Khmer, unicode.Lao, unicode.Myanmar)
		case r == 0xfeff:
			return prev == 0 // a byte order mark
		}
		return false
	case CodeHiddenVariation:
		switch {
		case !single:
			return false
		case r == 0xfe0f || r == 0xfe0e:
			return emoji(prev) || prev >= '0' && prev <= '9' || prev == '#' || prev == '*' || unicode.Is(unicode.So, prev) || unicode.Is(unicode.Sm, prev) || unicode.Is(unicode.Po, prev)
		case r >= 0x180b && r <= 0x180d:
			return unicode.Is(unicode.Mongolian, prev)
		}
		return unicode.Is(unicode.Han, prev)
	case CodeHiddenTags: // the flags of regions
		return prev == 0x1f3f4 && len(run) >= 4*4 && len(run) <= 4*8 && strings.HasSuffix(string(run), "\U000E007F")
	case CodeHiddenBidi: // marks and isolates in text of right-to-left scripts
		return single && (r == 0x200e || r == 0x200f || r == 0x61c || r >= 0x2066 && r <= 0x2069) && bytes.ContainsFunc(around, rightToLeft)
	case CodeHiddenFiller:
		if r == 0x34f || r == 0x180e {
			return single && unicode.In(prev, unicode.Mongolian, unicode.Hebrew)
		}
		return single && (r == 0x1160 || r == 0x115f) && unicode.Is(unicode.Hangul, next)
	}
	return false
}

func emoji(r rune) bool {
	return r >= 0x1f000 && r < 0x1fb00 || r >= 0x2190 && r < 0x2c00 || r == 0x303d || r == 0x3030 || r == 0x3297 || r == 0x3299 || r == 0xa9 || r == 0xae || r == 0x203c || r == 0x2049 || r == 0x2122
}

func joins(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko)
}

func indic(r rune) bool {
	return r >= 0x900 && r < 0xe00 || r >= 0x1000 && r < 0x10a0 || r >= 0x1780 && r < 0x1800
}

func rightToLeft(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana)
}

// spell is what a run of tags or variation selectors spells, as far as it is text.
func spell(run []byte) []byte {
	var out []byte
	for len(run) > 0 {
		r, n := utf8.DecodeRune(run)
		run = run[n:]
		switch {
		case r >= 0xe0020 && r < 0xe007f:
			out = append(out, byte(r-0xe0000))
		case r >= 0xfe00 && r <= 0xfe0f:
			out = append(out, byte(r-0xfe00))
		case r >= 0xe0100 && r <= 0xe01ef:
			out = append(out, byte(r-0xe0100+16))
		}
	}
	if len(out) < 2 || !utf8.Valid(out) {
		return nil
	}
	return out
}

// escapeSequence is the length of the terminal sequence that t begins with, at least that of its first character.
func escapeSequence(t []byte) int {
	_, i := utf8.DecodeRune(t)
	csi := t[0] != 0x1b
	if !csi && i < len(t) {
		switch t[i] {
		case '[':
			csi = true
			i++
		case ']', 'P', '_', '^', 'X': // to BEL or ST
			for j := i + 1; j < len(t) && j < 4096; j++ {
				if t[j] == 0x07 {
					return j + 1
				}
				if t[j] == 0x1b {
					if j+1 < len(t) && t[j+1] == '\\' {
						return j + 2
					}
					return j
				}
			}
			return i + 1
		case '(', ')', '*', '+', '#', '%':
			return min(i+2, runeEnd(t, i+1))
		default:
			if t[i] >= 0x30 && t[i] < 0x7f {
				return i + 1
			}
			return i
		}
	}
	if csi {
		for i < len(t) && t[i] >= 0x20 && t[i] < 0x40 {
			i++
		}
		if i < len(t) && t[i] >= 0x40 && t[i] < 0x7f {
			i++
		}
	}
	return i
}

// runeEnd is where the character at i ends; never past the end of t.
func runeEnd(t []byte, i int) int {
	if i >= len(t) {
		return len(t)
	}
	_, n := utf8.DecodeRune(t[i:])
	return i + n
}
