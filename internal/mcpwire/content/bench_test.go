package content

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkParseFrame(b *testing.B) {
	for _, size := range []int{100, 100_000} {
		msg := []byte(`{"jsonrpc":"2.0","id":"g1","result":{"content":[{"type":"text","text":"` + strings.Repeat("words and \\\"quotes\\\" ", size/20) + `"}]}}`)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(len(msg)))
			b.ReportAllocs()
			for b.Loop() {
				f, err := ParseFrame(msg, FrameLimits{})
				if err != nil {
					b.Fatal(err)
				}
				if a := CallAnswer(f.Result, nil, true); a.Fault != "" {
					b.Fatal(a.Fault)
				}
			}
		})
	}
}
