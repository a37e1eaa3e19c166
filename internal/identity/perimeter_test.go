package identity

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

func addressed(host, origin, fetchSite, local string) *http.Request {
	r := httptest.NewRequest("POST", "http://x/v1/mcp", nil)
	r.Host = host
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	if fetchSite != "" {
		r.Header.Set("Sec-Fetch-Site", fetchSite)
	}
	if local != "" {
		addr, err := net.ResolveTCPAddr("tcp", local)
		if err != nil {
			panic(err)
		}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(addr)))
	}
	return r
}

func TestR10_5_Perimeter(t *testing.T) {
	p, err := NewPerimeter(PerimeterOptions{AllowedHosts: []string{"gate.example"}, AllowedOrigins: []string{"https://app.example"}})
	if err != nil {
		t.Fatal(err)
	}
	const loop, lan = "127.0.0.1:7411", "192.0.2.7:7411"
	for _, c := range []struct{ name, host, origin, fetch, local, want string }{
		{"localhost", "localhost:7411", "", "", loop, ""},
		{"loopback v4", "127.0.0.1:7411", "", "", loop, ""},
		{"loopback v6", "[::1]:7411", "", "", "[::1]:7411", ""},
		{"no listener known", "localhost", "", "", "", ""},
		{"allowed name", "gate.example", "", "", loop, ""},
		{"A-42 rebound name", "rebind.evil:7411", "", "", loop, "host"},
		{"A-42 look-alike", "localhost.evil", "", "", loop, "host"},
		{"A-42 upper case", "LOCALHOST", "", "", loop, "host"},
		{"empty host", "", "", "", loop, "host"},
		{"address on a loopback listener", "192.0.2.7:7411", "", "", loop, "host"},
		{"address on a LAN listener", "192.0.2.7:7411", "", "", lan, ""},
		{"rebound name on a LAN listener", "rebind.evil:7411", "", "", lan, "host"},
		{"same origin", "localhost:7411", "http://localhost:7411", "same-origin", loop, ""},
		{"allowed origin", "localhost:7411", "https://app.example", "cross-site", loop, ""},
		{"S-031 evil origin", "localhost:7411", "https://evil", "", loop, "origin"},
		{"S-031 null", "localhost:7411", "null", "", loop, "origin"},
		{"S-031 look-alike", "localhost:7411", "http://localhost.evil", "", loop, "origin"},
		{"S-031 case variant", "localhost:7411", "HTTP://LOCALHOST:7411", "", loop, "origin"},
		{"S-031 other port", "localhost:7411", "http://localhost:3000", "", loop, "origin"},
		{"S-031 same name but not loopback", "gate.example", "http://gate.example", "", loop, "origin"},
		{"S-031 path", "localhost:7411", "http://localhost:7411/", "", loop, "origin"},
		{"F-48 no origin but cross-site", "localhost:7411", "", "cross-site", loop, "origin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := p.Check(addressed(c.host, c.origin, c.fetch, c.local)); got != c.want {
				t.Errorf("Check = %q, want %q", got, c.want)
			}
		})
	}
	two := addressed("localhost:7411", "http://localhost:7411", "", loop)
	two.Header.Add("Origin", "https://evil")
	if got := p.Check(two); got != "origin" {
		t.Errorf("two Origin headers: %q", got)
	}
	for _, bad := range []PerimeterOptions{
		{AllowedHosts: []string{"a:80"}}, {AllowedHosts: []string{"*"}}, {AllowedHosts: []string{""}},
		{AllowedOrigins: []string{"null"}}, {AllowedOrigins: []string{"*"}}, {AllowedOrigins: []string{"https://a/b"}},
	} {
		if _, err := NewPerimeter(bad); err == nil {
			t.Errorf("NewPerimeter(%v) accepted it", bad)
		}
	}
}

// A host that is let through on a loopback listener is a loopback name, however it is spelled; so is an origin, and it is
// the host's own.
func FuzzPerimeter(f *testing.F) {
	p, err := NewPerimeter(PerimeterOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("localhost:1", "http://localhost:1")
	f.Add("[::1]", "null")
	f.Add("127.0.0.1.evil", "http://127.0.0.1@evil")
	f.Fuzz(func(t *testing.T, host, origin string) {
		r := &http.Request{Method: "POST", Host: host, Header: http.Header{"Origin": {origin}}, URL: &url.URL{Path: "/"}}
		if p.Check(r) != "" {
			return
		}
		if !isLoopback(hostname(host)) || origin != "http://"+host && origin != "https://"+host {
			t.Fatalf("host %q and origin %q were let through", host, origin)
		}
	})
}
