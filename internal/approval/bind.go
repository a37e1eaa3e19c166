package approval

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
)

// Call is the exact call that someone is to agree to.
type Call struct {
	ID         call.ID // not part of what is agreed to: a repeat has another
	Principal  string
	Session    string // "" if the caller has none
	Tool       call.ToolID
	Descriptor call.Digest // of the whole definition that the reviewer's gateway holds
	Effect     call.EffectClass
	Policy     call.Digest // snapshot of the policy under which approval is asked for
	Attachment string      // the binding to the provider, without the number of its generation
	Origin     call.Digest // of how the provider is reached: command line, environment, address
	Arguments  []byte      // the raw JSON object; nil: none
	Meta       []byte      // the _meta that travels along, as a raw JSON object; nil: none
	Exact      bool        // approval is needed for exactly what is sent: one for a session is none
}

// Binding is what a grant holds for. Equal digests mean equal facts; the single facts are there to say what has changed.
type Binding struct {
	CallDigest  call.Digest // everything: what a grant for one call is bound to
	GrantDigest call.Digest // everything but what is sent: what a grant for a session is bound to

	Principal       string
	Session         string
	Tool            call.ToolID
	Descriptor      call.Digest
	Effect          call.EffectClass
	Policy          call.Digest
	Attachment      string
	Origin          call.Digest
	ArgumentsDigest call.Digest // of arguments and _meta
}

// Labels keep digests of different things apart.
const (
	labelContent = "ostiary approval content 1"
	labelGrant   = "ostiary approval grant 1"
	labelExact   = "ostiary approval exact grant 1" // no grant for a session is ever bound to a digest with it
	labelCall    = "ostiary approval call 1"
	labelClaim   = "ostiary result claim 1"
)

// Bind takes the digests of a call. White space, the order of keys and the way a string is escaped do not matter in JSON
// and not here; a number counts as it is written, because a tool may read it more exactly than a double does.
func Bind(c Call) (Binding, error) {
	args, err := canonical(c.Arguments)
	if err != nil {
		return Binding{}, fmt.Errorf("bind approval: arguments: %w", err)
	}
	meta, err := canonicalMeta(c.Meta)
	if err != nil {
		return Binding{}, fmt.Errorf("bind approval: _meta: %w", err)
	}
	b := Binding{
		Principal: c.Principal, Session: c.Session, Tool: c.Tool, Descriptor: c.Descriptor, Effect: c.Effect,
		Policy: c.Policy, Attachment: c.Attachment, Origin: c.Origin,
		ArgumentsDigest: digest(labelContent, args, meta),
	}
	label := labelGrant
	if c.Exact {
		label = labelExact
	}
	b.GrantDigest = b.grantDigest(label)
	b.CallDigest = digest(labelCall, b.GrantDigest[:], b.ArgumentsDigest[:])
	return b, nil
}

// Claim is what a later call must be to be given the result of this one: the same caller in the same session, the same tool as
// it was, the same arguments. Policy is asked about the later call, and nothing is sent, so how the provider is reached does
// not count.
func (b *Binding) Claim() call.Digest {
	return digest(labelClaim, []byte(b.Principal), []byte(b.Session), []byte(b.Tool), b.Descriptor[:], b.ArgumentsDigest[:])
}

func (b *Binding) grantDigest(label string) call.Digest {
	return digest(label, []byte(b.Principal), []byte(b.Session), []byte(b.Tool), b.Descriptor[:],
		[]byte(b.Effect.String()), b.Policy[:], []byte(b.Attachment), b.Origin[:])
}

// Exact says that only a grant for exactly what is sent is one.
func (b *Binding) Exact() bool { return b.GrantDigest == b.grantDigest(labelExact) }

// digest hashes an injective encoding of its parts: each is preceded by its length, and nil differs from empty.
func digest(label string, parts ...[]byte) (d call.Digest) {
	h := sha256.New()
	write := func(b []byte) {
		n := uint64(len(b)) + 1
		if b == nil {
			n = 0
		}
		_ = binary.Write(h, binary.BigEndian, n) // a hash takes everything
		h.Write(b)
	}
	write([]byte(label))
	for _, p := range parts {
		write(p)
	}
	h.Sum(d[:0])
	return d
}

// canonical is RFC 8785 with numbers as they are written; nil stays nil.
func canonical(raw []byte) ([]byte, error) {
	if raw == nil {
		return nil, nil
	}
	v := jsontext.Value(bytes.Clone(raw))
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return nil, err
	}
	return v, nil
}

// traceKeys of _meta differ from repeat to repeat and steer nothing.
var traceKeys = [...]string{"traceparent", "tracestate"}

// canonicalMeta is the canonical _meta without its trace context; nil if nothing is left.
func canonicalMeta(raw []byte) ([]byte, error) {
	c, err := canonical(raw)
	if err != nil || c == nil {
		return nil, err
	}
	dec := jsontext.NewDecoder(bytes.NewReader(c))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, fmt.Errorf("not an object: %w", err)
	}
	out := []byte{'{'}
next:
	for dec.PeekKind() == '"' {
		k, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		k = k.Clone()
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		for _, t := range traceKeys {
			if string(k) == `"`+t+`"` {
				continue next
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, k...), ':'), v...)
	}
	if len(out) == 1 {
		return nil, nil
	}
	return append(out, '}'), nil
}

// differs names the facts in which a call is not the one that was agreed to.
func (b *Binding) differs(o *Binding, session bool) (fields []string) {
	for _, f := range []struct {
		name string
		same bool
	}{
		{"principal", b.Principal == o.Principal}, {"session", b.Session == o.Session}, {"tool", b.Tool == o.Tool},
		{"descriptor", b.Descriptor == o.Descriptor}, {"effect class", b.Effect == o.Effect}, {"policy", b.Policy == o.Policy},
		{"attachment", b.Attachment == o.Attachment}, {"provider", b.Origin == o.Origin},
		{"arguments", session || b.ArgumentsDigest == o.ArgumentsDigest},
	} {
		if !f.same {
			fields = append(fields, f.name)
		}
	}
	return fields
}
