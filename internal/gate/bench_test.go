package gate_test

import (
	"context"
	"testing"

	"github.com/ostiary/ostiary/call"
)

// What the path itself costs, with an upstream that answers at once: relaxed (READ_ONLY, batched), durable alone, and
// durable with 64 callers whose commits are grouped.
func BenchmarkCall(b *testing.B) {
	for _, c := range []struct {
		name     string
		tool     call.ToolID
		parallel int
	}{{"relaxed/1", "aur.mcp.p.read", 0}, {"relaxed/64", "aur.mcp.p.read", 32}, {"durable/1", "aur.mcp.p.write", 0}, {"durable/64", "aur.mcp.p.write", 32}} {
		b.Run(c.name, func(b *testing.B) {
			s := open(b, b.TempDir())
			defer s.Close()
			f := newFixture(b, s, true)
			req := call.Request{Principal: alice, Tool: c.tool, Arguments: []byte(`{"n":1}`)}
			b.ReportAllocs()
			if c.parallel == 0 {
				for b.Loop() {
					f.gate.Call(context.Background(), req)
				}
				return
			}
			b.SetParallelism(c.parallel)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if o := f.gate.Call(context.Background(), req).Outcome; o.Status != call.Succeeded {
						b.Errorf("%+v", o)
						return
					}
				}
			})
		})
	}
}
