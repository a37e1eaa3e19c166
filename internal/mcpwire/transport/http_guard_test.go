package transport

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostiary/ostiary/call"
)

// R1.9, R1.10: what NewHTTP refuses, without a word of the value in the error.
func TestR1_10_ManagedHeaders(t *testing.T) {
	credential := func() (string, error) { return "t", nil }
	for _, tc := range []struct {
		name, value string
		credential  bool
		ok          bool
	}{
		{"X-Team", "blue", true, true},
		{"Authorization", "Basic s3cret", false, true},
		{"authorization", "Basic s3cret", true, false},
		{"mcp-session-id", "s3cret", false, false},
		{"MCP-Protocol-Version", "s3cret", false, false},
		{"Mcp-Method", "s3cret", false, false},
		{"Mcp-Name", "s3cret", false, false},
		{"mcp-param-Region", "s3cret", false, false},
		{"Content-Type", "s3cret", false, false},
		{"ACCEPT", "s3cret", false, false},
		{"Accept-Encoding", "gzip", false, false},
		{"Host", "s3cret", false, false},
		{"Content-Length", "5", false, false},
		{"Transfer-Encoding", "chunked", false, false},
		{"Connection", "close", false, false},
		{"Last-Event-ID", "7", false, false},
		{"X-Bad", "s3cret\r\nX-Evil: 1", false, false},
		{"X-Bad", "s3crét", false, false},
		{"X Bad", "s3cret", false, false},
		{"", "s3cret", false, false},
	} {
		o := HTTPOptions{URL: "https://mcp.example/", Headers: map[string]string{tc.name: tc.value}}
		if tc.credential {
			o.Credential = credential
		}
		_, err := NewHTTP(o)
		if (err == nil) != tc.ok {
			t.Errorf("%s: got %v, want ok %v", tc.name, err, tc.ok)
		}
		if err != nil && strings.Contains(err.Error(), "s3cr") {
			t.Errorf("%s: the error quotes the value: %v", tc.name, err)
		}
	}
	if _, err := NewHTTP(HTTPOptions{URL: "https://user:s3cret@mcp.example/%zz"}); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}

// F-40, R1.9: redirects are refused unless allowed; each hop passes the rules; nothing secret goes to another origin.
func TestF40_Redirects(t *testing.T) {
	type seen struct {
		method, auth, user, session, body, version string
	}
	var reached atomic.Pointer[seen]
	final := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		reached.Store(&seen{r.Method, r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.Header.Get("Mcp-Session-Id"), string(b), r.Header.Get("Mcp-Protocol-Version")})
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, okResult)
	}))
	defer final.Close()
	var location atomic.Value
	var status atomic.Int32
	var origin *httptest.Server
	origin = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/here" {
			final.Config.Handler.ServeHTTP(w, r)
			return
		}
		if r.URL.Path == "/chain" { // /chain?n leads to /chain?n-1
			var n int
			fmt.Sscan(r.URL.RawQuery, &n)
			next := origin.URL + "/here"
			if n > 1 {
				next = fmt.Sprintf("%s/chain?%d", origin.URL, n-1)
			}
			w.Header().Set("Location", next)
			w.WriteHeader(307)
			return
		}
		w.Header().Set("Location", location.Load().(string))
		w.WriteHeader(int(status.Load()))
	}))
	defer origin.Close()

	for _, tc := range []struct {
		name     string
		status   int
		location string
		allow    bool
		reach    bool
		secrets  bool // may go along
	}{
		{name: "not allowed", status: 307, location: origin.URL + "/here"},
		{name: "same origin", status: 307, location: origin.URL + "/here", allow: true, reach: true, secrets: true},
		{name: "relative", status: 308, location: "/here", allow: true, reach: true, secrets: true},
		{name: "another port", status: 307, location: final.URL + "/mcp", allow: true, reach: true},
		{name: "301 changes the method", status: 301, location: origin.URL + "/here", allow: true},
		{name: "302 changes the method", status: 302, location: origin.URL + "/here", allow: true},
		{name: "303 changes the method", status: 303, location: origin.URL + "/here", allow: true},
		{name: "300", status: 300, location: origin.URL + "/here", allow: true},
		{name: "http elsewhere", status: 307, location: "http://mcp.example/", allow: true},
		{name: "metadata", status: 307, location: "http://169.254.169.254/latest/meta-data", allow: true},
		{name: "metadata over https", status: 307, location: "https://169.254.169.254/", allow: true},
		{name: "file", status: 307, location: "file:///etc/passwd", allow: true},
		{name: "with a user", status: 307, location: "http://a:b@" + strings.TrimPrefix(final.URL, "http://"), allow: true},
		{name: "with a fragment", status: 307, location: final.URL + "/#x", allow: true},
		{name: "unreadable", status: 307, location: "http://[::1", allow: true},
		{name: "three hops", status: 307, location: origin.URL + "/chain?2", allow: true, reach: true, secrets: true},
		{name: "four hops", status: 307, location: origin.URL + "/chain?3", allow: true},
		{name: "loop", status: 307, location: origin.URL + "/loop", allow: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reached.Store(nil)
			location.Store(tc.location)
			status.Store(int32(tc.status))
			c := newCarrier(t, HTTPOptions{
				URL: origin.URL + "/loop", AllowRedirects: tc.allow, Headers: map[string]string{"X-Api-Key": "canary-key"},
				Credential: func() (string, error) { return "canary-token", nil }, DialTimeout: 2 * time.Second,
			})
			c.SetSession("canary-session", "2025-11-25")
			var d Delivery
			_, err := c.Do(testContext(t), &Request{ID: "g1", Method: "tools/call", Params: []byte("{}"), Delivery: &d})
			got := reached.Load()
			if !tc.reach {
				f := wantFault(t, err)
				if got != nil || f.Code != call.CodeProviderRefused {
					t.Errorf("reached %v with %v", got, f)
				}
				if d.State() != call.DeliveryUnknown { // the first hop had the request
					t.Errorf("delivery %v", d.State())
				}
				return
			}
			if err != nil || got == nil || got.method != "POST" || !strings.Contains(got.body, `"id":"g1"`) || got.version != "2025-11-25" {
				t.Fatalf("got %+v, %v", got, err)
			}
			if all := got.auth + got.user + got.session; tc.secrets != (all == "Bearer canary-tokencanary-keycanary-session") || !tc.secrets && all != "" {
				t.Errorf("the other side saw %+v", got)
			}
		})
	}
}

// dnsServer answers every question for an A record with the next of the given addresses.
func dnsServer(t *testing.T, addresses ...string) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	var asked atomic.Int32
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			q := buf[:n]
			end := 12
			for end < n && q[end] != 0 {
				end += int(q[end]) + 1
			}
			qtype := binary.BigEndian.Uint16(q[end+1:])
			out := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end+5]...)
			if qtype == 1 {
				i := int(asked.Add(1)) - 1
				out[7] = 1
				out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				out = append(out, net.ParseIP(addresses[min(i, len(addresses)-1)]).To4()...)
			}
			_, _ = pc.WriteTo(out, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

// F-41: a name that resolves inwards is blocked at the dial, on every dial, and nothing has left.
func TestF41_Rebinding(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0", "100.100.100.200"} {
		c := newCarrier(t, HTTPOptions{URL: "https://mcp.example.test:9/", resolver: dnsServer(t, address), AllowPrivateNet: address != "10.0.0.1"})
		for range 2 {
			var d Delivery
			_, err := c.Do(testContext(t), modernRequest(&d))
			if f := wantFault(t, err); !strings.HasPrefix(f.Detail, "address_blocked") || d.State() != call.NotSent {
				t.Errorf("%s: got %v, delivery %v", address, f, d.State())
			}
		}
	}
}

// certificate makes a certificate and the pool that trusts it.
func certificate(t *testing.T, host string, from, to time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, NotBefore: from, NotAfter: to, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		tmpl.IPAddresses = []net.IP{ip}
	} else {
		tmpl.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := x509.ParseCertificate(der)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// F-36: what is wrong with a server's TLS is named, and nothing was sent to it.
func TestF36_TLS(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		name, host string
		from, to   time.Time
		trust      bool
		version    uint16
		want       string // "": it works
	}{
		{name: "good", host: "127.0.0.1", from: now.Add(-time.Hour), to: now.Add(time.Hour), trust: true},
		{name: "expired", host: "127.0.0.1", from: now.Add(-2 * time.Hour), to: now.Add(-time.Hour), trust: true, want: "expired"},
		{name: "other host", host: "mcp.example", from: now.Add(-time.Hour), to: now.Add(time.Hour), trust: true, want: "another host"},
		{name: "self-signed", host: "127.0.0.1", from: now.Add(-time.Hour), to: now.Add(time.Hour), want: "unknown authority"},
		{name: "TLS 1.1", host: "127.0.0.1", from: now.Add(-time.Hour), to: now.Add(time.Hour), trust: true, version: tls.VersionTLS11, want: "protocol version"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cert, pool := certificate(t, tc.host, tc.from, tc.to)
			if !tc.trust {
				pool = x509.NewCertPool()
			}
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, okResult)
			}))
			srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10, MaxVersion: tc.version}
			srv.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes are the point
			srv.StartTLS()
			defer srv.Close()
			var d Delivery
			_, err := newCarrier(t, HTTPOptions{URL: srv.URL, RootCAs: pool}).Do(testContext(t), modernRequest(&d))
			if tc.want == "" {
				if err != nil || d.State() != call.Confirmed {
					t.Errorf("got %v, delivery %v", err, d.State())
				}
				return
			}
			f := wantFault(t, err)
			if !strings.HasPrefix(f.Detail, "tls_error: ") || !strings.Contains(f.Detail, tc.want) || d.State() != call.NotSent {
				t.Errorf("got %v, delivery %v, want %q", f, d.State(), tc.want)
			}
		})
	}
}

// F-44: proxy variables of the environment mean nothing.
func TestF44_NoAmbientProxy(t *testing.T) {
	proxy := rawServer(t, func(_ net.Conn, r *http.Request, _ string) { t.Errorf("the proxy saw %s %s", r.Method, r.RequestURI) })
	t.Setenv("HTTPS_PROXY", proxy)
	t.Setenv("HTTP_PROXY", proxy)
	c := newCarrier(t, HTTPOptions{URL: "https://mcp.example.test:9/", resolver: dnsServer(t, "10.0.0.1")})
	if c.transport.Proxy != nil {
		t.Error("the transport has a proxy")
	}
	_, err := c.Do(testContext(t), modernRequest(nil))
	wantFault(t, err)
}
