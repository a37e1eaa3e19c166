package firewall

import (
	"errors"
	"fmt"
	"runtime"
)

// located is a finding and where it stands: in a view while that is inspected, in a text afterwards.
type located struct {
	code       Code
	text       int32 // -1: in no text
	start, end int
	excerpt    string
	place      string // set if text is -1
	fixed      bool   // cannot be taken out alone
}

// scan is one screening. It is used by one goroutine.
type scan struct {
	rules    *Rules
	limits   Limits
	outgoing bool // arguments
	defining bool // a definition
	own      string
	others   map[string]bool

	doc       *document
	plainText bool // doc holds one text that stands for itself, not for a literal
	findings  []located
	artefacts []Artefact

	done    func() error // of the context
	work    int64        // what is left of the budget, in bytes given to an expression
	checked int64
	stopped Code // why the screening ended early
	fault   error

	pending []window // by rule of both kinds
	touched []int32
	last    []lastWords // by instruction rule
	seen    []int32
}

type window struct{ from, to int32 }

// maxFindings bounds the findings of one screening; more than that is no result to look into but one to withhold.
const maxFindings = 5000

// errStop unwinds a screening that has ended early; the reason is in scan.stopped.
var errStop = errors.New("screening stopped")

// stop ends the screening.
func (s *scan) stop(c Code) {
	s.stopped = c
	panic(errStop)
}

// spend takes n bytes of work from the budget, and looks at the clock of the caller now and then.
func (s *scan) spend(n int) {
	s.work -= int64(n)
	s.checked += int64(n)
	if s.work < 0 {
		s.stop(CodeBudgetExhausted)
	}
	if s.checked > 32<<10 {
		s.checked = 0
		if s.done() != nil {
			s.stop(CodeTimedOut)
		}
	}
}

// run does fn. A panic, a spent budget or an ended context becomes a finding that withholds (F-57, F-58).
func (s *scan) run(fn func()) {
	defer func() {
		switch v := recover(); {
		case v == nil:
		case v == any(errStop):
			s.add(located{code: s.stopped, text: -1})
		default:
			s.stopped = CodeDetectorFailed
			s.fault = failure(v)
			s.add(located{code: CodeDetectorFailed, text: -1})
		}
	}()
	if s.done() != nil {
		s.stop(CodeTimedOut)
	}
	fn()
}

// failure describes a panic. Its value may quote what was inspected, unless the runtime made it.
func failure(v any) error {
	if err, ok := v.(runtime.Error); ok {
		return fmt.Errorf("inspector failed: %w", err)
	}
	return fmt.Errorf("inspector failed: %T", v)
}

// add records what stands in no view.
func (s *scan) add(f located) { s.findings = append(s.findings, f) }

// find records [from, to) of v. It returns the record, valid until the next one.
func (s *scan) find(v *view, c Code, from, to int) *located {
	for i := range v.found {
		f := &v.found[i]
		if f.code == c && from >= f.start && to <= f.end {
			return f
		}
	}
	if len(v.found)+len(s.findings) >= maxFindings {
		s.stop(CodeBudgetExhausted)
	}
	v.found = append(v.found, located{code: c, start: from, end: to})
	return &v.found[len(v.found)-1]
}

// inspectText takes text i of the document through every view of it.
func (s *scan) inspectText(i int32) {
	t := &s.doc.texts[i]
	if len(t.value) > s.limits.Text {
		s.add(located{code: CodeTextTooLong, text: i, fixed: true})
		return
	}
	v := view{text: t.value}
	if !t.isName {
		v.name = s.doc.named(t)
	}
	s.inspect(&v)
	for _, f := range v.found {
		f.text = i
		s.add(f)
	}
}

// inspect asks every inspector of v.
func (s *scan) inspect(v *view) {
	if len(v.text) == 0 {
		return
	}
	s.spend(len(v.text) / 8)
	if s.outgoing {
		s.controls(v)
	}
	if n, ok := normalise(v.text); ok || hasMarks(v.text) {
		if !v.whole { // what was decoded is not shown to anybody as it stands
			s.hidden(v)
		}
		if ok {
			n.name, n.depth, n.how, n.normal = v.name, v.depth, v.how, true
			s.plain(&n)
			s.adopt(v, &n)
		} else {
			s.plain(v)
		}
	} else {
		s.plain(v)
	}
	s.excerpts(v)
}

// hasMarks says that v may hold hidden characters that normalising leaves alone, which are private-use ones.
func hasMarks(t []byte) bool {
	for _, c := range t {
		if c >= 0xee { // the first byte of U+E000 and beyond
			return true
		}
	}
	return false
}

// child inspects c, which was made of a part of v, and takes over what is found.
func (s *scan) child(v *view, c view) {
	if c.depth > maxDecoding || len(c.text) < 2 {
		return
	}
	s.spend(len(c.text))
	s.inspect(&c)
	s.adopt(v, &c)
}

// maxDecoding is how deep encodings are undone.
const maxDecoding = 3

// adopt moves the findings of c to where they stand in v.
func (s *scan) adopt(v, c *view) {
	s.excerpts(c)
	for _, f := range c.found {
		from, to := c.outer(f.start, f.end)
		if n := s.find(v, f.code, from, to); n.excerpt == "" {
			n.excerpt = f.excerpt
		}
	}
}

// plain asks the inspectors that read normalised text, then looks into what is encoded in it.
func (s *scan) plain(v *view) {
	shape := shapeOf(v.text)
	s.byKeyword(v, &shape)
	s.personal(v, &shape)
	s.namedSecret(v, &shape)
	if s.outgoing {
		s.argument(v, &shape)
	}
	if s.defining {
		s.definitionText(v, &shape)
	}
	s.decoded(v, &shape)
}

// byKeyword finds words, and lets their inspectors look at what stands around them.
func (s *scan) byKeyword(v *view, shape *shape) {
	ix := words()
	base := int32(len(instructionRules))
	ix.scan(v.text, func(word, end int) bool {
		start := end - len(ix.words[word])
		for _, sub := range ix.subscribers[word] {
			switch sub.kind {
			case forInstruction:
				if start == 0 || !ix.begins[word] || !alphanumeric(v.text[start-1]) {
					s.instructionWord(v, sub.rule, sub.group, start, end)
				}
			case forGitleaks:
				if r := shape.near(start-48, end+120); r != nil {
					s.extend(base+sub.rule, start-80, max(r.to+8, end+120), v)
				}
			case forToken:
				s.token(v, &tokenRules[sub.rule], start)
			case forAssignment:
				s.assignment(v, start, end)
			case forSecret:
				s.otherSecret(v, &otherSecrets[sub.rule], start, end)
			case forLink:
				s.link(v, &linkRules[sub.rule], start, end)
			}
		}
		return true
	})
	for _, rule := range s.touched {
		s.flush(rule, v)
	}
	s.touched = s.touched[:0]
	for _, rule := range s.seen {
		s.last[rule].live = false
	}
	s.seen = s.seen[:0]
}

// extend asks for rule to be tried on [from, to) of v, together with what it is to be tried on already if that is near.
func (s *scan) extend(rule int32, from, to int, v *view) {
	from, to = max(from, 0), min(to, len(v.text))
	p := &s.pending[rule]
	switch {
	case p.to == 0:
		s.touched = append(s.touched, rule)
		*p = window{int32(from), int32(to)}
	case from <= int(p.to):
		p.to = max(p.to, int32(to))
	default:
		s.flush(rule, v)
		*p = window{int32(from), int32(to)}
	}
}

func (s *scan) flush(rule int32, v *view) {
	p := s.pending[rule]
	s.pending[rule] = window{}
	if p.to == 0 {
		return
	}
	from, to := wordBounds(v.text, int(p.from), int(p.to))
	if n := int32(len(instructionRules)); rule >= n {
		s.gitleaks(v, &gitleaksRules()[rule-n], from, to)
	} else {
		s.instruction(v, &instructionRules[rule], from, to)
	}
}

// wordBounds widens [from, to) so that it cuts no word, within reason.
func wordBounds(t []byte, from, to int) (int, int) {
	for n := 0; n < 64 && from > 0 && !blank(t[from-1]); n++ {
		from--
	}
	for n := 0; n < 64 && to < len(t) && !blank(t[to]); n++ {
		to++
	}
	for from > 0 && t[from]&0xc0 == 0x80 {
		from--
	}
	for to < len(t) && t[to]&0xc0 == 0x80 {
		to++
	}
	return from, to
}

func alphanumeric(c byte) bool { return c != '_' && wordByte(c) }

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
