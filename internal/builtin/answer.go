package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/world"
)

// Bounds of what is told at once. A client may show all of it to a model.
const (
	pageDefault, pageMost = 50, 200
	pageBytes             = 256 << 10
	resourceCommits       = 50
)

// mediaType is that of the text of a resource.
const mediaType = "application/json"

// Answers answers calls of the tools.
type Answers struct {
	// View reads a consistent state of the world.
	View func(context.Context, func(world.View) error) error
	// Readable are the scopes that may be read through an export; "" stands for the operator's own calls.
	Readable func(export string) world.Readable
}

// Answer is what becomes of a call whose arguments satisfy the tool's input schema.
func (a *Answers) Answer(ctx context.Context, tool call.ToolID, export string, arguments []byte) call.Answer {
	q := query{ctx: ctx, view: a.View, readable: a.Readable(export)}
	var err error
	switch tool {
	case Head:
		err = q.head(arguments)
	case Delta:
		err = q.delta(arguments)
	case Read:
		err = q.read(arguments)
	default:
		err = fmt.Errorf("%s is not built in", tool)
	}
	if err != nil {
		return refused(ctx, err)
	}
	return call.Answer{Delivery: call.Confirmed, Result: q.result, ResultType: "complete", Frontier: q.seen, Foreign: q.foreign}
}

// refusal is a call that cannot be answered, in words for its caller.
type refusal struct {
	code  call.Code
	words string
}

func (r *refusal) Error() string { return r.words }

func refused(ctx context.Context, err error) call.Answer {
	answer := call.Answer{Delivery: call.NotSent, Fault: call.CodeInternal, Detail: err.Error()}
	no, ok := errors.AsType[*refusal](err)
	switch {
	case ok:
		answer.Fault, answer.Words = no.code, no.words
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		answer.Fault = call.CodeDeadlineExceeded
	case ctx.Err() != nil:
		answer.Fault = call.CodeCancelled
	}
	return answer
}

// query is one call on its way to its result.
type query struct {
	ctx      context.Context
	view     func(context.Context, func(world.View) error) error
	readable world.Readable

	result  []byte
	seen    call.Frontier // what the caller has seen by reading the result; nil: nothing
	foreign bool          // there are events in it; the facts of calls are in words of our own
}

// mayRead refuses a scope in the same words whether or not there is anything in it.
func (q *query) mayRead(s call.Scope) error {
	switch {
	case world.CheckScope(s) == nil && q.readable.Has(s):
		return nil
	case len(q.readable) == 0:
		return &refusal{call.CodeDenied, "no scope of the world can be read here"}
	}
	return &refusal{call.CodeDenied, fmt.Sprintf("the scope %q cannot be read here; what can be read is %s", s, q.readable)}
}

func (q *query) head(arguments []byte) error {
	var in struct {
		Scopes []call.Scope `json:"scopes"`
	}
	if err := decode(arguments, &in); err != nil {
		return err
	}
	var out struct {
		Heads map[call.Scope]int64 `json:"heads"`
	}
	out.Heads = make(map[call.Scope]int64, len(in.Scopes))
	for _, s := range in.Scopes {
		if err := q.mayRead(s); err != nil {
			return err
		}
	}
	err := q.view(q.ctx, func(v world.View) (err error) {
		for _, s := range in.Scopes {
			if out.Heads[s], err = v.ScopeHead(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return q.structured(&out)
}

// shown are commits as clients see them, with the names that what was missed has, too.
func (q *query) shown(cs []call.Commit) []call.Commit {
	out := make([]call.Commit, len(cs))
	for i, c := range cs {
		q.foreign = q.foreign || c.CallID == ""
		out[i], out[i].Time = c, c.Time.UTC()
	}
	return out
}

func (q *query) delta(arguments []byte) error {
	var in struct {
		Scope call.Scope     `json:"scope"`
		After jsontext.Value `json:"after"`
		Limit jsontext.Value `json:"limit"`
	}
	if err := decode(arguments, &in); err != nil {
		return err
	}
	after, err := integer("after", in.After, 0)
	if err != nil {
		return err
	}
	limit, err := integer("limit", in.Limit, pageDefault)
	if err != nil {
		return err
	}
	if err := q.mayRead(in.Scope); err != nil {
		return err
	}
	var out struct {
		Commits []call.Commit `json:"commits"`
		Next    int64         `json:"next"`
		Head    int64         `json:"head"`
	}
	var news world.News
	err = q.view(q.ctx, func(v world.View) (err error) {
		news, err = world.Since(v, call.Frontier{in.Scope: after}, world.Bound{Commits: int(min(limit, pageMost)), Bytes: pageBytes})
		return err
	})
	if err != nil {
		return err
	}
	out.Commits, out.Next, out.Head = q.shown(news.Commits), news.UpTo[in.Scope], news.Heads[in.Scope]
	if after > out.Head {
		return &refusal{call.CodeFrontierUnknown, fmt.Sprintf("the scope %s has %d commits, not %d", in.Scope, out.Head, after)}
	}
	q.seen = call.Frontier{in.Scope: out.Next}
	return q.structured(&out)
}

// read answers the reading of a resource: the last commits of its scope, in their order.
func (q *query) read(arguments []byte) error {
	var in struct {
		URI string `json:"uri"`
	}
	if err := decode(arguments, &in); err != nil {
		return err
	}
	scope, err := world.ParseURI(in.URI)
	if err == nil {
		err = q.mayRead(scope)
	}
	if err != nil { // in the same words
		return &refusal{call.CodeDenied, "there is no such resource"}
	}
	var out struct {
		Scope   call.Scope    `json:"scope"`
		Head    int64         `json:"head"`
		Commits []call.Commit `json:"commits"`
	}
	out.Scope = scope
	err = q.view(q.ctx, func(v world.View) (err error) {
		var cs []call.Commit
		cs, out.Head, err = world.Last(v, scope, world.Bound{Commits: resourceCommits, Bytes: pageBytes})
		out.Commits = q.shown(cs)
		return err
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(&out)
	if err != nil {
		return err
	}
	type contents struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType"`
		Text     string `json:"text"`
	}
	q.seen = call.Frontier{scope: out.Head}
	q.result, err = json.Marshal(map[string][]contents{"contents": {{in.URI, mediaType, string(text)}}})
	return err
}

// structured is a tool's result: the same as structured content and as text.
func (q *query) structured(out any) error {
	raw, err := json.Marshal(out, json.Deterministic(true))
	if err != nil {
		return err
	}
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	q.result, err = json.Marshal(struct {
		Content    []block        `json:"content"`
		Structured jsontext.Value `json:"structuredContent"`
	}{[]block{{"text", string(raw)}}, raw})
	return err
}

func decode(arguments []byte, in any) error {
	if err := json.Unmarshal(arguments, in); err != nil { // the schema has been checked: this is a fault of ours
		return fmt.Errorf("read the arguments: %w", err)
	}
	return nil
}

// integer reads a JSON number that is one, in whatever way it is written; null and none are the default.
func integer(name string, raw jsontext.Value, byDefault int64) (int64, error) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return byDefault, nil
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil && n >= 0 {
		return n, nil
	}
	const exact = 1 << 53
	if f, err := strconv.ParseFloat(string(raw), 64); err == nil && f >= 0 && f < exact && f == float64(int64(f)) {
		return int64(f), nil
	}
	return 0, &refusal{call.CodeInvalidArguments, name + " is not an integer that can be"}
}
