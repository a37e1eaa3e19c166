package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/world"
)

// rows are the commits of each scope.
type rows map[call.Scope][]call.Commit

func (r rows) ScopeHead(s call.Scope) (int64, error) { return int64(len(r[s])), nil }

func (r rows) CommitsAfter(s call.Scope, after int64, limit int, yield func(call.Commit) error) error {
	for i, c := range r[s][min(after, int64(len(r[s]))):] {
		if limit > 0 && i == limit {
			return nil
		}
		if err := yield(c); err != nil {
			return err
		}
	}
	return nil
}

func (rows) ScopeHeads(call.Scope, int, func(call.Scope, int64) error) error {
	return errors.New("nobody asks")
}

// put appends n commits with data of a size.
func (r rows) put(s call.Scope, n, size int) {
	for range n {
		seq := int64(len(r[s]) + 1)
		r[s] = append(r[s], call.Commit{Scope: s, Seq: seq, ID: fmt.Sprint("c", seq), Provider: "chat", Kind: "k", Time: time.Unix(seq, 0), Summary: fmt.Sprint("fact ", seq),
			Data: []byte(`{"n":9007199254740993,"t":"<` + strings.Repeat("x", size) + `>"}`)})
	}
}

func answers(r rows, readable ...string) *Answers {
	list, err := world.ParseReadable(readable)
	if err != nil {
		panic(err)
	}
	return &Answers{View: func(_ context.Context, fn func(world.View) error) error { return fn(r) },
		Readable: func(export string) world.Readable {
			if export == "" {
				return world.Readable{"*"}
			}
			return list
		}}
}

type result struct {
	Content           []struct{ Type, Text string }
	StructuredContent struct {
		Heads      map[string]int64
		Commits    []struct{ Seq int64 }
		Next, Head int64
	}
	Contents []struct{ URI, Text string }
}

func ask(t *testing.T, a *Answers, tool call.ToolID, arguments string) (call.Answer, result) {
	t.Helper()
	answer := a.Answer(t.Context(), tool, "x", []byte(arguments))
	var r result
	if answer.Result != nil {
		if err := json.Unmarshal(answer.Result, &r, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatalf("%s: %v", answer.Result, err)
		}
		structured := jsontext.Value{}
		for name, v := range members(t, answer.Result) {
			if name == "structuredContent" {
				structured = v
			}
		}
		if structured != nil && len(r.Content) == 1 && r.Content[0].Text != string(structured) {
			t.Errorf("the text is %s, and the structured content %s", r.Content[0].Text, structured)
		}
	}
	return answer, r
}

func members(t *testing.T, raw []byte) map[string]jsontext.Value {
	t.Helper()
	var m map[string]jsontext.Value
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// R2.5: the definitions are frozen like those of any provider: each has schemas that can be checked, and its results satisfy
// its own.
func TestR2_5_Definitions(t *testing.T) {
	c, err := Catalog(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r := rows{}
	r.put("qq:1", 3, 10)
	a := answers(r, "qq:*")
	arguments := map[call.ToolID]string{Head: `{"scopes":["qq:1","qq:2"]}`, Delta: `{"scope":"qq:1","after":0}`, Read: `{"uri":"ostiary://world/qq:1"}`}
	for i, id := range Tools() {
		tool := c.Tools[i]
		if tool.ID != id || tool.Effect != call.ReadOnly || tool.Package != call.WorldPackage || len(tool.Scopes.Observe)+len(tool.Scopes.Publish) != 0 {
			t.Errorf("%s: %+v", id, tool.Descriptor)
		}
		if err := tool.Schema.Validate([]byte(arguments[id]), true); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if err := tool.Schema.Validate([]byte(`{}`), true); err == nil {
			t.Errorf("%s takes nothing", id)
		}
		answer, _ := ask(t, a, id, arguments[id])
		if id == Read {
			continue
		}
		if tool.Output == nil {
			t.Fatalf("%s has no output schema", id)
		}
		if err := tool.Output.ValidateValue(members(t, answer.Result)["structuredContent"]); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if err := tool.Output.ValidateValue([]byte(`{"commits":1,"heads":1}`)); err == nil {
			t.Errorf("the output schema of %s admits everything", id)
		}
	}
	if _, reason, ok := c.Tools[0].Provider.Route(); !ok {
		t.Errorf("not available: %+v", reason)
	}
	if err := c.Tools[0].Provider.Settle(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Errorf("settle: %v", err)
	}
	var reg provider.Registry
	if err := reg.Include(c); err != nil {
		t.Fatal(err)
	}
	if tool, ok := reg.Tool(Delta); !ok || tool != c.Tools[1] {
		t.Error("not in the registry")
	}
	if err := reg.Include(c); err == nil {
		t.Error("two tools have one id")
	}
}

// R2.5: what policy says of the tools, and who may change that.
func TestR2_5_PolicyOfBuiltInTools(t *testing.T) {
	c, err := Catalog(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.New([]string{call.WorldPackage}, []policy.ToolSet{ToolSet()}, policy.Rule{Name: "no", Effect: policy.DenyCall, Tools: []string{"aur.mcp.*.*"}},
		policy.Rule{Name: "bob", Effect: policy.DenyCall, Tools: []string{"aur.world.delta"}, Principals: []string{"bob"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range c.Tools {
		if d := p.Judge(policy.Question{Principal: call.Principal{ID: "alice"}, Export: "x", Tool: tool.Descriptor}); d.Verdict != policy.Allow {
			t.Errorf("%s: %+v", tool.ID, d) // a rule of providers' tools is none of them
		}
		if want := tool.ID == Delta; (p.Judge(policy.Question{Principal: call.Principal{ID: "bob"}, Export: "x", Tool: tool.Descriptor}).Verdict == policy.Deny) != want {
			t.Errorf("%s for bob", tool.ID)
		}
		if taint := p.AfterCall(0, tool.Descriptor, call.Outcome{Status: call.Succeeded, Delivery: call.Confirmed}); taint != 0 {
			t.Errorf("%s leaves %s behind, whatever it has read", tool.ID, taint)
		}
	}
	if err := p.Check(policy.Catalog{Tools: Tools(), Principals: []string{"bob"}}); err == nil || !strings.Contains(err.Error(), `"aur.mcp.*.*"`) {
		t.Errorf("check: %v", err)
	}
}

// R5.7: what is read, and what its reader has seen then.
func TestR5_7_Answers(t *testing.T) {
	r := rows{}
	r.put("qq:1", 120, 10)
	a := answers(r, "qq:*")

	answer, got := ask(t, a, Head, `{"scopes":["qq:1","qq:2"]}`)
	if !maps.Equal(got.StructuredContent.Heads, map[string]int64{"qq:1": 120, "qq:2": 0}) || answer.Frontier != nil || answer.Delivery != call.Confirmed || answer.ResultType != "complete" {
		t.Errorf("heads: %+v", answer)
	}
	for arguments, want := range map[string]string{
		`{"scope":"qq:1","after":0}`:               "1-50 next 50",
		`{"scope":"qq:1","after":0,"limit":null}`:  "1-50 next 50",
		`{"scope":"qq:1","after":5,"limit":2}`:     "6-7 next 7",
		`{"scope":"qq:1","after":5.0,"limit":2e0}`: "6-7 next 7",
		`{"scope":"qq:1","after":115,"limit":200}`: "116-120 next 120",
		`{"scope":"qq:1","after":120}`:             "none next 120",
		`{"scope":"qq:2","after":0}`:               "none next 0",
	} {
		answer, got := ask(t, a, Delta, arguments)
		s := got.StructuredContent
		said := "none"
		if n := len(s.Commits); n > 0 {
			said = fmt.Sprintf("%d-%d", s.Commits[0].Seq, s.Commits[n-1].Seq)
		}
		if said += fmt.Sprint(" next ", s.Next); said != want {
			t.Errorf("%s: got %s, want %s", arguments, said, want)
		}
		for _, seq := range answer.Frontier {
			if seq != s.Next || len(answer.Frontier) != 1 {
				t.Errorf("%s: frontier %v", arguments, answer.Frontier)
			}
		}
		if bytes.Contains(answer.Result, []byte(`\u003c`)) || len(s.Commits) > 0 && !bytes.Contains(answer.Result, []byte(`"n":9007199254740993`)) {
			t.Errorf("%s: data is not as it was: %s", arguments, answer.Result)
		}
	}
	// events are words of strangers, facts of calls are not, and neither is where a scope stands.
	r.put("qq:own", 2, 1)
	for i := range r["qq:own"] {
		r["qq:own"][i].CallID = "c"
	}
	for arguments, want := range map[string]bool{`{"scope":"qq:1","after":0}`: true, `{"scope":"qq:own","after":0}`: false, `{"scope":"qq:1","after":120}`: false} {
		if answer, _ := ask(t, a, Delta, arguments); answer.Foreign != want {
			t.Errorf("%s: words of strangers: %v", arguments, !want)
		}
	}
	if answer, _ := ask(t, a, Read, `{"uri":"ostiary://world/qq:own"}`); answer.Foreign {
		t.Error("facts of our own are words of strangers")
	}
	answer, got = ask(t, a, Read, `{"uri":"ostiary://world/qq%3A1"}`)
	if len(got.Contents) != 1 || got.Contents[0].URI != "ostiary://world/qq%3A1" || !strings.Contains(got.Contents[0].Text, `"seq":71,`) || strings.Contains(got.Contents[0].Text, `"seq":70,`) ||
		!strings.Contains(got.Contents[0].Text, `"seq":120,`) || answer.Frontier["qq:1"] != 120 || !answer.Foreign {
		t.Errorf("read: %s, frontier %v", answer.Result, answer.Frontier)
	}
}

// R5.7: what is told at once is bounded, and whoever goes on comes to an end; one commit that is larger than the bound comes
// without its data.
func TestR5_7_AnswersAreBounded(t *testing.T) {
	r := rows{}
	r.put("qq:1", 3, 100<<10)
	r.put("qq:1", 1, pageBytes)
	r.put("qq:1", 2, 100<<10)
	a := answers(r, "*")
	seen, pages := int64(0), 0
	for ; seen < 6; pages++ {
		answer, got := ask(t, a, Delta, fmt.Sprintf(`{"scope":"qq:1","after":%d,"limit":200}`, seen))
		if got.StructuredContent.Next <= seen || len(answer.Result) > 4*pageBytes {
			t.Fatalf("after %d: next %d, %d bytes", seen, got.StructuredContent.Next, len(answer.Result))
		}
		seen = got.StructuredContent.Next
	}
	if pages < 3 {
		t.Errorf("%d pages", pages)
	}
	answer, got := ask(t, a, Read, `{"uri":"ostiary://world/qq:1"}`)
	if text := got.Contents[0].Text; len(text) > 2*pageBytes || !strings.Contains(text, `"seq":6,`) || strings.Contains(text, `"seq":4,`) || answer.Frontier["qq:1"] != 6 {
		t.Errorf("read: %d bytes, frontier %v", len(text), answer.Frontier)
	}
	r.put("qq:2", 1, 2*pageBytes)
	if _, got := ask(t, a, Read, `{"uri":"ostiary://world/qq:2"}`); !strings.Contains(got.Contents[0].Text, `"summary":"fact 1"`) || strings.Contains(got.Contents[0].Text, "data") {
		t.Errorf("one that is too large: %.300s", got.Contents[0].Text)
	}
}

// R5.7: what is refused, and in which words; nothing was sent, and nothing is told.
func TestR5_7_RefusedAnswers(t *testing.T) {
	r := rows{}
	r.put("qq:1", 3, 1)
	r.put("secret:1", 3, 1)
	some, none := answers(r, "qq:*"), answers(r)
	broken := answers(r, "*")
	broken.View = func(context.Context, func(world.View) error) error { return errors.New("disk") }
	for _, c := range []struct {
		a         *Answers
		tool      call.ToolID
		arguments string
		code      call.Code
		words     string
	}{
		{some, Head, `{"scopes":["qq:1","secret:1"]}`, call.CodeDenied, `"secret:1" cannot be read here; what can be read is qq:*`},
		{some, Head, `{"scopes":["secret:none"]}`, call.CodeDenied, `"secret:none" cannot be read here; what can be read is qq:*`},
		{some, Head, `{"scopes":["QQ"]}`, call.CodeDenied, `"QQ" cannot be read here`},
		{some, Delta, `{"scope":"secret:1","after":0}`, call.CodeDenied, "what can be read is qq:*"},
		{none, Delta, `{"scope":"qq:1","after":0}`, call.CodeDenied, "no scope of the world can be read here"},
		{some, Delta, `{"scope":"qq:1","after":4}`, call.CodeFrontierUnknown, "has 3 commits, not 4"},
		{some, Delta, `{"scope":"qq:1","after":1e300}`, call.CodeInvalidArguments, "after is not an integer"},
		{some, Delta, `{"scope":"qq:1","after":0,"limit":0.5}`, call.CodeInvalidArguments, "limit is not an integer"},
		{some, Read, `{"uri":"ostiary://world/secret:1"}`, call.CodeDenied, "there is no such resource"},
		{some, Read, `{"uri":"ostiary://world/"}`, call.CodeDenied, "there is no such resource"},
		{broken, Head, `{"scopes":["qq:1"]}`, call.CodeInternal, ""},
		{broken, Delta, `{"scope":"qq:1","after":0}`, call.CodeInternal, ""},
		{broken, Read, `{"uri":"ostiary://world/qq:1"}`, call.CodeInternal, ""},
		{some, "aur.world.nope", `{}`, call.CodeInternal, ""},
		{some, Head, `{"scopes":1}`, call.CodeInternal, ""},
	} {
		got := c.a.Answer(t.Context(), c.tool, "x", []byte(c.arguments))
		if got.Fault != c.code || got.Delivery != call.NotSent || got.Result != nil || got.Frontier != nil || (got.Words == "") != (c.words == "") || !strings.Contains(got.Words, c.words) || strings.Contains(got.Words, "disk") {
			t.Errorf("%s %s: %+v", c.tool, c.arguments, got)
		}
	}
	if got := some.Answer(t.Context(), Delta, "", []byte(`{"scope":"secret:1","after":0}`)); got.Result == nil {
		t.Errorf("the operator: %+v", got)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if got := broken.Answer(over, Head, "x", []byte(`{"scopes":["qq:1"]}`)); got.Fault != call.CodeCancelled {
		t.Errorf("after its end: %+v", got)
	}
}

// Whatever the arguments are, there is either a result that is an object, with nothing in it that may not be read, or a fault.
func FuzzR5_7_Answers(f *testing.F) {
	r := rows{}
	r.put("qq:1", 3, 1)
	r.put("secret:1", 3, 1)
	a := answers(r, "qq:*")
	f.Add(0, []byte(`{"scopes":["qq:1"]}`))
	f.Add(1, []byte(`{"scope":"qq:1","after":1e0,"limit":2}`))
	f.Add(2, []byte(`{"uri":"ostiary://world/secret%3A1"}`))
	f.Fuzz(func(t *testing.T, which int, arguments []byte) {
		tool := Tools()[uint(which)%3]
		got := a.Answer(t.Context(), tool, "x", arguments)
		if (got.Result == nil) == (got.Fault == "") {
			t.Fatalf("%s %s: %+v", tool, arguments, got)
		}
		if got.Result != nil && (!jsontext.Value(got.Result).IsValid() || bytes.Contains(got.Result, []byte("secret"))) {
			t.Fatalf("%s %s: %s", tool, arguments, got.Result)
		}
	})
}
