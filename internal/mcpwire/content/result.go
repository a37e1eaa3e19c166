package content

import (
	"time"

	"github.com/ostiary/ostiary/call"
)

// WithOutcome appends a provider's result for a client: byte for byte, with the outcome and, if there is one, the
// provenance added to its _meta. A provider's own values under those keys are dropped, since only the runtime speaks there.
// For a client of the modern era a missing resultType is added, because that era requires one.
func WithOutcome(dst, result []byte, o call.Outcome, p call.Provenance, modern bool) []byte {
	outcome, provenance := outcomeJSON(o), provenanceJSON(p)
	size := len(outcome) + len(provenance) + 64
	meta := Member(result, "_meta")
	switch {
	case kind(meta) != '{':
		own := NewObject(make([]byte, 0, size)).Raw(keyOutcome, outcome)
		if provenance != nil {
			own.Raw(keyProvenance, provenance)
		}
		meta = own.End()
	case provenance != nil:
		meta = ReplaceMember(make([]byte, 0, len(meta)+size), meta, keyOutcome, outcome)
		meta = ReplaceMember(make([]byte, 0, len(meta)+size), meta, keyProvenance, provenance)
	default:
		meta = ReplaceMember(make([]byte, 0, len(meta)+size), dropMember(meta, keyProvenance), keyOutcome, outcome)
	}
	if dst == nil {
		dst = make([]byte, 0, len(result)+len(meta)+64)
	}
	if modern && Member(result, "resultType") == nil {
		result = ReplaceMember(make([]byte, 0, len(result)+32), result, "resultType", []byte(`"complete"`))
	}
	return ReplaceMember(dst, result, "_meta", meta)
}

// dropMember is an object without one of its members; obj itself if it has none of that name.
func dropMember(obj []byte, name string) []byte {
	if Member(obj, name) == nil {
		return obj
	}
	o := NewObject(make([]byte, 0, len(obj)))
	for k, v := range Members(obj) {
		if k != name {
			o.Raw(k, v)
		}
	}
	return o.End()
}

// provenanceJSON is what a client is told of where a result comes from; nil if there is nothing to tell.
func provenanceJSON(p call.Provenance) []byte {
	if p == (call.Provenance{}) {
		return nil
	}
	o := NewObject(make([]byte, 0, 320)).
		String("provider", p.Provider).String("tool", string(p.Tool)).String("call", string(p.CallID)).
		String("digest", p.Descriptor.String()).String("protocol", "mcp").String("revision", p.Revision)
	if !p.Time.IsZero() {
		o.String("time", p.Time.UTC().Format(time.RFC3339Nano))
	}
	return o.String("verdict", p.Verdict).End()
}

// RefusalResult is what a client gets when the path itself speaks: a tool result with isError, one text block fit for a
// model, and the outcome. It never holds words of the provider.
func RefusalResult(o call.Outcome, modern bool) []byte {
	text := o.Message
	if text == "" {
		info := o.Code.Info()
		text = info.Meaning + " " + info.Advice
	}
	r := NewObject(make([]byte, 0, 256+len(text)))
	if modern {
		r.String("resultType", resultComplete)
	}
	block := NewObject(nil).String("type", "text").String("text", text).End()
	r.Raw("content", append(append([]byte{'['}, block...), ']'))
	r.Bool("isError", true)
	return r.Raw("_meta", NewObject(nil).Raw(keyOutcome, outcomeJSON(o)).End()).End()
}

func outcomeJSON(o call.Outcome) []byte {
	b, err := o.MarshalJSON()
	if err != nil { // only a call id could fail to marshal, and a string cannot
		return []byte(`{"status":"unknown","delivery":"unknown"}`)
	}
	return b
}
