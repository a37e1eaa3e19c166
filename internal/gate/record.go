package gate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/evidence"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/world"
)

// The bodies of the ledger's records. They are written in canonical order, so that canonicalising them costs little, and
// hold digests in place of arguments and results: neither may carry a secret into the ledger (R6.9).

func (p *passage) intentBody() []byte {
	b := make([]byte, 0, 512)
	b = append(b, '{')
	if p.grant != "" {
		b = text(b, "approval", string(p.grant))
	}
	b = content(b, "arguments", p.request.Arguments)
	b = text(b, "descriptor", p.tool.DescriptorDigest.String())
	b = text(b, "effect", p.tool.Effect.String())
	b = text(b, "export", p.request.Export)
	b = text(b, "generation", p.generation.String())
	b = text(b, "policy", p.gate.o.Policy.Snapshot().String())
	b = text(b, "provider", p.tool.Package)
	b = text(b, "rule", p.decision.Rule)
	b = text(b, "schema", p.tool.SchemaDigest.String())
	b = text(b, "tool", string(p.tool.ID))
	b = text(b, "trace", p.trace())
	return append(b, '}')
}

func (p *passage) refusedBody(o call.Outcome) []byte {
	b := make([]byte, 0, 768)
	b = append(b, '{')
	if p.asked != "" {
		b = text(b, "approval", string(p.asked))
	}
	b = content(b, "arguments", p.request.Arguments)
	if p.askedBy != "" {
		b = text(b, "asked_by", string(p.askedBy))
	}
	b = text(b, "code", string(o.Code))
	if p.tool != nil {
		b = text(b, "descriptor", p.tool.DescriptorDigest.String())
	}
	if held := p.held(); held != nil {
		b = text(b, "evidence", string(held.Item.ID))
	}
	b = text(b, "export", p.request.Export)
	b = text(b, "policy", p.gate.o.Policy.Snapshot().String())
	if p.tool != nil {
		b = text(b, "provider", p.tool.Package)
	}
	if p.finding != nil {
		b = list(b, "reasons", p.finding.reasons)
	}
	if p.decision.Rule != "" {
		b = text(b, "rule", p.decision.Rule)
	}
	b = text(b, "stage", string(o.Stage))
	b = text(b, "tool", clip(string(p.request.Tool), 300))
	b = text(b, "trace", p.trace())
	if p.finding != nil {
		b = text(b, "verdict", p.finding.kind.String())
	}
	return append(b, '}')
}

// outcomeBody has the state of R8.1 in it: a result without a verdict is one that nobody was given. So is that of a call
// whose caller was told something else in its place, because the outcome could not be recorded when it was known. What was
// given is named if it is not what came.
func outcomeBody(reply call.Reply, a call.Answer, f *finding, told call.Code) []byte {
	o := reply.Outcome
	b := make([]byte, 0, 320)
	b = append(b, '{')
	if f != nil && len(f.artefacts) > 0 {
		b = artefacts(b, f.artefacts)
	}
	if o.Code != "" {
		b = text(b, "code", string(o.Code))
	}
	b = text(b, "delivery", o.Delivery.String())
	if o.Effect != call.EffectUnstated {
		b = text(b, "effect", o.Effect.String())
	}
	if a.Error != nil {
		b = content(b, "error", words(a.Error))
	}
	if f != nil && f.evidence != nil {
		b = text(b, "evidence", string(f.evidence.Item.ID))
	}
	if a.HTTPStatus != 0 {
		b = number(b, "http_status", int64(a.HTTPStatus))
	}
	if a.Error != nil {
		b = number(b, "provider_error", a.Error.Code)
	}
	if f != nil && len(f.reasons) > 0 {
		b = list(b, "reasons", f.reasons)
	}
	switch {
	case reply.Result != nil && !bytes.Equal(reply.Result, a.Result):
		b = content(b, "released", reply.Result)
	case reply.Error != nil && !bytes.Equal(words(reply.Error), words(a.Error)):
		b = content(b, "released", words(reply.Error))
	}
	if a.Result != nil {
		b = content(b, "result", a.Result)
	}
	if reply.Result != nil && len(a.Frontier) > 0 { // what the caller has read of the world, and up to where
		b = append(key(b, "seen"), '{')
		for _, s := range slices.Sorted(maps.Keys(a.Frontier)) {
			b = number(b, string(s), a.Frontier[s])
		}
		b = append(b, '}')
	}
	if f != nil && f.sensitivity != firewall.SensitivityNone {
		b = text(b, "sensitivity", f.sensitivity.String())
	}
	if o.Stage != "" {
		b = text(b, "stage", string(o.Stage))
	}
	b = text(b, "status", o.Status.String())
	if told != "" {
		b = text(b, "told", string(told))
	}
	if f != nil {
		b = text(b, "verdict", f.kind.String())
	}
	return append(b, '}')
}

// words are what a provider's error says.
func words(e *call.ProviderError) []byte {
	return append([]byte(e.Message), e.Data...)
}

// trace is the id of the trace that the caller has put the call into (W3C); a call that is in none is a trace of its own,
// whose id follows from the call's.
func (p *passage) trace() string {
	if id, ok := traceIn(p.request.Meta); ok {
		return id
	}
	sum := sha256.Sum256([]byte("ostiary trace of " + string(p.id)))
	return hex.EncodeToString(sum[:16])
}

// traceIn finds the id of the trace in a _meta.
func traceIn(meta []byte) (id string, ok bool) {
	if len(meta) == 0 {
		return "", false
	}
	d := jsontext.NewDecoder(bytes.NewReader(meta))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return "", false
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return "", false
		}
		if name.String() != "traceparent" {
			if d.SkipValue() != nil {
				return "", false
			}
			continue
		}
		v, err := d.ReadToken()
		if err != nil || v.Kind() != '"' {
			return "", false
		}
		return traceID(v.String())
	}
	return "", false
}

// traceID takes the id out of a traceparent, whose form the edge has checked.
func traceID(parent string) (string, bool) {
	_, rest, _ := strings.Cut(parent, "-")
	id, _, _ := strings.Cut(rest, "-")
	b, err := hex.DecodeString(id)
	return id, err == nil && len(b) == 16
}

// worldBody adds to the body of an outcome where its fact stands. No key comes after it in canonical order.
func worldBody(outcome []byte, id string, scopes []call.Scope, at world.Place) []byte {
	b := append(make([]byte, 0, len(outcome)+96), outcome[:len(outcome)-1]...)
	b = append(key(b, "world"), `{"at":{`...)
	for _, s := range scopes { // sorted, as they are resolved
		b = number(b, string(s), at[s])
	}
	b = append(b, '}')
	return append(text(b, "commit", id), '}', '}')
}

// deliveredBody is the record of a released result that was handed over.
func deliveredBody(i *evidence.Item) []byte {
	b := []byte{'{'}
	b = text(b, "evidence", string(i.ID))
	b = text(b, "released_by", i.Decision.By)
	b = text(b, "sha256", i.SHA256.String())
	b = text(b, "to", string(i.Delivery.To))
	b = text(b, "tool", string(i.Tool))
	return append(b, '}')
}

func key(b []byte, k string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, k...)
	return append(b, '"', ':')
}

func text(b []byte, k, v string) []byte {
	b = key(b, k)
	out, err := jsontext.AppendQuote(b, v)
	if err != nil { // invalid UTF-8, which no strict parse lets in: keep the record, say that it was odd
		return append(b, `"invalid UTF-8"`...)
	}
	return out
}

func list(b []byte, k string, vs []string) []byte {
	b = append(key(b, k), '[')
	for i, v := range vs {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, v) // codes of our own
	}
	return append(b, ']')
}

// maxArtefacts bounds how many artefacts of one result the ledger names; the digest of the result covers all.
const maxArtefacts = 100

// artefacts are the hashes of what is not text, before anything is done with it (R8.7).
func artefacts(b []byte, as []firewall.Artefact) []byte {
	b = append(key(b, "artefacts"), '[')
	for i, a := range as[:min(len(as), maxArtefacts)] {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		b = number(b, "bytes", int64(a.Bytes))
		b = text(b, "kind", clip(a.Kind, 60))
		b = text(b, "mimeType", clip(a.MIME, 120))
		b = text(b, "place", clip(a.Place, 200))
		b = append(text(b, "sha256", a.SHA256), '}')
	}
	return append(b, ']')
}

func number(b []byte, k string, v int64) []byte { return strconv.AppendInt(key(b, k), v, 10) }

// content stands for bytes that are not kept: how many, and their digest.
func content(b []byte, k string, v []byte) []byte {
	b = key(b, k)
	b = append(b, `{"bytes":`...)
	b = strconv.AppendInt(b, int64(len(v)), 10)
	b = append(b, `,"sha256":"`...)
	sum := sha256.Sum256(v)
	b = hex.AppendEncode(b, sum[:])
	return append(b, '"', '}')
}
