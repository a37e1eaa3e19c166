package approval

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Record is the body of the ledger's record of r as it stands: what was asked, bound to what, and what was decided by whom
// (R9.1). It has digests in place of arguments and nothing that is secret. Its keys are in canonical order.
func (r *Request) Record() []byte {
	b := []byte{'{'}
	add := func(k, v string) {
		if v == "" {
			return
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, k)
		b = append(b, ':')
		b, _ = jsontext.AppendQuote(b, v) // invalid UTF-8 becomes U+FFFD: the record must not be lost for it
	}
	add("approval", string(r.ID))
	add("arguments", r.ArgumentsDigest.String())
	add("asked_by", string(r.CallID))
	add("attachment", r.Attachment)
	add("binding", r.CallDigest.String())
	add("created", stamp(r.Created))
	add("decided", stamp(r.Decided))
	add("decider", r.Decider)
	add("decision", r.Decision.String())
	add("descriptor", r.Descriptor.String())
	add("effect", r.Effect.String())
	add("evidence", r.Evidence)
	add("expires", stamp(r.Expires))
	add("policy", r.Policy.String())
	add("provider", r.Provider)
	add("reason", r.Reason)
	add("sensitivity", r.Sensitivity.String())
	add("spent_by", string(r.SpentBy))
	add("state", r.State.String())
	add("tool", string(r.Tool))
	add("until", stamp(r.Until))
	return append(b, '}')
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
