package exampleserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// call is tools/call.
func (s *server) call(ctx context.Context, ex *exchange) (answer, *rpcError) {
	name, ok := ex.params.str("name")
	if !ok {
		return answer{}, invalidParams("name: expected a string")
	}
	args := object{}
	if raw, given := ex.params["arguments"]; given {
		var err error
		if args, err = parseObject(raw); err != nil {
			return answer{}, invalidParams("arguments: expected an object")
		}
	}
	t := findTool(name)
	if t == nil && s.opts.Extensions {
		t = findExtensionTool(name)
	}
	if t == nil {
		if isExtra(name, s.opts.Tools) || s.opts.Odd && isOdd(name) {
			return text(name), nil
		}
		return answer{}, invalidParams("unknown tool: " + name)
	}
	s.ranOnce(name)
	return t.run(s, ctx, ex, args)
}

// ranOnce notes that a tool ran, before it does anything else.
func (s *server) ranOnce(name string) {
	s.mu.Lock()
	s.calls++
	s.ran[name]++
	if s.calls == s.opts.DriftAfter {
		s.driftLocked("echo", "description")
		s.announceLocked()
	}
	s.mu.Unlock()
	s.tally(name)
}

func (s *server) tally(line string) {
	if s.opts.Counter == "" {
		return
	}
	if err := tally(s.opts.Counter, line); err != nil {
		s.log.Error("the counter cannot be written", "error", err)
	}
}

func text(t string) answer {
	return answer{members: append(append([]byte(`"content":[{"type":"text","text":`), quote(t)...), `}],"isError":false`...)}
}

func structured(raw []byte, t []byte) answer {
	b := append([]byte(`"content":[{"type":"text","text":`), quote(string(t))...)
	b = append(append(b, `}],"structuredContent":`...), raw...)
	return answer{members: append(b, `,"isError":false`...)}
}

func toolError(t string) answer {
	return answer{members: append(append([]byte(`"content":[{"type":"text","text":`), quote(t)...), `}],"isError":true`...)}
}

func (s *server) echo(_ context.Context, ex *exchange, _ object) (answer, *rpcError) {
	raw := []byte(ex.params["arguments"])
	if raw == nil {
		raw = []byte(`{}`)
	}
	return structured(raw, raw), nil
}

// maxDigits bounds an integer of add: what follows grows with the square of its length.
const maxDigits = 10_000

func (s *server) add(_ context.Context, _ *exchange, args object) (answer, *rpcError) {
	var sum big.Int
	for _, name := range []string{"a", "b"} {
		raw := string(args[name])
		n, ok := new(big.Int).SetString(raw, 10)
		if !ok || len(raw) > maxDigits || strings.HasPrefix(raw, "+") {
			return answer{}, invalidParams(name + ": expected an integer")
		}
		sum.Add(&sum, n)
	}
	return structured([]byte(`{"sum":`+sum.String()+`}`), []byte(sum.String())), nil
}

func (s *server) fail(_ context.Context, _ *exchange, args object) (answer, *rpcError) {
	msg, ok := args.str("message")
	if !ok {
		msg = "it did not work"
	}
	return toolError(msg), nil
}

func (s *server) refuse(_ context.Context, _ *exchange, args object) (answer, *rpcError) {
	e := &rpcError{code: codeInvalidParams, message: "refused, as asked"}
	if raw, ok := args["code"]; ok {
		n, err := strconv.Atoi(string(raw))
		if err != nil {
			return answer{}, invalidParams("code: expected an integer")
		}
		e.code = n
	}
	if msg, ok := args.str("message"); ok {
		e.message = msg
	}
	if e.code == codeURLElicitation {
		e.data = []byte(`{"elicitations":[{"mode":"url","elicitationId":"example-1","url":"https://example.org/connect","message":"Connect the account first."}],"x-exact":9007199254740993}`)
	}
	return answer{}, e
}

const maxHang = 10 * time.Minute

func (s *server) hang(ctx context.Context, ex *exchange, args object) (answer, *rpcError) {
	ms, fault := args.integer("ms", int(maxHang/time.Millisecond), 0, int(maxHang/time.Millisecond))
	if fault != nil {
		return answer{}, fault
	}
	ex.progress(0, 1, "hanging") // whoever waits for this knows that the call has arrived
	over := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer over.Stop()
	cancelled := ctx.Done()
	for {
		select {
		case <-over.C:
			a := text("hung for " + strconv.Itoa(ms) + " ms")
			a.late = args.isTrue("stubborn")
			return a, nil
		case <-cancelled:
			s.tally("hang cancelled")
			s.log.Info("the tool hang was cancelled")
			if !args.isTrue("stubborn") {
				return answer{none: true}, nil
			}
			cancelled = nil
		}
	}
}

func (s *server) die(_ context.Context, ex *exchange, _ object) (answer, *rpcError) {
	if s.opts.Die != nil && ex.junk != nil { // a process of its own: stdio
		s.opts.Die()
	}
	ex.cut()
	return answer{none: true}, nil
}

func (s *server) slow(ctx context.Context, ex *exchange, args object) (answer, *rpcError) {
	steps, fault := args.integer("steps", 3, 1, 1000)
	if fault != nil {
		return answer{}, fault
	}
	ms, fault := args.integer("ms", 20, 0, 60_000)
	if fault != nil {
		return answer{}, fault
	}
	tick := time.NewTimer(0)
	defer tick.Stop()
	<-tick.C
	for i := range steps {
		tick.Reset(time.Duration(ms) * time.Millisecond)
		select {
		case <-ctx.Done():
			return answer{none: true}, nil
		case <-tick.C:
		}
		ex.progress(i+1, steps, fmt.Sprintf("step %d of %d", i+1, steps))
	}
	return text(fmt.Sprintf("%d steps", steps)), nil
}

// progress reports progress if the caller asked for it.
func (ex *exchange) progress(done, total int, msg string) {
	token, ok := ex.meta["progressToken"]
	if !ok {
		return
	}
	b := append([]byte(`{"progressToken":`), token...)
	b = append(b, fmt.Sprintf(`,"progress":%d,"total":%d,"message":`, done, total)...)
	ex.notify(notification("notifications/progress", append(append(b, quote(msg)...), '}')))
}

var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// severity orders log levels; -1 is none.
func severity(level string) int { return slices.Index(levels, level) }

func (s *server) logs(_ context.Context, ex *exchange, args object) (answer, *rpcError) {
	level, ok := args.str("level")
	if !ok {
		level = "info"
	}
	msg, ok := args.str("text")
	if !ok {
		msg = "a log message"
	}
	n, fault := args.integer("count", 1, 1, 1000)
	if fault != nil {
		return answer{}, fault
	}
	if severity(level) < 0 {
		return answer{}, invalidParams("level: expected one of " + strings.Join(levels, ", "))
	}
	least, wanted := "", true
	if ex.modern {
		least, wanted = ex.meta.str(metaLogLevel)
	} else {
		least = ex.session.logLevel()
	}
	sent := 0
	if wanted && severity(level) >= severity(least) {
		for i := range n {
			data := fmt.Sprintf(`{"level":%q,"logger":"example","data":{"text":%s,"number":%d}}`, level, quote(msg), i+1)
			ex.notify(notification("notifications/message", []byte(data)))
			sent++
		}
	}
	return text(fmt.Sprintf("%d messages sent", sent)), nil
}

func (s *server) driftTool(_ context.Context, _ *exchange, args object) (answer, *rpcError) {
	name, ok := args.str("tool")
	if !ok {
		name = "drift"
	}
	what, ok := args.str("what")
	if !ok {
		what = "description"
	}
	if findTool(name) == nil {
		return answer{}, invalidParams("tool: there is no " + name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.driftLocked(name, what) {
		return answer{}, invalidParams("what: expected description, schema or annotations")
	}
	if string(args["announce"]) != "false" {
		s.announceLocked()
	}
	return text("the " + what + " of " + name + " is another one now"), nil
}

func (s *server) driftLocked(name, what string) bool {
	d := s.drift[name]
	switch what {
	case "description":
		d.description++
	case "schema":
		d.schema++
	case "annotations":
		d.annotations++
	default:
		return false
	}
	s.drift[name] = d
	return true
}

// A picture of one pixel, and a sound of no length.
const (
	onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	silence  = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
)

var blocks = []struct{ kind, block string }{
	{"text", `{"type":"text","text":"plain text","annotations":{"audience":["user"],"priority":0}}`},
	{"image", `{"type":"image","data":"` + onePixel + `","mimeType":"image/png"}`},
	{"audio", `{"type":"audio","data":"` + silence + `","mimeType":"audio/wav"}`},
	{"resource", `{"type":"resource","resource":{"uri":"example://notes/1","mimeType":"text/plain","text":""}}`},
	{"resource_link", `{"type":"resource_link","uri":"example://notes/2","name":"note 2","title":"The second note","mimeType":"text/plain","size":9007199254740993}`},
	{"hologram", `{"type":"hologram","depth":3,"x-exact":1.0}`},
}

func (s *server) kinds(_ context.Context, _ *exchange, args object) (answer, *rpcError) {
	var b []byte
	for _, c := range blocks {
		if wanted, given := args["kinds"]; given && !bytes.Contains(wanted, []byte(`"`+c.kind+`"`)) {
			continue
		}
		if b != nil {
			b = append(b, ',')
		}
		b = append(b, c.block...)
	}
	return answer{members: append(append([]byte(`"content":[`), b...), `]`...)}, nil
}

func (s *server) big(_ context.Context, _ *exchange, args object) (answer, *rpcError) {
	n, fault := args.integer("bytes", 0, 0, maxMessage)
	if fault != nil {
		return answer{}, fault
	}
	const line = "All work and no play makes a dull day. "
	return text(strings.Repeat(line, n/len(line)+1)[:n]), nil
}

func (s *server) metaTool(_ context.Context, ex *exchange, _ object) (answer, *rpcError) {
	raw := []byte(ex.params["_meta"])
	if raw == nil {
		raw = []byte(`null`)
	}
	return structured(append(append([]byte(`{"meta":`), raw...), '}'), raw), nil
}

func (s *server) noise(_ context.Context, ex *exchange, _ object) (answer, *rpcError) {
	if ex.junk == nil {
		return text("there is no standard output here"), nil
	}
	ex.junk([]byte("The server says hello, on standard output\n\n{\"hello\":\"world\"}\n[1,2,3]\n{\"jsonrpc\":\"2.0\",\"id\"\n\x1b[31mred\x1b[0m \xff\xfe\n"))
	return text("five lines of noise"), nil
}

func (s *server) misbehave(_ context.Context, ex *exchange, args object) (answer, *rpcError) {
	const result = `{"content":[{"type":"text","text":"misbehaved"}]}`
	id := string(ex.id)
	how, _ := args.str("how")
	bad := map[string]string{
		"wrong_id":       `{"jsonrpc":"2.0","id":"nobody-asked","result":` + result + `}`,
		"both":           `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `,"error":{"code":-32603,"message":"and an error"}}`,
		"neither":        `{"jsonrpc":"2.0","id":` + id + `}`,
		"duplicate_keys": `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[],"content":[{"type":"text","text":"the second"}]}}`,
		"not_json":       `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[`,
		"array":          `[{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}]`,
		"result_type":    `{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"task","task":{"taskId":"t-1","status":"working"}}}`,
		"null_result":    `{"jsonrpc":"2.0","id":` + id + `,"result":null}`,
		"content_type":   `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":"not a list"}}`,
	}[how]
	if bad == "" {
		return answer{}, invalidParams("how: unknown")
	}
	return answer{whole: []byte(bad)}, nil
}

func (s *server) ask(_ context.Context, ex *exchange, args object) (answer, *rpcError) {
	if !ex.modern {
		return toolError("this can only be asked on 2026-07-28"), nil
	}
	if given := ex.params.object("inputResponses").object("name"); given != nil {
		name, _ := given.object("content").str("name")
		return text("hello " + name), nil
	}
	if _, can := ex.meta.object(metaCapabilities)["elicitation"]; !can && !args.isTrue("force") {
		return answer{}, &rpcError{code: codeMissingCapability, message: "this tool asks the user", data: []byte(`{"requiredCapabilities":{"elicitation":{}}}`)}
	}
	state := base64.StdEncoding.EncodeToString([]byte("asked once"))
	return answer{resultType: "input_required", members: []byte(`"inputRequests":{"name":{"method":"elicitation/create","params":{"mode":"form","message":"What is your name?",` +
		`"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}},"requestState":"` + state + `"`)}, nil
}

func (s *server) count(_ context.Context, _ *exchange, _ object) (answer, *rpcError) {
	s.mu.Lock()
	n := s.ran["count"]
	s.mu.Unlock()
	return structured([]byte(`{"count":`+strconv.Itoa(n)+`}`), []byte(strconv.Itoa(n))), nil
}

const maxNotes = 10_000

func (s *server) writeNote(_ context.Context, _ *exchange, args object) (answer, *rpcError) {
	note, ok := args.str("text")
	if !ok || note == "" {
		return answer{}, invalidParams("text: expected some text")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.notes) == maxNotes {
		return toolError("there are too many notes"), nil
	}
	s.notes = append(s.notes, note)
	if s.opts.Notes != "" {
		if err := tally(s.opts.Notes, string(quote(note))); err != nil {
			return toolError("the note could not be written"), nil
		}
	}
	return text(fmt.Sprintf("note %d written", len(s.notes))), nil
}

func (s *server) readNotes(_ context.Context, _ *exchange, _ object) (answer, *rpcError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw := append(append([]byte(`{"notes":`), quoteAll(s.notes)...), '}')
	return structured(raw, []byte(strings.Join(s.notes, "\n"))), nil
}

func (s *server) rich(_ context.Context, ex *exchange, _ object) (answer, *rpcError) {
	raw := []byte(ex.params["arguments"])
	if raw == nil {
		raw = []byte(`{}`)
	}
	return structured(append(append([]byte(`{"arguments":`), raw...), '}'), raw), nil
}
