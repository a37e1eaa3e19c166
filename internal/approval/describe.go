package approval

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/internal/review"
)

// Description is what a reviewer reads of a call. It has our own words, the names of arguments and the arguments
// themselves, secrets redacted, each part made visible; nothing that a provider said is in it (R7.4).
type Description struct {
	Summary   string // one line
	Arguments string // what will be sent, one line a member (S-064)
	Cut       bool   // Arguments does not show everything, which a reviewer must be told
}

// Bounds of a description.
const (
	maxArguments = 16 << 10
	maxNamed     = 12 // arguments that the summary names
	maxName      = 60
)

// Redact replaces what is secret in a text of the arguments. key is the name of the member that the text is the value of,
// or of the one that its array is; it is "" for a name itself.
type Redact func(key, text string) string

// Describe writes the description of a call. It fails if the arguments are not a JSON object, as does [Bind].
func Describe(c Call, redact Redact) (Description, error) {
	d := describer{redact: redact}
	if c.Arguments != nil {
		if err := d.part("", c.Arguments, true); err != nil {
			return Description{}, fmt.Errorf("describe arguments: %w", err)
		}
	}
	meta, err := canonicalMeta(c.Meta)
	if err != nil {
		return Description{}, fmt.Errorf("describe _meta: %w", err)
	}
	if meta != nil {
		if err := d.part("_meta: ", meta, false); err != nil {
			return Description{}, fmt.Errorf("describe _meta: %w", err)
		}
	}
	out := Description{Arguments: strings.TrimSuffix(d.b.String(), "\n"), Cut: d.cut}
	if d.cut {
		sum := sha256.Sum256(c.Arguments)
		out.Arguments += fmt.Sprintf("\n… not all is shown: %d bytes, sha256:%s", len(c.Arguments)+len(c.Meta), hex.EncodeToString(sum[:]))
	}
	out.Summary = fmt.Sprintf("%s asks to call %s (%s) %s", review.Clip(c.Principal, 120), review.Clip(string(c.Tool), 300), c.Effect, d.names())
	if meta != nil {
		out.Summary += ", and _meta"
	}
	return out, nil
}

// describer writes JSON for people, until its bound is reached.
type describer struct {
	redact  Redact
	b       strings.Builder
	cut     bool
	members []string // of the arguments, the first few
	count   int
}

func (d *describer) names() string {
	if d.count == 0 {
		return "without arguments"
	}
	s := fmt.Sprintf("with %d argument", d.count)
	if d.count > 1 {
		s += "s"
	}
	s += ": " + strings.Join(d.members, ", ")
	if d.count > len(d.members) {
		s += ", …"
	}
	return s
}

func (d *describer) part(label string, raw []byte, arguments bool) error {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if dec.PeekKind() != '{' {
		return fmt.Errorf("they are no object")
	}
	d.write(label)
	if err := d.value(dec, "", 0, arguments); err != nil {
		return err
	}
	d.write("\n")
	return nil
}

func (d *describer) write(s string) {
	if d.cut || d.b.Len()+len(s) > maxArguments {
		if !d.cut && len(s) > 64 { // the beginning of a long text is worth more than nothing
			d.b.WriteString(review.Clip(s, max(0, maxArguments-d.b.Len())))
		}
		d.cut = true
		return
	}
	d.b.WriteString(s)
}

func (d *describer) text(key, s string) string {
	if d.redact != nil {
		s = d.redact(key, s)
	}
	return s
}

func quoted(s string) string { return `"` + strings.ReplaceAll(review.Visible(s), `"`, `\"`) + `"` }

// member is the name of an argument as the summary says it: in quotes unless it is a plain word, so that a name cannot pass
// for words of ours.
func member(name string) string {
	for _, c := range name {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return `"` + strings.ReplaceAll(review.Clip(name, maxName), `"`, `\"`) + `"`
		}
	}
	return review.Clip(name, maxName)
}

// value writes one value; key is the member that it belongs to.
func (d *describer) value(dec *jsontext.Decoder, key string, depth int, top bool) error {
	if d.cut {
		return dec.SkipValue()
	}
	switch k := dec.PeekKind(); k {
	case '{':
		return d.object(dec, depth, top)
	case '[':
		return d.array(dec, key, depth)
	default:
		t, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if k == '"' {
			d.write(quoted(d.text(key, t.String())))
			return nil
		}
		// Numbers as they are written. A secret may be one.
		s := t.String()
		if r := d.text(key, s); r != s {
			s = quoted(r)
		}
		d.write(review.Visible(s))
		return nil
	}
}

func (d *describer) object(dec *jsontext.Decoder, depth int, top bool) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	d.write("{")
	n := 0
	for ; dec.PeekKind() == '"'; n++ {
		t, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := t.String()
		shown := d.text("", name)
		if top {
			if d.count++; len(d.members) < maxNamed {
				d.members = append(d.members, member(shown))
			}
		}
		d.line(depth+1, n)
		d.write(quoted(shown) + ": ")
		if err := d.value(dec, name, depth+1, false); err != nil {
			return err
		}
	}
	return d.close(dec, depth, n, "}")
}

func (d *describer) array(dec *jsontext.Decoder, key string, depth int) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	d.write("[")
	n := 0
	for ; dec.PeekKind() != ']' && dec.PeekKind() != jsontext.KindInvalid; n++ {
		d.line(depth+1, n)
		if err := d.value(dec, key, depth+1, false); err != nil {
			return err
		}
	}
	return d.close(dec, depth, n, "]")
}

func (d *describer) close(dec *jsontext.Decoder, depth, n int, end string) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if n > 0 {
		d.line(depth, 0)
	}
	d.write(end)
	return nil
}

// line begins a member. Deep nesting is told in numbers, not in white space.
func (d *describer) line(depth, n int) {
	if n > 0 {
		d.write(",")
	}
	if depth > 20 {
		d.write("\n" + strings.Repeat("  ", 20) + "(" + strconv.Itoa(depth) + ") ")
		return
	}
	d.write("\n" + strings.Repeat("  ", depth))
}
