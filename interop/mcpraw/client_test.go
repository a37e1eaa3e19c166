package mcpraw

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ostiary/ostiary/internal/exampleserver"
)

func TestHTTPInBothEras(t *testing.T) {
	srv := httptest.NewServer(exampleserver.Handler(exampleserver.Options{Page: 3, Bearer: "b"}))
	defer srv.Close()
	for _, revision := range []string{Modern, Legacy, "2025-03-26"} {
		t.Run(revision, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			c := HTTP(srv.URL, map[string]string{"Authorization": "Bearer b"})
			if err := c.Negotiate(ctx, revision); err != nil {
				t.Fatal(err)
			}
			if c.Revision != revision {
				t.Errorf("negotiated %s", c.Revision)
			}
			tools, err := c.List(ctx)
			if err != nil || len(tools) < 10 {
				t.Fatalf("%d tools, %v", len(tools), err)
			}
			r, err := c.Call(ctx, "rich", `{"region":" é ","priority":9007199254740993,"dry":false}`, nil)
			if err != nil || !strings.Contains(string(r["structuredContent"]), "9007199254740993") {
				t.Errorf("rich: %s, %v", r["structuredContent"], err)
			}
			var heard []string
			if _, err := c.Call(ctx, "slow", `{"steps":2,"ms":1}`, func(m Message) { heard = append(heard, m.Method) }); err != nil || len(heard) != 2 {
				t.Errorf("slow: heard %v, %v", heard, err)
			}
			var rpc *RPCError
			if _, err := c.Call(ctx, "nope", `{}`, nil); !errors.As(err, &rpc) || rpc.Code != -32602 {
				t.Errorf("an unknown tool: %v", err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStrict(t *testing.T) {
	for _, bad := range []string{`{"a":1,"a":2}`, `[]`, `{`, `{"a":"\ud800"}`} {
		if _, err := ParseObject([]byte(bad)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func FuzzParseObject(f *testing.F) {
	f.Add([]byte(`{"a":[1.0,{"b":null}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := ParseObject(b)
		if err != nil {
			return
		}
		for name, v := range o {
			if !strings.Contains(string(b), string(v)) {
				t.Errorf("%q: %s became %q", b, name, v)
			}
		}
	})
}
