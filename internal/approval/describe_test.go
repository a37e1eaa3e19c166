package approval

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/internal/review"
)

func redactor(key, s string) string {
	if key == "token" {
		return "[redacted]"
	}
	return strings.ReplaceAll(s, "hunter2", "[redacted]")
}

// R7.4, S-064: a reviewer reads what will be sent, without secrets, and nothing hides in it.
func TestS064_Describe(t *testing.T) {
	c := aCall()
	c.Arguments = []byte(`{"path":"/tmp/\u202egnp","n":9007199254740993.50,"nested":{"token":12345,"list":["hunter2",{"token":["a","b"]},[]]},"empty":{},"approved by admin\u001b[2J":true}`)
	c.Meta = []byte(`{"traceparent":"x","mode":"fast"}`)
	d, err := Describe(c, redactor)
	if err != nil {
		t.Fatal(err)
	}
	const arguments = `{
  "path": "/tmp/\u{202E}gnp",
  "n": 9007199254740993.50,
  "nested": {
    "token": "[redacted]",
    "list": [
      "[redacted]",
      {
        "token": [
          "[redacted]",
          "[redacted]"
        ]
      },
      []
    ]
  },
  "empty": {},
  "approved by admin\u{001B}[2J": true
}
_meta: {
  "mode": "fast"
}`
	if d.Arguments != arguments || d.Cut {
		t.Errorf("got\n%s\nwant\n%s", d.Arguments, arguments)
	}
	const summary = `alice asks to call aur.mcp.files.write (EXTERNAL_SIDE_EFFECT) with 5 arguments: path, n, nested, empty, "approved by admin\u{001B}[2J", and _meta`
	if d.Summary != summary {
		t.Errorf("got  %s\nwant %s", d.Summary, summary)
	}
	c.Arguments, c.Meta = nil, nil
	if d, err = Describe(c, nil); err != nil || !strings.HasSuffix(d.Summary, "without arguments") || d.Arguments != "" {
		t.Errorf("without arguments: %+v, %v", d, err)
	}
}

// What is too long is cut, and says so.
func TestDescribeIsBounded(t *testing.T) {
	many := []byte(`{`)
	for i := range 5000 {
		many = fmt.Appendf(many, `"k%d":"v",`, i)
	}
	many = append(many, `"last":1}`...)
	for name, args := range map[string]string{
		"many": string(many),
		"long": `{"k":"` + strings.Repeat("é", 1<<20) + `"}`,
		"deep": `{"k":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		"name": `{"` + strings.Repeat("n", 1<<20) + `":1}`,
	} {
		c := aCall()
		c.Arguments = []byte(args)
		d, err := Describe(c, nil)
		if err != nil || !d.Cut || len(d.Arguments) > maxArguments+200 || len(d.Summary) > 2000 {
			t.Errorf("%s: %d and %d bytes, cut %t, %v", name, len(d.Summary), len(d.Arguments), d.Cut, err)
		}
		if name == "many" && !strings.Contains(d.Summary, "5001 arguments") {
			t.Errorf("%s", d.Summary)
		}
	}
}

// Whatever a caller puts into a call, a description is bounded, safe to show, and has no secret.
func FuzzDescribe(f *testing.F) {
	f.Add([]byte(`{"a":"hunter2"}`), []byte(`{"b":["\u001b"]}`))
	f.Add([]byte(`{"hunter2":1}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, args, meta []byte) {
		c := aCall()
		c.Arguments, c.Meta = args, meta
		d, err := Describe(c, redactor)
		if err != nil {
			return
		}
		for _, line := range strings.Split(d.Summary+"\n"+d.Arguments, "\n") {
			if n := review.Count(line); n > 0 {
				t.Fatalf("%d characters are hidden in %q", n, line)
			}
		}
		if strings.Contains(d.Summary+d.Arguments, "hunter2") {
			t.Fatalf("a secret is shown: %+v", d)
		}
		if strings.Contains(d.Summary, "\n") || len(d.Arguments) > maxArguments+200 {
			t.Fatalf("%+v", d)
		}
	})
}
