package firewall

import (
	"bytes"
	"fmt"
)

// excerpts writes the excerpts of what was found in v itself. Secrets and personal data in them are masked, whichever
// inspector saw them.
func (s *scan) excerpts(v *view) {
	for i := range v.found {
		f := &v.found[i]
		if f.excerpt != "" {
			continue
		}
		info := f.code.Info()
		switch {
		case info.Class == ClassCredential || info.Class == ClassPersonalData || f.code == CodeOpaquePayload || f.code == CodeEncodedBlob:
			f.excerpt = fmt.Sprintf("%s %d bytes", placeholder(f.code), f.end-f.start)
			if v.how != "" {
				f.excerpt += " (" + v.how + ")"
			}
		default:
			f.excerpt = quote(v.masked(f.start, f.end))
			if v.how != "" {
				f.excerpt = "(" + v.how + ") " + f.excerpt
			}
		}
	}
}

// excerpt is text that stands in no view, fit for a finding.
func (s *scan) excerpt(t []byte) string {
	v := view{text: t, depth: 1}
	s.inspect(&v)
	return quote(v.masked(0, len(t)))
}

// masked is [from, to) of v, with what is secret or personal taken out.
func (v *view) masked(from, to int) []byte {
	to = min(to, from+4*ExcerptLimit)
	for to < len(v.text) && v.text[to]&0xc0 == 0x80 {
		to++
	}
	var out []byte
	for i := from; i < to; {
		skip := i
		var c Code
		for j := range v.found {
			f := &v.found[j]
			if k := f.code.Info().Class; (k == ClassCredential || k == ClassPersonalData) && f.start <= i && i < f.end && f.end > skip {
				skip, c = f.end, f.code
			}
		}
		if skip > i {
			out = append(out, placeholder(c)...)
			i = skip
			continue
		}
		next := to
		for j := range v.found {
			f := &v.found[j]
			if k := f.code.Info().Class; (k == ClassCredential || k == ClassPersonalData) && f.start > i && f.start < next {
				next = f.start
			}
		}
		out = append(out, v.text[i:next]...)
		i = next
	}
	return blurred(out)
}

// blurred is t without its long runs that mean nothing to a reader: what no inspector knows may be a secret all the same.
func blurred(t []byte) []byte {
	const long = 20
	var out []byte
	done := 0
	for _, r := range shapeOf(t).runs {
		for i := r.from; i < r.to; {
			j := i
			for j < r.to && bytes.IndexByte([]byte("./=~"), t[j]) < 0 {
				j++
			}
			if j-i >= long && opaque(t[i:j]) {
				out = append(out, t[done:i]...)
				out = fmt.Appendf(out, "[%d bytes]", j-i)
				done = j
			}
			i = j + 1
		}
	}
	return append(out, t[done:]...)
}
