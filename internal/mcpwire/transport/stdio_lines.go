package transport

import (
	"bufio"
	"errors"
	"io"
)

var (
	errTooLong = errors.New("line too long")
	errEndless = errors.New("line without end")
)

// lineReader takes lines off a stream and never holds more than the bound of one (F-19). What is beyond it is read and
// dropped; only the envelope is looked at, to learn which request it was meant to answer.
type lineReader struct {
	br    *bufio.Reader
	max   int64
	owned bool         // the line of the last next belongs to the caller; else it is valid until the following next
	scan  envelopeScan // of the last line that was too long
}

func newLineReader(r io.Reader, max int64) *lineReader {
	return &lineReader{br: bufio.NewReaderSize(r, 64<<10), max: max}
}

// endless is how much of one line is read at all.
func (l *lineReader) endless() int64 { return 64 * l.max }

// next returns a line without its newline. An error other than the two above ends the stream; the line is then what was
// cut off by the end.
func (l *lineReader) next() ([]byte, error) {
	l.owned = false
	part, err := l.br.ReadSlice('\n')
	if err == nil {
		if int64(len(part)-1) > l.max {
			return nil, l.skip(part, nil)
		}
		return part[:len(part)-1], nil
	}
	if err != bufio.ErrBufferFull {
		return part, err
	}
	l.owned = true
	long := append(make([]byte, 0, 4*len(part)), part...)
	for err == bufio.ErrBufferFull {
		if int64(len(long)) > l.max+1 {
			return nil, l.skip(long, err)
		}
		part, err = l.br.ReadSlice('\n')
		long = append(long, part...)
	}
	if err != nil {
		return long, err
	}
	long = long[:len(long)-1]
	if int64(len(long)) > l.max {
		return nil, l.skip(long, nil)
	}
	return long, nil
}

// skip drops the rest of a line whose head is too long; err is what stopped reading it.
func (l *lineReader) skip(head []byte, err error) error {
	l.scan = envelopeScan{}
	l.scan.feed(head)
	for n := int64(len(head)); err == bufio.ErrBufferFull; {
		var part []byte
		part, err = l.br.ReadSlice('\n')
		l.scan.feed(part)
		if n += int64(len(part)); n > l.endless() {
			return errEndless
		}
	}
	if err != nil {
		return err
	}
	return errTooLong
}

// envelopeScan looks for the id of a JSON-RPC answer in bytes that cannot be taken as a message: too long, cut, or
// malformed. It is a hint for failing a request early, never a ground for believing anything.
type envelopeScan struct {
	depth    int
	inString bool
	escaped  bool
	odd      bool // the string has escapes, or is longer than what is kept
	atKey    bool
	str      []byte
	key      string
	id       string
	ids      int
	result   bool
	method   bool
}

const maxScannedString = 64

func (s *envelopeScan) feed(b []byte) {
	for _, c := range b {
		switch {
		case s.inString && s.escaped:
			s.escaped = false
		case s.inString && c == '\\':
			s.escaped, s.odd = true, true
		case s.inString && c == '"':
			s.inString = false
			if s.depth == 1 {
				s.endString()
			}
		case s.inString:
			if s.depth == 1 && len(s.str) < maxScannedString {
				s.str = append(s.str, c)
			} else {
				s.odd = true
			}
		case c == '"':
			s.inString, s.odd, s.str = true, false, s.str[:0]
		case c == '{' || c == '[':
			s.depth++
			s.atKey = s.depth == 1
		case c == '}' || c == ']':
			s.depth--
		case c == ',' && s.depth == 1:
			s.atKey, s.key = true, ""
		case c == ':' && s.depth == 1:
			s.atKey = false
			s.result = s.result || s.key == "result" || s.key == "error"
			s.method = s.method || s.key == "method"
		}
	}
}

func (s *envelopeScan) endString() {
	switch {
	case s.atKey && s.odd:
		s.key = ""
	case s.atKey:
		s.key = string(s.str)
	case s.key == "id":
		s.ids++
		if !s.odd {
			s.id = string(s.str)
		}
	}
}

// answers returns the one string id of what looks like an answer: it has a result or an error, or at least no method.
func (s *envelopeScan) answers() (id string, ok bool) {
	return s.id, s.ids == 1 && s.id != "" && (s.result || !s.method)
}
