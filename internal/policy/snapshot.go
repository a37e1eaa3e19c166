package policy

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/call"
)

// rulesVersion is part of every snapshot. It grows when the same policy begins to mean something else.
const rulesVersion = 1

// Snapshot is a digest over the whole policy. An approval that was asked for under one snapshot is no approval under
// another (R7.5).
func (p *Policy) Snapshot() call.Digest { return p.snapshot }

// digest is that of the policy as one canonical JSON value: what has no order is sorted.
func (p *Policy) digest() (call.Digest, error) {
	var b bytes.Buffer
	w := writer{enc: jsontext.NewEncoder(&b)}
	w.begin('{')
	w.field("limits", func() { w.ints(costLimit, decisionLimit, cheap, maxDepth, maxValues, maxText) })
	w.field("rules", func() {
		w.begin('[')
		for _, r := range p.rules {
			w.rule(r)
		}
		w.begin(']')
	})
	w.field("sets", func() {
		w.begin('{')
		for _, pkg := range slices.Sorted(maps.Keys(p.sets)) {
			w.field(pkg, func() { w.set(p.sets[pkg]) })
		}
		w.begin('}')
	})
	w.field("version", func() { w.ints(rulesVersion) })
	w.begin('}')
	if w.err != nil {
		return call.Digest{}, fmt.Errorf("digest policy: %w", w.err)
	}
	v := jsontext.Value(b.Bytes())
	if err := v.Canonicalize(); err != nil {
		return call.Digest{}, fmt.Errorf("digest policy: %w", err)
	}
	return sha256.Sum256(v), nil
}

// writer writes JSON and keeps the first error.
type writer struct {
	enc *jsontext.Encoder
	err error
}

func (w *writer) token(t jsontext.Token) {
	if w.err == nil {
		w.err = w.enc.WriteToken(t)
	}
}

func (w *writer) begin(k byte) {
	w.token(map[byte]jsontext.Token{'{': jsontext.BeginObject, '}': jsontext.EndObject, '[': jsontext.BeginArray, ']': jsontext.EndArray}[k])
}

func (w *writer) text(s string) { w.token(jsontext.String(s)) }

func (w *writer) field(name string, value func()) {
	w.text(name)
	value()
}

func (w *writer) ints(ns ...int64) {
	w.begin('[')
	for _, n := range ns {
		w.token(jsontext.Int(n))
	}
	w.begin(']')
}

func (w *writer) texts(ss []string) {
	ss = slices.Clone(ss)
	slices.Sort(ss)
	w.begin('[')
	for _, s := range slices.Compact(ss) {
		w.text(s)
	}
	w.begin(']')
}

func (w *writer) rule(r *rule) {
	w.begin('{')
	w.field("classes", func() {
		var names []string
		for _, c := range r.Classes {
			names = append(names, c.String())
		}
		w.texts(names)
	})
	w.field("effect", func() { w.text(r.Effect.String()) })
	w.field("flows", func() { w.token(jsontext.Bool(r.Flows)) })
	w.field("name", func() { w.text(r.Name) })
	w.field("principals", func() { w.texts(r.Principals) })
	w.field("reason", func() { w.text(r.Reason) })
	w.field("tools", func() { w.texts(r.Tools) })
	w.field("when", func() { w.text(r.When) })
	w.begin('}')
}

func (w *writer) set(s ToolSet) {
	w.begin('{')
	w.field("approval", func() { w.ints(int64(s.Approval)) })
	w.field("available", func() { w.token(jsontext.Bool(s.Available)) })
	w.frontier(s.Frontier)
	w.field("tools", func() {
		w.begin('{')
		for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
			o := s.Tools[name]
			w.field(name, func() {
				w.begin('{')
				w.field("approval", func() { w.ints(int64(o.Approval)) })
				if o.Available != nil {
					w.field("available", func() { w.token(jsontext.Bool(*o.Available)) })
				}
				w.frontier(o.Frontier)
				if o.Labels != nil {
					w.field("labels", func() { w.texts(o.Labels.Names()) })
				}
				w.begin('}')
			})
		}
		w.begin('}')
	})
	w.field("trust", func() { w.text(s.Trust) })
	w.begin('}')
}

// frontier is there only where it is asked for: a policy that knows nothing of it says the same as before.
func (w *writer) frontier(required bool) {
	if required {
		w.field("frontier", func() { w.text("required") })
	}
}
