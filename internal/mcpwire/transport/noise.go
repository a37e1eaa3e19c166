package transport

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// lineKind is what a line on stdout is at first sight.
type lineKind uint8

const (
	lineMessage lineKind = iota // to be parsed strictly
	lineBlank
	lineNoise // a banner, a print, a progress bar: borne and counted (S-023, F-29)
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// classifyLine trims what is borne around a message (a byte order mark, CR, blanks) and says what the rest is.
func classifyLine(line *[]byte) lineKind {
	b := bytes.TrimPrefix(*line, byteOrderMark)
	b = bytes.Trim(b, " \t\r")
	*line = b
	switch {
	case len(b) == 0:
		return lineBlank
	case b[0] == '{':
		return lineMessage
	case b[0] == '[':
		// A batch is a message that is not allowed; "[INFO] listening" is a banner.
		if rest := bytes.TrimLeft(b[1:], " \t"); len(rest) > 0 && (rest[0] == '{' || rest[0] == ']') {
			return lineMessage
		}
	}
	return lineNoise
}

// budget bounds what is borne. Each message in order pays some of it back, so that a flood ends a connection and a habit
// does not.
type budget struct {
	lines, bytes         int // the bounds; bytes 0: not counted
	usedLines, usedBytes int
}

// spend reports whether the budget still holds.
func (b *budget) spend(n int) bool {
	b.usedLines++
	b.usedBytes += n
	return b.usedLines <= b.lines && (b.bytes == 0 || b.usedBytes <= b.bytes)
}

// repay takes up to n lines off, and their share of the bytes.
func (b *budget) repay(n int) {
	for range min(n, b.usedLines) {
		b.usedBytes -= b.usedBytes / b.usedLines
		b.usedLines--
	}
}

// quoteShort makes a peer's bytes fit for a log line.
func quoteShort(b []byte) string {
	const limit = 200
	if len(b) > limit {
		b = b[:limit]
		for len(b) > 0 && !utf8.Valid(b[max(0, len(b)-utf8.UTFMax):]) && len(b) > limit-utf8.UTFMax {
			b = b[:len(b)-1]
		}
		return strconv.QuoteToASCII(string(b)) + "…"
	}
	return strconv.QuoteToASCII(string(b))
}
