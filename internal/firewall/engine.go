package firewall

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Options are what an engine is made with.
type Options struct {
	Budget Budget
}

// Budget is how much work a screening may cost before it is given up and what was screened withheld (F-58). It is counted in
// bytes given to expressions, not in time, so that a verdict depends on nothing but its input; time is bounded by the context.
type Budget struct {
	Base    int64 // for any document; 0: 256 KiB
	PerByte int64 // for each byte of it; 0: 8
}

// Engine screens. It holds no state: it may be used by many goroutines at once.
type Engine struct{ budget Budget }

// New makes an engine.
func New(o Options) (*Engine, error) {
	if o.Budget.Base < 0 || o.Budget.PerByte < 0 {
		return nil, errors.New("firewall: a budget is negative")
	}
	if o.Budget.Base == 0 {
		o.Budget.Base = 256 << 10
	}
	if o.Budget.PerByte == 0 {
		o.Budget.PerByte = 8
	}
	words()
	return &Engine{o.Budget}, nil
}

// ScreenResult judges a tool's result (R8.1 to R8.5, R8.7). schema checks structuredContent against the tool's output schema;
// nil if it has none.
func (e *Engine) ScreenResult(ctx context.Context, result []byte, rules Rules, schema func(structured []byte) error) Verdict {
	s := e.scan(ctx, &rules, len(result))
	s.run(func() { s.result(result, schema) })
	return s.verdict(result, schema)
}

// ScreenArguments judges arguments before they leave. They are released as they are or not at all: a rule
// that redacts asks instead, because a changed argument is another call.
func (e *Engine) ScreenArguments(ctx context.Context, arguments []byte, rules Rules) Verdict {
	s := e.scan(ctx, &rules, len(arguments))
	s.outgoing = true
	s.run(func() {
		if len(arguments) == 0 || !s.read(arguments) { // none are harmless
			return
		}
		for i := range s.doc.texts {
			s.inspectText(int32(i))
		}
	})
	return s.verdict(arguments, nil)
}

// ScreenText judges text that is no result: the message of an error, a progress message, a server's instructions (A-03, A-18,
// R8.5).
func (e *Engine) ScreenText(ctx context.Context, message []byte, rules Rules) Verdict {
	s := e.scan(ctx, &rules, len(message))
	s.plainText = true
	s.run(func() {
		if len(message) > s.limits.Bytes {
			s.add(located{code: CodeTooLarge, text: -1})
			return
		}
		s.doc = &document{raw: message, texts: []text{{parent: -1, name: -1, value: message, end: int32(len(message))}}}
		s.inspectText(0)
	})
	return s.verdict(message, nil)
}

// ScreenDefinition lists what is wrong with a definition of a tool, a prompt or a resource, in every string of it (R6.7, A-01
// to A-12). others are the names of other providers' tools: a definition that names one of them is listed. A definition
// that is let through with findings is the decision of whoever admits it.
func (e *Engine) ScreenDefinition(ctx context.Context, definition []byte, own string, others []string) []Finding {
	rules := Rules{Limits: Limits{Bytes: 1 << 20, Text: 256 << 10}}
	s := e.scan(ctx, &rules, len(definition))
	s.work *= 4
	s.defining, s.own = true, own
	s.others = make(map[string]bool, len(others))
	for _, n := range others {
		s.others[n] = true
	}
	s.run(func() {
		if !s.read(definition) {
			return
		}
		s.names()
		for i := range s.doc.texts {
			s.inspectText(int32(i))
		}
	})
	v := s.verdict(definition, nil)
	return slices.DeleteFunc(v.Findings, func(f Finding) bool { return f.Code.Info().Result == Accept })
}

func (e *Engine) scan(ctx context.Context, rules *Rules, size int) *scan {
	return &scan{rules: rules, limits: rules.Limits.orDefault(), done: ctx.Err,
		work: e.budget.Base + e.budget.PerByte*int64(size), pending: make([]window, len(instructionRules)+len(gitleaksRules())),
		last: make([]lastWords, len(instructionRules))}
}

// maxListed bounds the findings that a verdict lists.
const maxListed = 100

// verdict concludes. A failure of its own withholds, like that of an inspector.
func (s *scan) verdict(raw []byte, schema func([]byte) error) (v Verdict) {
	defer func() {
		if p := recover(); p != nil {
			info := CodeDetectorFailed.Info()
			v = Verdict{Reasons: []Code{CodeDetectorFailed}, Fault: failure(p),
				Findings: []Finding{{Code: info.Code, Class: info.Class, Sensitivity: info.Sensitivity}}}
		}
	}()
	v = Verdict{Artefacts: s.artefacts, Fault: s.fault}
	do := Accept
	suggests := false
	var redacted []located
	deciding := map[Code]Action{}
	for i := range s.findings {
		f := &s.findings[i]
		a := s.rules.action(f.code, s.outgoing)
		if a == Redact {
			if s.outgoing {
				a = Ask
			} else if f.text < 0 || f.fixed || s.doc.texts[f.text].isName {
				a = Quarantine
			}
		}
		switch a {
		case Accept:
			suggests = suggests || f.code.Info().Class == ClassInstruction
		case Redact:
			redacted = append(redacted, *f)
		}
		if old, ok := deciding[f.code]; !ok || a.rank() > old.rank() {
			deciding[f.code] = a
		}
		do = do.harder(a)
	}
	if s.stopped != "" { // never accepted, whatever the rules say
		do = do.harder(Quarantine)
	}
	s.list(&v)

	switch do {
	case Accept, Redact:
		v.Kind = AcceptedObservation
		if suggests {
			v.Kind = AcceptedSuggestion
		}
		v.Released = raw
		if len(redacted) > 0 {
			out, err := s.doc.redact(s.plainText, redacted)
			if err != nil || !s.plainText && !fits(out, schema) {
				v.Kind, v.Released = Quarantined, nil
				break
			}
			v.Released = out
		}
	case Ask:
		v.Kind = ApprovalRequired
	case Reject:
		v.Kind = Rejected
	default:
		v.Kind = s.withheldAs()
	}
	for _, f := range s.findings {
		if deciding[f.code].rank() >= min(do.rank(), Quarantine.rank()) && do != Accept && !slices.Contains(v.Reasons, f.code) {
			v.Reasons = append(v.Reasons, f.code)
		}
	}
	if v.Withheld() && s.doc != nil && s.stopped == "" {
		shown := slices.DeleteFunc(slices.Clone(s.findings), func(f located) bool {
			c := f.code.Info().Class
			return f.text < 0 || f.fixed && c != ClassCredential && c != ClassPersonalData
		})
		if out, err := s.doc.redact(s.plainText, shown); err == nil {
			v.Redacted = out
		}
	}
	return v
}

// withheldAs is the verdict of what is not released and not asked about.
func (s *scan) withheldAs() VerdictKind {
	kind := Quarantined
	for i := range s.findings {
		f := &s.findings[i]
		if s.rules.action(f.code, s.outgoing).rank() < Quarantine.rank() {
			continue
		}
		switch f.code {
		case CodeSchema, CodeNoStructured:
			kind = SchemaInvalid
		case CodeKindNotAdmitted, CodeTooLarge, CodeTooManyBlocks, CodeTextTooLong:
			if kind != SchemaInvalid {
				kind = PolicyBlocked
			}
		default:
			return Quarantined // something is in it that somebody has to look at
		}
	}
	return kind
}

// list writes the findings, in order, each with its place. Names that hold what is secret are not shown in places.
func (s *scan) list(v *Verdict) {
	secret := map[int32]bool{}
	for i := range s.findings {
		if f := &s.findings[i]; f.text >= 0 && s.doc != nil && s.doc.texts[f.text].isName {
			if c := f.code.Info().Class; c == ClassCredential || c == ClassPersonalData {
				secret[f.text] = true
			}
		}
	}
	for i := range s.findings {
		f := &s.findings[i]
		if len(v.Findings) >= maxListed {
			v.Dropped++
			continue
		}
		info := f.code.Info()
		out := Finding{Code: f.code, Class: info.Class, Sensitivity: info.Sensitivity, Place: f.place, Excerpt: f.excerpt}
		if f.text >= 0 && !s.plainText {
			out.Place = s.doc.pointer(f.text, func(n int32) bool { return secret[n] })
		}
		v.Findings = append(v.Findings, out)
	}
}

// fits says that what was redacted is still strict JSON and still satisfies the output schema.
func fits(out []byte, schema func([]byte) error) (ok bool) {
	d, err := parse(out, 10000)
	if err != nil {
		return false
	}
	if schema == nil {
		return true
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	if value := member(d, "structuredContent"); value != nil {
		return schema(value) == nil
	}
	return true
}

// member is the raw value of a member of the root, nil if there is none.
func member(d *document, name string) []byte {
	for i := range d.texts {
		if t := &d.texts[i]; t.isName && t.parent == 0 && string(t.value) == name {
			rest := bytes.TrimLeft(d.raw[t.end:], " \t\r\n:")
			v, err := jsontext.NewDecoder(bytes.NewBuffer(rest)).ReadValue()
			if err != nil {
				return nil
			}
			return v
		}
	}
	return nil
}
