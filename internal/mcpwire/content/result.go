package content

import (
	"time"

	"github.com/ostiary/ostiary/call"
)

// WithOutcome appends a provider's result for a client: byte for byte, with what the runtime says of it added to its _meta.
// A provider's own values under the runtime's keys are dropped, since only the runtime speaks there. For a client of the
// modern era a missing resultType is added, because that era requires one.
func WithOutcome(dst []byte, r *call.Reply, modern bool) []byte {
	result := r.Result
	meta := ownMeta(Member(result, "_meta"), r)
	if dst == nil {
		dst = make([]byte, 0, len(result)+len(meta)+64)
	}
	if modern && Member(result, "resultType") == nil {
		result = ReplaceMember(make([]byte, 0, len(result)+32), result, "resultType", []byte(`"complete"`))
	}
	return ReplaceMember(dst, result, "_meta", meta)
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
	if o.String("verdict", p.Verdict); p.ReleasedBy != "" {
		o.String("released_by", p.ReleasedBy)
	}
	return o.End()
}

// UnknownResult appends the answer to a call whose provider does not know what it did (R4.6): our words first, then what the
// provider says of it, which a firewall has let in. It is an error whatever the provider says, and nothing of it can be taken
// for a result: no structured content, and no key but the content.
func UnknownResult(dst []byte, r *call.Reply, modern bool) []byte {
	o := NewObject(dst)
	if modern {
		o.String("resultType", resultComplete)
	}
	blocks := append([]byte{'['}, textBlock(messageOf(r.Outcome))...)
	for b := range Elements(Member(r.Result, "content")) {
		blocks = append(append(blocks, ','), b...)
	}
	o.Raw("content", append(blocks, ']')).Bool("isError", true)
	return o.Raw("_meta", ownMeta(nil, r)).End()
}

func messageOf(o call.Outcome) string {
	if o.Message != "" {
		return o.Message
	}
	info := o.Code.Info()
	return info.Meaning + " " + info.Advice
}

func textBlock(text string) []byte {
	return NewObject(nil).String("type", "text").String("text", text).End()
}

// RefusalResult is what a client gets when the path itself speaks: a tool result with isError, one text block fit for a
// model, and the outcome. It never holds words of the provider; what a caller has missed stands below ours, marked as what
// it is.
func RefusalResult(r *call.Reply, modern bool) []byte {
	text := messageOf(r.Outcome) + missedText(r.Missed)
	o := NewObject(make([]byte, 0, 256+len(text)))
	if modern {
		o.String("resultType", resultComplete)
	}
	o.Raw("content", append(append([]byte{'['}, textBlock(text)...), ']'))
	o.Bool("isError", true)
	return o.Raw("_meta", ownMeta(nil, r)).End()
}

// OutcomeJSON is an outcome as clients are told it.
func OutcomeJSON(o call.Outcome) []byte {
	b, err := o.MarshalJSON()
	if err != nil { // only a call id could fail to marshal, and a string cannot
		return []byte(`{"status":"unknown","delivery":"unknown"}`)
	}
	return b
}
