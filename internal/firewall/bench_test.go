package firewall

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// clean is n bytes of what tools return: log lines, addresses, identifiers, rows, prose and code, from the benign set.
func clean(t testing.TB, n int) string { return sample(t, n, false) }

// dense is n bytes of descriptions of tools, which are full of the words that instructions are made of.
func dense(t testing.TB, n int) string { return sample(t, n, true) }

func sample(t testing.TB, n int, definitions bool) string {
	if n < 1000 {
		return strings.Repeat("The library opens at nine, and closes at six. ", 100)[:n]
	}
	all := benignStrings(t)
	first := slices.Index(all, benignText(t)[0])
	if definitions {
		all = all[:first]
	} else {
		all = all[first:]
	}
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		s := all[i*7919%len(all)]
		if len(s) > 4000 || strings.Contains(s, "LLM") || strings.Contains(s, "MUST call this") || strings.Contains(s, "ALWAYS prefer") {
			continue
		}
		b.WriteString(s)
		b.WriteByte('\n')
	}
	return b.String()
}

var sizes = []struct {
	name string
	n    int
}{{"100B", 100}, {"10KiB", 10 << 10}, {"1MiB", 1 << 20}}

func BenchmarkScreenResult(b *testing.B) {
	e := engine(b)
	for _, s := range sizes {
		doc := textResult(clean(b, s.n))
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				e.ScreenResult(b.Context(), doc, Rules{}, nil)
			}
		})
	}
}

func BenchmarkScreenArguments(b *testing.B) {
	e := engine(b)
	for _, s := range sizes {
		doc := []byte(`{"query":` + quoted(clean(b, s.n)) + `}`)
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				e.ScreenArguments(b.Context(), doc, Rules{})
			}
		})
	}
}

// What a result of tool descriptions, of many small members, of a picture, and of nothing but keywords costs.
func BenchmarkScreenOther(b *testing.B) {
	e := engine(b)
	var rows bytes.Buffer
	for i := range 8000 {
		fmt.Fprintf(&rows, `,{"id":%d,"name":"item %d","tag":"%s","url":"https://example.org/i/%d?page=2","ok":true}`, i, i, fillFrom(fmt.Sprint(i), 16, hexDigits), i)
	}
	hostile := strings.Repeat("token secret key password api_key error retry contents of you must call the tool user approved ", 1<<20/96)
	for name, doc := range map[string][]byte{
		"dense":   textResult(dense(b, 1<<20)),
		"rows":    []byte(`{"content":[],"structuredContent":{"rows":[` + rows.String()[1:] + `]}}`),
		"picture": []byte(`{"content":[{"type":"image","mimeType":"image/png","data":"` + b64("\x89PNG\r\n\x1a\n"+strings.Repeat("\x00\x01\x02", 250<<10)) + `"}]}`),
		"hostile": textResult(hostile),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				e.ScreenResult(b.Context(), doc, Rules{}, nil)
			}
		})
	}
}
