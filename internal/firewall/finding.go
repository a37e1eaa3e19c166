package firewall

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Finding is one thing that an inspector saw. It is fit for logs, the ledger and reviewers: no secret and no personal datum
// stands in it, and no invisible or control character.
type Finding struct {
	Code        Code        `json:"code"`
	Class       Class       `json:"class"`
	Sensitivity Sensitivity `json:"sensitivity"`
	Place       string      `json:"place,omitzero"`   // JSON pointer into what was screened; "" is the whole
	Excerpt     string      `json:"excerpt,omitzero"` // at most [ExcerptLimit] bytes
}

// ExcerptLimit bounds an excerpt, in bytes.
const ExcerptLimit = 240

// Artefact is a part of a result that is not text, by its bytes (R8.7).
type Artefact struct {
	Place  string `json:"place"`
	Kind   string `json:"kind"`     // of the content block
	MIME   string `json:"mimeType"` // as the provider says
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"` // of the decoded bytes
}

// Verdict is a judgement. The zero value withholds.
type Verdict struct {
	Kind     VerdictKind
	Reasons  []Code // what decided the kind, each once, in order of appearance
	Findings []Finding
	Dropped  int // findings beyond the bound of a list

	// Released is what may go on if Kind is accepted, else nil: byte for byte what was screened, but for what a rule redacts.
	Released []byte
	// Redacted is for reviewers if Kind is not accepted: all that was found is taken out. nil if that cannot be done.
	Redacted []byte

	Artefacts []Artefact

	// Fault is why an inspector failed, for operators: it quotes nothing of what was inspected.
	Fault error
}

// Withheld reports that nothing may be released.
func (v *Verdict) Withheld() bool { return !v.Kind.Accepted() }

// placeholder stands for what was taken out.
func placeholder(c Code) string { return "[redacted: " + string(c) + "]" }

// quote makes an excerpt of text: bounded, one line, invisible characters escaped.
func quote(text []byte) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		var piece string
		switch {
		case r == utf8.RuneError && n <= 1:
			piece = `\ufffd`
		case r == '\n':
			piece = `\n`
		case r == '\t':
			piece = " "
		case invisible(r) || r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 || !strconv.IsPrint(r) && r != ' ':
			piece = escapeRune(r)
		default:
			piece = string(text[i : i+n])
		}
		if b.Len()+len(piece) > ExcerptLimit-len("…") {
			b.WriteString("…")
			break
		}
		b.WriteString(piece)
		i += n
	}
	return b.String()
}

func escapeRune(r rune) string {
	s := strconv.FormatInt(int64(r), 16)
	if r < 0x10000 {
		return `\u` + strings.Repeat("0", 4-len(s)) + s
	}
	return `\u{` + s + `}`
}
