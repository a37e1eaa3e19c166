package firewall

import (
	"errors"
	"sort"
	"unicode/utf8"
)

// errNotRedactable says that what was found cannot be taken out alone: it is a name, or the whole.
var errNotRedactable = errors.New("a finding cannot be taken out alone")

// cutout is what is to be taken out of a text.
type cutout struct {
	from, to int
	instead  string
}

// redact takes the findings out of the document. All else stays byte for byte.
func (d *document) redact(plain bool, findings []located) ([]byte, error) {
	cuts := map[int32][]cutout{}
	for i := range findings {
		f := &findings[i]
		if f.text < 0 || f.fixed || d.texts[f.text].isName {
			return nil, errNotRedactable
		}
		c := cutout{f.start, f.end, placeholder(f.code)}
		if f.code.Info().Class == ClassHiddenText {
			c.instead = ""
		}
		cuts[f.text] = append(cuts[f.text], c)
	}
	out := make([]byte, 0, len(d.raw)+64)
	done := 0
	for i := range d.texts {
		list, ok := cuts[int32(i)]
		if !ok {
			continue
		}
		t := &d.texts[i]
		merged := merge(t.value, list)
		if plain {
			return splice(nil, t.value, merged, nil), nil
		}
		literal := d.raw[t.start:t.end]
		out = append(out, d.raw[done:t.start]...)
		out = splice(out, literal, merged, literalOffsets(literal))
		done = int(t.end)
	}
	return append(out, d.raw[done:]...), nil
}

// merge orders cutouts, joins those that overlap, and widens them to whole characters.
func merge(value []byte, list []cutout) []cutout {
	for i := range list {
		c := &list[i]
		for c.from > 0 && c.from < len(value) && !utf8.RuneStart(value[c.from]) {
			c.from--
		}
		for c.to < len(value) && !utf8.RuneStart(value[c.to]) {
			c.to++
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].from < list[j].from })
	var out []cutout
	for _, c := range list {
		if n := len(out) - 1; n >= 0 && c.from < out[n].to {
			out[n].to = max(out[n].to, c.to)
			if out[n].instead == "" {
				out[n].instead = c.instead
			}
			continue
		}
		out = append(out, c)
	}
	return out
}

// splice appends source to out with cuts taken out. at says where each byte of the value stands in source; nil: there.
func splice(out, source []byte, cuts []cutout, at []int32) []byte {
	where := func(i int) int {
		if at == nil {
			return i
		}
		return int(at[i])
	}
	done := 0
	for _, c := range cuts {
		out = append(out, source[done:where(c.from)]...)
		out = append(out, c.instead...)
		done = where(c.to)
	}
	return append(out, source[done:]...)
}

// literalOffsets is where each byte of what a JSON string says, and its end, stands in the literal. The bytes of an escaped
// character all stand where its escape begins.
func literalOffsets(literal []byte) []int32 {
	at := make([]int32, 0, len(literal))
	end := len(literal) - 1
	for i := 1; i < end; {
		if literal[i] != '\\' {
			at = append(at, int32(i))
			i++
			continue
		}
		n, size := 2, 1
		if literal[i+1] == 'u' {
			n = 6
			r := hex4(literal[i+2:])
			if r >= 0xd800 && r < 0xdc00 {
				n = 12
				r = 0x10000
			}
			size = utf8.RuneLen(r)
		}
		for range size {
			at = append(at, int32(i))
		}
		i += n
	}
	return append(at, int32(end))
}

func hex4(b []byte) (r rune) {
	for _, c := range b[:4] {
		switch {
		case c <= '9':
			r = r<<4 | rune(c-'0')
		default:
			r = r<<4 | rune(c|0x20-'a'+10)
		}
	}
	return r
}
