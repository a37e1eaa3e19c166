package call

import (
	"encoding/json"
	"time"
)

// Scope names a part of the world that calls observe and publish, such as aurora:mcp:files or qq:group:42 (R4.3).
type Scope string

// Frontier is what somebody has seen of the world: the sequence of the last commit known, by scope. A scope that is not in
// it is one of which nothing has been seen. nil says nothing at all; an empty one says that nothing has been seen.
type Frontier map[Scope]int64

// Commit is one fact of the world, as it stands in one scope (R5.7). A commit in several scopes has a sequence in each.
type Commit struct {
	Scope Scope `json:"scope"`
	Seq   int64 `json:"seq"` // from 1, without gaps, in this scope

	ID       string          `json:"commit,omitempty"`     // of the commit; never repeats
	Provider string          `json:"provider,omitempty"`   // whose fact it is: the package
	Source   string          `json:"source,omitempty"`     // where its provider says that it comes from; "" for the runtime's own
	Kind     string          `json:"kind"`                 // message.received, tool.succeeded …
	Time     time.Time       `json:"time"`                 // when it was committed
	Occurred time.Time       `json:"occurred_at,omitzero"` // when its provider says that it happened, zero if it does not say
	Summary  string          `json:"summary"`              // one line fit for a model: it has been screened
	Data     json.RawMessage `json:"data,omitempty"`       // a JSON object, screened; nil: none
	CallID   ID              `json:"call,omitempty"`       // the call that made it; "" for an event
}
