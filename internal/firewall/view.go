package firewall

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// view is a text as an inspector reads it, and the way back from there to the text that it was made of.
type view struct {
	text []byte
	at   []int32 // where each byte of text, and its end, stands in the outer text; nil: as it stands
	// whole: every part of text stands for [from, to) of the outer text, because it was decoded from there.
	whole    bool
	from, to int
	how      string // what was done, for excerpts; "" if nothing was decoded
	depth    int    // of decoding

	name   []byte    // the member that the text is the value of
	normal bool      // it is a normalised view
	found  []located // in it
}

// outer is where [a, b) of the view stands in the outer text.
func (v *view) outer(a, b int) (int, int) {
	switch {
	case v.whole:
		return v.from, v.to
	case v.at != nil:
		return int(v.at[a]), int(v.at[b])
	}
	return a, b
}

// normalise is text as a reader takes it: what is not seen is gone, look-alike and full-width letters are plain ones. ok is
// false if that changes nothing.
func normalise(text []byte) (v view, ok bool) {
	i, n := 0, len(text)
	for i < n {
		if c := text[i]; c < utf8.RuneSelf {
			if c < 0x20 && plainControl(c) || c == 0x7f {
				break
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if _, same := folded(r); !same {
			break
		}
		i += size
	}
	if i == n {
		return view{}, false
	}
	out := make([]byte, i, n)
	at := make([]int32, i, n+1)
	copy(out, text)
	for j := range at {
		at[j] = int32(j)
	}
	for i < n {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		if r == 0x1b {
			size = escapeSequence(text[i:])
			i += size
			continue
		}
		if r < utf8.RuneSelf && !(r < 0x20 && plainControl(byte(r)) || r == 0x7f) {
			out, at = append(out, byte(r)), append(at, int32(i))
			i++
			continue
		}
		f, same := folded(r)
		switch {
		case same:
			for k := range size {
				out, at = append(out, text[i+k]), append(at, int32(i))
			}
		case f >= 0:
			before := len(out)
			out = utf8.AppendRune(out, f)
			for range len(out) - before {
				at = append(at, int32(i))
			}
		}
		i += size
	}
	return view{text: out, at: append(at, int32(n))}, true
}

// plainControl says that c, below 0x20, is a control character without business in text.
func plainControl(c byte) bool { return c != '\t' && c != '\n' && c != '\r' }

// folded is what a reader takes r for: a rune, or -1 for nothing at all. same: itself.
func folded(r rune) (f rune, same bool) {
	switch {
	case r < 0x20 && plainControl(byte(r)), r == 0x7f, r >= 0x80 && r < 0xa0:
		return -1, false
	case r < 0xa0:
		return r, true
	case invisible(r):
		return -1, false
	case r >= 0x370 && r < 0x530:
		if l, ok := lookalikes[r]; ok {
			return l, false
		}
		return r, true
	case r >= 0xff01 && r <= 0xff5e: // full-width
		return r - 0xff01 + '!', false
	case r == 0x3000, r == 0xa0, r >= 0x2000 && r <= 0x200a, r == 0x202f, r == 0x205f:
		return ' ', false
	case r >= 0x1d400 && r <= 0x1d7ff, r >= 0x2100 && r <= 0x214f, r >= 0x2460 && r <= 0x24ff, r >= 0xfb00 && r <= 0xfb06,
		r >= 0x2070 && r <= 0x209f, r >= 0x1d2c && r <= 0x1d6a: // mathematical, circled, letter-like
		if s := norm.NFKC.String(string(r)); len(s) == 1 {
			return rune(s[0]), false
		}
		return r, true
	case r == 0x2018, r == 0x2019, r == 0x02bc:
		return '\'', false
	case r == 0x201c, r == 0x201d:
		return '"', false
	case r >= 0x1f170 && r <= 0x1f189: // letters in squares
		return r - 0x1f170 + 'A', false
	case r >= 0x1f130 && r <= 0x1f149:
		return r - 0x1f130 + 'A', false
	case r >= 0x250 && r <= 0x2af, r >= 0x1d00 && r <= 0x1d2b, r >= 0x13a0 && r <= 0x13ff:
		if l, ok := lookalikes[r]; ok {
			return l, false
		}
	}
	return r, true
}

// lookalikes are letters of other scripts that are drawn like a Latin one.
var lookalikes = map[rune]rune{
	'а': 'a', 'в': 'b', 'с': 'c', 'ԁ': 'd', 'е': 'e', 'ё': 'e', 'ѕ': 's', 'һ': 'h', 'і': 'i', 'ї': 'i', 'ј': 'j', 'к': 'k', 'ӏ': 'l',
	'м': 'm', 'о': 'o', 'р': 'p', 'ԛ': 'q', 'т': 't', 'у': 'y', 'ԝ': 'w', 'х': 'x', 'ү': 'y', 'г': 'r',
	'А': 'A', 'В': 'B', 'С': 'C', 'Е': 'E', 'Ѕ': 'S', 'Н': 'H', 'І': 'I', 'Ј': 'J', 'К': 'K', 'М': 'M', 'О': 'O', 'Р': 'P', 'Т': 'T', 'У': 'Y', 'Х': 'X',
	'α': 'a', 'β': 'b', 'ε': 'e', 'η': 'n', 'ι': 'i', 'κ': 'k', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'u', 'χ': 'x', 'γ': 'y', 'ω': 'w',
	'Α': 'A', 'Β': 'B', 'Ε': 'E', 'Ζ': 'Z', 'Η': 'H', 'Ι': 'I', 'Κ': 'K', 'Μ': 'M', 'Ν': 'N', 'Ο': 'O', 'Ρ': 'P', 'Τ': 'T', 'Υ': 'Y', 'Χ': 'X',
	'ɡ': 'g', 'ɑ': 'a', 'ı': 'i', 'ᴀ': 'a', 'ᴄ': 'c', 'ᴅ': 'd', 'ᴇ': 'e', 'ɪ': 'i', 'ᴊ': 'j', 'ᴋ': 'k', 'ʟ': 'l', 'ᴍ': 'm', 'ɴ': 'n', 'ᴏ': 'o',
	'ᴘ': 'p', 'ʀ': 'r', 'ᴛ': 't', 'ᴜ': 'u', 'ᴠ': 'v', 'ᴡ': 'w', 'ʏ': 'y', 'ᴢ': 'z', 'ʙ': 'b', 'ɢ': 'g', 'ʜ': 'h', 'Ꭺ': 'A', 'Ᏼ': 'B', 'Ꭼ': 'E',
}
