package content

import "github.com/ostiary/ostiary/call"

// WithOutcome appends a provider's result for a client: byte for byte, with _meta["org.ostiary/outcome"] added to it. A
// provider's own value under that key is dropped, since only the runtime speaks there. For a client of the modern era a
// missing resultType is added, because that era requires one.
func WithOutcome(dst, result []byte, o call.Outcome, modern bool) []byte {
	outcome := outcomeJSON(o)
	meta := Member(result, "_meta")
	if kind(meta) == '{' {
		meta = ReplaceMember(make([]byte, 0, len(meta)+len(outcome)+32), meta, keyOutcome, outcome)
	} else {
		meta = NewObject(make([]byte, 0, len(outcome)+32)).Raw(keyOutcome, outcome).End()
	}
	if dst == nil {
		dst = make([]byte, 0, len(result)+len(meta)+64)
	}
	if modern && Member(result, "resultType") == nil {
		result = ReplaceMember(make([]byte, 0, len(result)+32), result, "resultType", []byte(`"complete"`))
	}
	return ReplaceMember(dst, result, "_meta", meta)
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
