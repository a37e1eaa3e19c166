package firewall

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// clean is n bytes of what tools mostly return: log lines, addresses, identifiers, rows, prose without a word of the rules.
func clean(t testing.TB, n int) string {
	all := benignStrings(t)
	last := benignText(t)
	all = all[slices.Index(all, last[len(last)-1])+1:]
	return repeated(append(all, prose...), n)
}

// hard is n bytes of written text that uses the words of the rules harmlessly.
func hard(t testing.TB, n int) string { return repeated(benignText(t), n) }

// dense is n bytes of descriptions of tools, which are full of the words that instructions are made of.
func dense(t testing.TB, n int) string {
	all := benignStrings(t)
	return repeated(slices.DeleteFunc(all[:slices.Index(all, benignText(t)[0])], func(s string) bool {
		return len(s) > 4000 || strings.Contains(s, "LLM") || strings.Contains(s, "MUST call this") || strings.Contains(s, "ALWAYS prefer")
	}), n)
}

var prose = []string{
	"The river rises in the hills above the town and reaches the sea after eighty kilometres.",
	"Most of the houses in the old quarter were built between 1890 and 1910, of brick with slate roofs.",
	"Rainfall in March was above average, and the lower meadows stayed under water until the middle of April.",
	"The museum shows looms, a steam engine and the photographs that the owner's daughter took of the workers.",
	"In the second half the visitors played with more patience and scored twice from corners.",
	"A good bread dough is soft, slightly sticky, and springs back slowly when pressed with a finger.",
	"The committee met four times during the year; the minutes are kept in the archive.",
	"Trains leave every half hour, on Sundays every hour, from the platform behind the market hall.",
	"三月份的降雨量高于平均水平，低洼的草地直到四月中旬仍被水淹没。",
	"博物馆里陈列着织机、蒸汽机和当年工人的照片。",
}

func repeated(all []string, n int) string {
	if n < 1000 {
		return strings.Repeat("The library opens at nine, and closes at six. ", 100)[:n]
	}
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(all[i*7919%len(all)])
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
			used := cpuTime()
			for b.Loop() {
				e.ScreenResult(b.Context(), doc, Rules{}, nil)
			}
			b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N), "cpu-µs/op")
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
			used := cpuTime()
			for b.Loop() {
				e.ScreenArguments(b.Context(), doc, Rules{})
			}
			b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// What a result of hard text, of tool descriptions, of many small members, of a picture, and of nothing but keywords costs.
func BenchmarkScreenOther(b *testing.B) {
	e := engine(b)
	var rows bytes.Buffer
	for i := range 8000 {
		fmt.Fprintf(&rows, `,{"id":%d,"name":"item %d","tag":"%s","url":"https://example.org/i/%d?page=2","ok":true}`, i, i, fillFrom(fmt.Sprint(i), 16, hexDigits), i)
	}
	hostile := strings.Repeat("token secret key password api_key error retry contents of you must call the tool user approved ", 1<<20/96)
	for name, doc := range map[string][]byte{
		"hard":    textResult(hard(b, 1<<20)),
		"dense":   textResult(dense(b, 1<<20)),
		"rows":    []byte(`{"content":[],"structuredContent":{"rows":[` + rows.String()[1:] + `]}}`),
		"picture": []byte(`{"content":[{"type":"image","mimeType":"image/png","data":"` + b64("\x89PNG\r\n\x1a\n"+strings.Repeat("\x00\x01\x02", 250<<10)) + `"}]}`),
		"hostile": textResult(hostile),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			used := cpuTime()
			for b.Loop() {
				e.ScreenResult(b.Context(), doc, Rules{}, nil)
			}
			b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}
