package firewall

import "sort"

// shape is what one pass over a text tells of it: its runs of characters that tokens are made of, and what else may be in it.
type shape struct {
	runs      []run
	digits    int // how many
	at        bool
	percent   int
	backslash bool
	entity    bool
	newlines  int // the longest run of line ends with nothing but blanks between them
	blanks    int // the longest run of blanks
}

// run is an unbroken run of token characters, long enough to be of interest.
type run struct {
	from, to int
	digit    bool
	hex      bool // hexadecimal digits alone
	encoded  bool // characters of base64 alone, either alphabet
}

const minRun = 12

// Classes of bytes, as bits.
const (
	cToken  = 1 << iota // letters, digits, _ - + / = . ~
	cDigit              // 0-9
	cHex                // 0-9 a-f A-F
	cBase64             // letters, digits, + / - _ =
	cOther              // one of @ % \ & and blanks
)

var byteClass = func() (t [256]uint8) {
	for c := range 256 {
		b := byte(c)
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
		digit := b >= '0' && b <= '9'
		if letter || digit {
			t[c] |= cToken | cBase64
		}
		if digit {
			t[c] |= cDigit | cHex
		}
		if b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F' {
			t[c] |= cHex
		}
		switch b {
		case '+', '/', '-', '_', '=':
			t[c] |= cToken | cBase64
		case '.', '~':
			t[c] |= cToken
		case '@', '%', '\\', '&', '\n', ' ', '\t', '\r':
			t[c] |= cOther
		}
	}
	return t
}()

func shapeOf(t []byte) (s shape) {
	newlines, blanks := 0, 0
	for i := 0; i < len(t); {
		k := byteClass[t[i]]
		if k&cToken != 0 {
			newlines, blanks = 0, 0
			start, every, any := i, k, k
			digits := 0
			for ; i < len(t); i++ {
				k = byteClass[t[i]]
				if k&cToken == 0 {
					break
				}
				every &= k
				any |= k
				digits += int(k&cDigit) >> 1
			}
			s.digits += digits
			if i-start >= minRun && (digits > 0 || i-start >= 20) {
				s.runs = append(s.runs, run{from: start, to: i, digit: any&cDigit != 0, hex: every&cHex != 0, encoded: every&cBase64 != 0})
			}
			continue
		}
		if k&cOther != 0 {
			switch t[i] {
			case '@':
				s.at = true
			case '%':
				s.percent++
			case '\\':
				s.backslash = true
			case '&':
				s.entity = s.entity || i+1 < len(t) && t[i+1] == '#'
			case '\n':
				newlines++
				s.newlines = max(s.newlines, newlines)
				blanks = 0
				i++
				continue
			default:
				blanks++
				s.blanks = max(s.blanks, blanks)
				i++
				continue
			}
		}
		newlines, blanks = 0, 0
		i++
	}
	return s
}

// near is the first run that touches [from, to) and has a digit in it, nil if none does.
func (s *shape) near(from, to int) *run {
	for i := sort.Search(len(s.runs), func(i int) bool { return s.runs[i].to > from }); i < len(s.runs) && s.runs[i].from < to; i++ {
		if s.runs[i].digit {
			return &s.runs[i]
		}
	}
	return nil
}
