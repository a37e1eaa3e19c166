package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/firewall"
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
	b = text(b, "provider", p.tool.Package)
	b = text(b, "rule", p.decision.Rule)
	b = text(b, "schema", p.tool.SchemaDigest.String())
	b = text(b, "tool", string(p.tool.ID))
	return append(b, '}')
}

func (p *passage) refusedBody(o call.Outcome) []byte {
	b := make([]byte, 0, 384)
	b = append(b, '{')
	if p.asked != "" {
		b = text(b, "approval", string(p.asked))
	}
	b = content(b, "arguments", p.request.Arguments)
	b = text(b, "code", string(o.Code))
	if held := p.held(); held != nil {
		b = text(b, "evidence", string(held.Item.ID))
	}
	b = text(b, "export", p.request.Export)
	if p.finding != nil {
		b = list(b, "reasons", p.finding.reasons)
	}
	if p.decision.Rule != "" {
		b = text(b, "rule", p.decision.Rule)
	}
	b = text(b, "stage", string(o.Stage))
	b = text(b, "tool", clip(string(p.request.Tool), 300))
	if p.finding != nil {
		b = text(b, "verdict", p.finding.kind.String())
	}
	return append(b, '}')
}

// outcomeBody has the state of R8.1 in it: a result without a verdict is one that nobody was given. So is that of a call
// whose caller was told something else in its place, because the outcome could not be recorded when it was known.
func outcomeBody(o call.Outcome, a call.Answer, f *finding, told call.Code) []byte {
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
	if a.Result != nil {
		b = content(b, "result", a.Result)
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
