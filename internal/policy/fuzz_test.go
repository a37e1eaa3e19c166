package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ostiary/ostiary/call"
)

// Whatever an expression is: it is refused with a position that exists in it, or it compiles and judges without a panic,
// the same way twice. F-56.
func FuzzCompileRule(f *testing.F) {
	for _, c := range conditions {
		f.Add(c, `{"x":1}`)
	}
	for _, s := range []string{
		"args.a.all(x, args.b.all(y, x == y))", "size(args.s + args.s) > 3", "args.p.within('/srv')", "tool.name.matches('(a+)+$')",
		"[1,2].map(x, x * 2) == [2,4]", "{'a': 1}.a == 1", "1/0 == 1", "'\\U0010FFFF' == args.x", "((((((((((1))))))))))==1", "args[?'a'] == 1",
		"google.protobuf.Struct{} == args", "x.y.z", "-9223372036854775808 < args.n", "b'a' == b'a'", "1 in [1, 2.0, 3u]", "has(args.a.b)", "true ? args.a : args.b", "a\n.b\n\n==1", "é == 'é'",
	} {
		f.Add(s, `{"a":[1,2],"b":[1,2],"s":"x","p":"/srv/x","n":1}`)
	}
	f.Fuzz(func(t *testing.T, when, arguments string) {
		p, err := New([]string{"p"}, []ToolSet{{Package: "p", Available: true}}, Rule{Name: "r", Effect: DenyCall, When: when})
		if err != nil {
			fault, ok := errors.AsType[*RuleFault](err)
			if !ok {
				t.Fatalf("not a fault of the rule: %v", err)
			}
			if fault.Line < 0 || fault.Line > strings.Count(when, "\n")+1 || fault.Column < 0 || fault.Column > len(when)+1 {
				t.Errorf("%q has no line %d, column %d", when, fault.Line, fault.Column)
			}
			return
		}
		q := Question{Principal: call.Principal{ID: "alice"}, Tool: benchQuestion.Tool, Arguments: []byte(arguments)}
		d := p.Judge(q)
		if again := p.Judge(q); again != d {
			t.Errorf("%q: %+v, then %+v", when, d, again)
		}
		if e := p.Explain(q); e.Decision != d {
			t.Errorf("%q: judged %+v, explained %+v", when, d, e.Decision)
		}
		if p.Explain(q).Rules[0].Failed && d.Verdict != Deny {
			t.Errorf("%q failed, and the call gets %+v", when, d)
		}
		if p.Snapshot().IsZero() {
			t.Error("no snapshot")
		}
	})
}

// What is read of arguments is what strict JSON says, or nothing: never a partial value, never a rounded integer.
func FuzzReadArguments(f *testing.F) {
	for _, s := range argumentses {
		f.Add([]byte(s))
	}
	for _, s := range []string{`{"a":{"b":[1,-1,1.5,1e3,-0,0.0,true,null,"\u00e9"]}}`, `{"n":9007199254740993}`, `{"n":18446744073709551615}`, `{"":{}}`, ` {} `, `{}{}`, "{\"a\":\"\xff\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := readArguments(raw)
		if err != nil {
			if m != nil {
				t.Errorf("%q: an error and a value", raw)
			}
			return
		}
		if len(raw) == 0 {
			return
		}
		if !json.Valid(raw) || !utf8.Valid(raw) {
			t.Errorf("%q was read", raw)
		}
		var loose map[string]json.RawMessage
		if err := json.Unmarshal(raw, &loose); err != nil {
			t.Fatalf("%q was read: %v", raw, err)
		}
		if len(loose) != len(m) {
			t.Errorf("%q: %d keys, read as %d", raw, len(loose), len(m))
		}
	})
}

// A pattern matches as one would expect of it, compared with a plain recursive reading.
func FuzzGlob(f *testing.F) {
	f.Add("a*b*c", "aXbYbZc")
	f.Add("*", "")
	f.Add("**a", "ba")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if len(pattern) > 12 || len(s) > 24 {
			return
		}
		if got, want := glob(pattern).matches(s), plainGlob(pattern, s); got != want {
			t.Errorf("%q matches %q: %t, want %t", pattern, s, got, want)
		}
	})
}

func plainGlob(p, s string) bool {
	switch {
	case p == "":
		return s == ""
	case p[0] == '*':
		return plainGlob(p[1:], s) || s != "" && plainGlob(p, s[1:])
	}
	return s != "" && p[0] == s[0] && plainGlob(p[1:], s[1:])
}
