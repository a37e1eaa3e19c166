package world

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
)

// Bounds of an event (R5.2).
const (
	MaxEvent     = 64 << 10 // bytes of a whole payload
	MaxEventID   = 256      // bytes
	MaxSource    = 256      // bytes
	MaxKind      = 128      // bytes
	MaxSummary   = 2000     // characters
	MaxEventData = 32 << 10 // bytes
)

// Event is what a provider says has happened, as it says it.
type Event struct {
	ID       string // visible ASCII; never repeats for another event of the same provider
	Source   string // where it comes from; one line
	Scope    call.Scope
	Kind     string
	Occurred time.Time
	Summary  string // one line
	Data     []byte // a JSON object; nil: none
}

// Refusal is why an event does not become a fact, from a closed list.
type Refusal string

// The refusals. The first are of what an event says, the others of when it says it, and to whom.
const (
	Malformed     Refusal = "malformed"     // no strict JSON object, or too large
	UnknownField  Refusal = "unknown_field" // a member that version 1 does not have
	BadID         Refusal = "event_id"
	BadSource     Refusal = "source"
	BadScope      Refusal = "scope"
	ScopeWithheld Refusal = "scope_withheld" // screening finds something in it
	ForeignScope  Refusal = "foreign_scope"  // another provider's own, or one that the configuration does not give
	BadKind       Refusal = "kind"
	ReservedKind  Refusal = "reserved_kind" // a kind of the runtime's own facts
	BadTime       Refusal = "occurred_at"
	BadSummary    Refusal = "summary"
	BadData       Refusal = "data"

	NotVerified   Refusal = "not_verified"   // it came before the server had said what it speaks
	NotNegotiated Refusal = "not_negotiated" // the extension does not hold, or nobody has switched it on
	StartFailed   Refusal = "start_failed"
	NotAdmitted   Refusal = "not_admitted" // the provider waits for admission, or is in quarantine
	Overflow      Refusal = "overflow"     // more than is held at a time
	Stopping      Refusal = "stopping"
	Internal      Refusal = "internal" // a fault of the gateway's own
)

// EventError says what is wrong with an event, in words of ours.
type EventError struct {
	Refusal Refusal
	Text    string
}

func (e *EventError) Error() string { return "event: " + e.Text }

func refuse(r Refusal, format string, args ...any) error {
	return &EventError{r, fmt.Sprintf(format, args...)}
}

// reserved begin the kinds of facts that the runtime itself commits.
var reserved = []string{"engine", "tool", "output", "cadence", "ops", "mcp"}

// Check reports what is wrong with an event: an [*EventError].
func (e *Event) Check() error {
	if e.ID == "" || len(e.ID) > MaxEventID || strings.ContainsFunc(e.ID, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return refuse(BadID, "event_id: expected 1 to %d visible ASCII characters", MaxEventID)
	}
	if e.Source == "" || len(e.Source) > MaxSource || !oneLine(e.Source) {
		return refuse(BadSource, "source: expected one line of 1 to %d bytes without control characters", MaxSource)
	}
	if err := CheckScope(e.Scope); err != nil {
		return refuse(BadScope, "%v", err)
	}
	if err := checkKind(e.Kind); err != nil {
		return err
	}
	if y := e.Occurred.Year(); y < 1700 || y > 2200 { // what the journal can hold, to the nanosecond
		return refuse(BadTime, "occurred_at: expected a year from 1700 to 2200")
	}
	if strings.TrimFunc(e.Summary, unicode.IsSpace) == "" || utf8.RuneCountInString(e.Summary) > MaxSummary || !oneLine(e.Summary) {
		return refuse(BadSummary, "summary: expected one line of 1 to %d characters without control characters", MaxSummary)
	}
	if e.Data != nil && (len(e.Data) > MaxEventData || jsontext.Value(e.Data).Kind() != '{' || !jsontext.Value(e.Data).IsValid()) {
		return refuse(BadData, "data: expected a JSON object of at most %d bytes", MaxEventData)
	}
	return nil
}

func oneLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' })
}

func checkKind(kind string) error {
	if kind == "" || len(kind) > MaxKind {
		return refuse(BadKind, "kind: expected 1 to %d characters", MaxKind)
	}
	for i, segment := range strings.Split(kind, ".") {
		if segment == "" || segment[0] < 'a' || segment[0] > 'z' {
			return refuse(BadKind, "kind: each dotted segment starts with a lower-case letter")
		}
		for _, c := range []byte(segment) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
				return refuse(BadKind, "kind: only lower-case letters, digits, '_' and '-' in a segment")
			}
		}
		if i == 0 && slices.Contains(reserved, segment) {
			return refuse(ReservedKind, "kind: %s. begins the kinds of the runtime's own facts", segment)
		}
	}
	return nil
}

// ReadEvent reads the payload of an event notification. It has exactly the members event_id, source, scope, kind,
// occurred_at, summary and, if there is any, data. Line breaks in the summary become blanks. An error is an [*EventError].
func ReadEvent(raw []byte) (Event, error) {
	var e Event
	if len(raw) > MaxEvent {
		return e, refuse(Malformed, "%d bytes: at most %d are possible", len(raw), MaxEvent)
	}
	broken := func(err error) error { return refuse(Malformed, "no strict JSON object: %v", err) }
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.ReadToken(); err != nil {
		return e, broken(err)
	} else if t.Kind() != '{' {
		return e, refuse(Malformed, "not an object")
	}
	occurred := ""
	var wrong error // told only if all of it is JSON
	for dec.PeekKind() == '"' {
		t, err := dec.ReadToken()
		if err != nil {
			return e, broken(err)
		}
		name := t.String()
		v, err := dec.ReadValue()
		if err != nil {
			return e, broken(err)
		}
		var into *string
		var no Refusal
		switch name {
		case "event_id":
			into, no = &e.ID, BadID
		case "source":
			into, no = &e.Source, BadSource
		case "scope":
			into, no = (*string)(&e.Scope), BadScope
		case "kind":
			into, no = &e.Kind, BadKind
		case "occurred_at":
			into, no = &occurred, BadTime
		case "summary":
			into, no = &e.Summary, BadSummary
		case "data":
			e.Data = v.Clone()
			continue
		default:
			wrong = refuse(UnknownField, "a member that an event does not have")
			continue
		}
		if v.Kind() != '"' {
			wrong = refuse(no, "%s: expected a string", name)
			continue
		}
		b, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return e, broken(err)
		}
		*into = string(b)
	}
	if _, err := dec.ReadToken(); err != nil {
		return e, broken(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return e, refuse(Malformed, "something follows the object")
	}
	if wrong != nil {
		return e, wrong
	}
	var err error
	if e.Occurred, err = readTime(occurred); err != nil {
		return e, err
	}
	e.Summary = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ").Replace(e.Summary)
	if err := e.Check(); err != nil {
		return e, err
	}
	if e.Data != nil {
		if err := (*jsontext.Value)(&e.Data).Compact(); err != nil {
			return e, broken(err)
		}
	}
	return e, nil
}

// readTime reads a time of RFC 3339 with its zone. What Go's own reader takes beyond that is not taken.
func readTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	_, fraction, _ := strings.Cut(s, ".")
	if err != nil || strings.Contains(s, ",") || s[len("2006-01-02T15")] != ':' || digits(fraction) > 9 {
		return t, refuse(BadTime, "occurred_at: expected a time such as 2026-07-28T09:30:00.5+02:00, with its zone")
	}
	return t, nil
}

// digits counts those at the beginning of s.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// ScopePattern is one of the scopes that a provider may speak of: '*' stands for any text, also over several segments.
type ScopePattern string

// Check reports why p can be no scope.
func (p ScopePattern) Check() error {
	if p == "*" {
		return nil
	}
	if err := CheckScope(call.Scope(strings.ReplaceAll(string(p), "*", "x"))); err != nil {
		return fmt.Errorf("%w (with x for each *)", err)
	}
	return nil
}

// Matches says whether s is one of the scopes that p stands for.
func (p ScopePattern) Matches(s call.Scope) bool {
	parts := strings.Split(string(p), "*")
	rest, ok := strings.CutPrefix(string(s), parts[0])
	if !ok {
		return false
	}
	if len(parts) == 1 {
		return rest == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// maySpeak reports why a provider may not speak of a scope. What stands for another provider is never its to speak of.
func maySpeak(pkg string, scopes []ScopePattern, s call.Scope) error {
	if foreign(pkg, s) {
		return refuse(ForeignScope, "the scope stands for another provider")
	}
	if len(scopes) > 0 && !slices.ContainsFunc(scopes, func(p ScopePattern) bool { return p.Matches(s) }) {
		return refuse(ForeignScope, "the scope is not among event_scopes")
	}
	return nil
}
