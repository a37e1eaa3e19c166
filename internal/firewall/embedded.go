package firewall

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
	"regexp"
	"unicode/utf8"
)

// minText is how many bytes in a row must read as text to be taken for it. In a megabyte of noise there is less than one such
// row.
const minText = 16

// threeWords tells a text from a name, a number or noise.
var threeWords = regexp.MustCompile(`\pL{2,}[ ,;:]+\pL{2,}[ ,;:]+\pL{2,}|\p{Han}{6,}`)

// textRuns are the stretches of an artefact that read as text, one a line, wherever they stand: in metadata, in comments,
// behind its end. Text is UTF-8, or ASCII in UTF-16.
func textRuns(b []byte) (out []byte) {
	for i := 0; i < len(b); {
		if end, text := wideRun(b[i:]); text != nil {
			out = append(append(out, text...), '\n')
			i += end
			continue
		}
		start := i
		for i < len(b) {
			r, n := utf8.DecodeRune(b[i:])
			if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError && n <= 1 {
				break
			}
			i += n
		}
		if i-start >= minText {
			out = append(append(out, b[start:i]...), '\n')
		}
		if i == start {
			i++
		}
	}
	return out
}

// wideRun is the ASCII in UTF-16 that b begins with, in either order of bytes: the other one begins a byte earlier.
func wideRun(b []byte) (end int, text []byte) {
	for end+1 < len(b) && b[end] >= ' ' && b[end] < 0x7f && b[end+1] == 0 {
		end += 2
	}
	if end < 2*minText {
		return 0, nil
	}
	for i := 0; i < end; i += 2 {
		text = append(text, b[i])
	}
	return end, text
}

// compressedTexts are the texts that a PNG carries compressed. over: there was more than limit bytes of them.
func compressedTexts(is string, b []byte, limit int) (texts [][]byte, over bool) {
	if is != "image/png" {
		return nil, false
	}
	for i := 8; i+12 <= len(b); {
		n := int(binary.BigEndian.Uint32(b[i:]))
		if n < 0 || n > len(b)-i-12 {
			break
		}
		data := compressedPart(string(b[i+4:i+8]), b[i+8:i+8+n])
		i += 12 + n
		if data == nil {
			continue
		}
		z, err := zlib.NewReader(bytes.NewReader(data))
		if err != nil {
			continue // nobody else can open it either
		}
		text, _ := io.ReadAll(io.LimitReader(z, int64(limit)+1)) // what comes before a fault can be read
		if limit -= len(text); limit < 0 {
			return texts, true
		}
		texts = append(texts, textRuns(text))
	}
	return texts, false
}

// compressedPart is what is compressed of a chunk of PNG; nil if nothing is.
func compressedPart(kind string, chunk []byte) []byte {
	_, rest, ok := bytes.Cut(chunk, []byte{0}) // a keyword, or the name of a profile
	switch {
	case !ok || len(rest) < 1:
	case kind == "zTXt", kind == "iCCP":
		return rest[1:]
	case kind == "iTXt" && rest[0] == 1 && len(rest) > 2:
		_, rest, _ = bytes.Cut(rest[2:], []byte{0}) // the language
		_, rest, _ = bytes.Cut(rest, []byte{0})     // the keyword, translated
		return rest
	}
	return nil
}
