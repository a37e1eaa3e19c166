package firewall

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"html"
	"strconv"
	"unicode/utf8"
)

// minEncoded is the shortest run that is decoded: shorter ones hide no secret.
const minEncoded = 24

// decoded inspects what is encoded in v: base64, hexadecimal, percent, JSON and HTML escapes.
func (s *scan) decoded(v *view, shape *shape) {
	if v.depth >= maxDecoding {
		return
	}
	for i := 0; i < len(shape.runs); i++ {
		r := shape.runs[i]
		if r.to-r.from < minEncoded {
			continue
		}
		for wrapped(v.text, shape.runs, i, r.to) { // lines of one block
			i++
			r.to, r.hex, r.encoded = shape.runs[i].to, r.hex && shape.runs[i].hex, r.encoded && shape.runs[i].encoded
		}
		for from := r.from; from < r.to; { // a run may hold several, divided by dots
			to := r.to
			if !r.encoded {
				for to = from; to < r.to && byteClass[v.text[to]]&cBase64 == 0 && !blank(v.text[to]); to++ {
				}
				from = to
				for to < r.to && (byteClass[v.text[to]]&cBase64 != 0 || blank(v.text[to])) {
					to++
				}
			}
			if to-from >= minEncoded {
				s.decodedRun(v, from, to)
			}
			from = max(to, from+1)
		}
	}
	if shape.percent >= 3 {
		if c, ok := unpercent(v.text); ok {
			c.depth, c.how, c.name = v.depth+1, "percent-decoded", v.name
			s.child(v, c)
		}
	}
	if shape.backslash {
		if c, ok := unescape(v.text); ok {
			c.depth, c.how, c.name = v.depth+1, "unescaped", v.name
			s.child(v, c)
		}
	}
	if shape.entity {
		if c, ok := unentity(v.text); ok {
			c.depth, c.how = v.depth+1, "unescaped"
			s.child(v, c)
		}
	}
}

// wrapped says that the run after i goes on in the line after end, as the lines of an encoded block do.
func wrapped(t []byte, runs []run, i, end int) bool {
	if i+1 >= len(runs) || runs[i].to-runs[i].from < 60 {
		return false
	}
	gap := runs[i+1].from - end
	return gap == 1 && t[end] == '\n' || gap == 2 && t[end] == '\r' && t[end+1] == '\n'
}

func (s *scan) decodedRun(v *view, from, to int) {
	t := v.text[from:to]
	s.spend(len(t) / 8)
	// A key may stand before it, as in key=..., and an encoded value never begins with one of these.
	for len(t) > 0 && (t[0] == '=' || t[0] == '/' || t[0] == '-') {
		t, from = t[1:], from+1
	}
	if i := bytes.IndexByte(t, '='); i > 0 && i < len(t)-3 {
		s.decodedRun(v, from+i+1, to)
		t, to = t[:i], from+i
	}
	if len(t) < minEncoded {
		return
	}
	if text, ok := unbase64(t); ok {
		s.child(v, view{text: text, whole: true, from: from, to: to, how: "base64", depth: v.depth + 1})
	}
	if text, ok := unhex(t); ok {
		s.child(v, view{text: text, whole: true, from: from, to: to, how: "hexadecimal", depth: v.depth + 1})
	}
}

// unbase64 is what t encodes in either alphabet, if that is text.
func unbase64(t []byte) ([]byte, bool) {
	clean := t
	if bytes.ContainsAny(t, "\r\n-_=") {
		clean = make([]byte, 0, len(t))
		for _, c := range t {
			switch c {
			case '\r', '\n', '=':
			case '-':
				clean = append(clean, '+')
			case '_':
				clean = append(clean, '/')
			default:
				clean = append(clean, c)
			}
		}
	}
	clean = clean[:len(clean)-min(len(clean), btoi(len(clean)%4 == 1))]
	if len(clean) < minEncoded-4 {
		return nil, false
	}
	if len(clean) > 64<<10 { // too long to be decoded for nothing: pictures and the like
		var head [48]byte
		if n, err := base64.RawStdEncoding.Decode(head[:], clean[:64]); err != nil || !textual(head[:n]) {
			return nil, false
		}
	}
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(clean)))
	n, err := base64.RawStdEncoding.Decode(out, clean)
	if err != nil || !textual(out[:n]) {
		return nil, false
	}
	return out[:n], true
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// unhex is what t encodes, if that is text.
func unhex(t []byte) ([]byte, bool) {
	if len(t) < 32 || len(t)%2 != 0 {
		return nil, false
	}
	out := make([]byte, len(t)/2)
	if _, err := hex.Decode(out, t); err != nil || !textual(out) {
		return nil, false
	}
	return out, true
}

// textual says that b reads as text: nearly all of it printable.
func textual(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	odd := 0
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 && len(b)-i > 3 || r < 0x20 && r != '\n' && r != '\t' && r != '\r' || r == 0x7f {
			if odd++; odd*16 > len(b) {
				return false
			}
		}
		i += n
	}
	return true
}

// unpercent undoes %XX.
func unpercent(t []byte) (view, bool) {
	return rewritten(t, func(t []byte, out []byte) ([]byte, int) {
		if t[0] != '%' || len(t) < 3 {
			return out, 0
		}
		n, err := strconv.ParseUint(string(t[1:3]), 16, 8)
		if err != nil {
			return out, 0
		}
		return append(out, byte(n)), 3
	})
}

// unescape undoes the escapes of JSON and of program text.
func unescape(t []byte) (view, bool) {
	return rewritten(t, func(t []byte, out []byte) ([]byte, int) {
		if t[0] != '\\' || len(t) < 2 {
			return out, 0
		}
		switch t[1] {
		case '"', '\\', '/', '\'':
			return append(out, t[1]), 2
		case 'n':
			return append(out, '\n'), 2
		case 't':
			return append(out, '\t'), 2
		case 'r':
			return append(out, '\r'), 2
		case 'x':
			if len(t) >= 4 {
				if n, err := strconv.ParseUint(string(t[2:4]), 16, 8); err == nil && n < utf8.RuneSelf {
					return append(out, byte(n)), 4
				}
			}
		case 'u':
			if len(t) >= 6 {
				if n, err := strconv.ParseUint(string(t[2:6]), 16, 16); err == nil {
					if n >= 0xd800 && n < 0xdc00 && len(t) >= 12 && t[6] == '\\' && t[7] == 'u' {
						if m, err := strconv.ParseUint(string(t[8:12]), 16, 16); err == nil && m >= 0xdc00 && m < 0xe000 {
							return utf8.AppendRune(out, rune(0x10000+(n-0xd800)<<10+(m-0xdc00))), 12
						}
					}
					return utf8.AppendRune(out, rune(n)), 6
				}
			}
		}
		return out, 0
	})
}

// unentity undoes numeric and named HTML entities.
func unentity(t []byte) (view, bool) {
	return rewritten(t, func(t []byte, out []byte) ([]byte, int) {
		if t[0] != '&' {
			return out, 0
		}
		end := bytes.IndexByte(t[:min(len(t), 12)], ';')
		if end < 2 {
			return out, 0
		}
		s := html.UnescapeString(string(t[:end+1]))
		if len(s) > end {
			return out, 0
		}
		return append(out, s...), end + 1
	})
}

// rewritten is t with the sequences that next undoes undone. next appends to out and says how much of t that took, 0 for
// nothing. ok is false if nothing was undone, or only line ends and tabs: they hide nothing. Of a long text, only what is near
// an undone sequence is kept.
func rewritten(t []byte, next func(t, out []byte) ([]byte, int)) (v view, ok bool) {
	const around = 512
	var out []byte
	var at []int32
	kept := 0 // t is copied, or left out, as far as here
	for i := 0; i < len(t); {
		j := bytes.IndexAny(t[i:], `%\&`)
		if j < 0 {
			break
		}
		i += j
		_, n := next(t[i:], nil)
		if n == 0 {
			i++
			continue
		}
		from, to := max(kept, i-around), min(len(t), i+around)
		if from > kept {
			out, at = append(out, '\n', '\n'), append(at, int32(from), int32(from))
		}
		for i = from; i < to; {
			before, n := len(out), 0
			if c := t[i]; c == '%' || c == '\\' || c == '&' {
				out, n = next(t[i:], out)
				if n > 0 {
					to = min(len(t), max(to, i+around))
				}
			}
			if n == 0 {
				out, n = append(out, t[i]), 1
			} else if c := out[before]; len(out)-before > 1 || c != '\n' && c != '\t' && c != '\r' {
				ok = true
			}
			for range len(out) - before {
				at = append(at, int32(i))
			}
			i += n
		}
		kept = i
	}
	return view{text: out, at: append(at, int32(kept))}, ok
}
