package transport

import (
	"errors"
	"net/netip"
	"net/url"
	"testing"
	"time"
)

// R1.9: where a provider may be.
func TestR1_9_URL(t *testing.T) {
	for _, tc := range []struct {
		url string
		ok  bool
	}{
		{"https://mcp.example/mcp", true},
		{"https://mcp.example:8443/mcp?team=1", true},
		{"http://localhost:8080/mcp", true},
		{"http://LOCALHOST/mcp", true},
		{"http://127.0.0.1:1/", true},
		{"http://127.9.9.9/", true},
		{"http://[::1]:9/", true},
		{"https://10.0.0.1/mcp", true}, // the dial decides
		{"https://xn--bcher-kva.example/", true},
		{"http://mcp.example/mcp", false},
		{"http://10.0.0.1/mcp", false},
		{"http://localhost.example/mcp", false},
		{"http://localhost./mcp", false},
		{"http://127.0.0.1.example/", false},
		{"http://2130706433/", false},
		{"http://0x7f000001/", false},
		{"http://0177.0.0.1/", false},
		{"http://0.0.0.0/", false},
		{"http://[::]/", false},
		{"https://user@mcp.example/", false},
		{"https://user:pw@mcp.example/", false},
		{"https://@mcp.example/", false},
		{"https://mcp.example/#x", false},
		{"https:///mcp", false},
		{"https://:443/mcp", false},
		{"https://mcp.example:/mcp", false},
		{"https://mcp.example:0/mcp", false},
		{"https://mcp.example:65536/mcp", false},
		{"https://bücher.example/", false},
		{"https://[fe80::1%25eth0]/", false},
		{"ftp://mcp.example/", false},
		{"file:///etc/passwd", false},
		{"https:mcp.example", false},
		{"mcp.example/mcp", false},
		{"", false},
	} {
		u, err := url.Parse(tc.url)
		if err == nil {
			err = checkURL(u)
		}
		if (err == nil) != tc.ok {
			t.Errorf("%q: got %v, want ok %v", tc.url, err, tc.ok)
		}
	}
}

// F-41: which addresses may be dialled, whatever name led there.
func TestF41_Addresses(t *testing.T) {
	public := newAddressGuard(false, false, time.Second, nil)
	private := newAddressGuard(false, true, time.Second, nil)
	local := newAddressGuard(true, true, time.Second, nil)
	for _, tc := range []struct {
		ip                                        string
		public, private, loopback, localButRemote bool
	}{
		{"1.1.1.1", true, true, false, true},
		{"2606:4700::1111", true, true, false, true},
		{"127.0.0.1", false, false, true, false},
		{"127.8.8.8", false, false, true, false},
		{"::1", false, false, true, false},
		{"::ffff:127.0.0.1", false, false, false, false},
		{"::ffff:1.1.1.1", false, false, false, false},
		{"0.0.0.0", false, false, false, false},
		{"0.1.2.3", false, false, false, false},
		{"::", false, false, false, false},
		{"10.1.2.3", false, true, false, true},
		{"172.16.0.1", false, true, false, true},
		{"192.168.1.1", false, true, false, true},
		{"100.64.0.1", false, true, false, true},
		{"fd12::1", false, true, false, true},
		{"169.254.169.254", false, false, false, false},
		{"169.254.1.1", false, false, false, false},
		{"fe80::1", false, false, false, false},
		{"100.100.100.200", false, false, false, false},
		{"168.63.129.16", false, false, false, false},
		{"fd00:ec2::254", false, false, false, false},
		{"64:ff9b::7f00:1", false, false, false, false},
		{"64:ff9b::a9fe:a9fe", false, false, false, false},
		{"2002:7f00:1::", false, false, false, false},
		{"2001::1", false, false, false, false},
		{"fec0::1", false, false, false, false},
		{"192.0.0.192", false, false, false, false},
		{"198.18.0.1", false, false, false, false},
		{"240.0.0.1", false, false, false, false},
		{"255.255.255.255", false, false, false, false},
		{"224.0.0.1", false, false, false, false},
	} {
		addr := netip.MustParseAddr(tc.ip)
		network := "tcp4"
		if addr.Is6() {
			network = "tcp6"
		}
		resolved := netip.AddrPortFrom(addr, 443).String()
		for _, g := range []struct {
			name       string
			guard      *addressGuard
			onLoopback bool
			want       bool
		}{
			{"public", public, false, tc.public}, {"private", private, false, tc.private},
			{"loopback", local, true, tc.loopback}, {"loopback provider, remote hop", local, false, tc.localButRemote},
		} {
			err := g.guard.check(network, resolved, g.onLoopback)
			if (err == nil) != g.want {
				t.Errorf("%s for %s: got %v, want ok %v", tc.ip, g.name, err, g.want)
			}
			if err != nil && !errors.Is(err, errAddressBlocked) {
				t.Errorf("%s: %v is no address_blocked", tc.ip, err)
			}
		}
	}
}
