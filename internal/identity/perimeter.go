package identity

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// PerimeterOptions says which names a server answers to, beyond what is safe by itself.
type PerimeterOptions struct {
	AllowedHosts   []string // DNS names, without port, under which this server may be addressed
	AllowedOrigins []string // scheme://host[:port] of web pages that may call it
}

// Perimeter is the check against web pages that call a local server behind their user's back: DNS rebinding (the Host
// header) and cross-origin requests (Origin, Sec-Fetch-Site). R10.5, S-031, F-48, A-42. It is safe for concurrent use.
type Perimeter struct {
	hosts   map[string]bool
	origins map[string]bool
	fetch   *http.CrossOriginProtection
}

// NewPerimeter makes the check. Origins must be written as a browser sends them.
func NewPerimeter(o PerimeterOptions) (*Perimeter, error) {
	p := &Perimeter{hosts: make(map[string]bool), origins: make(map[string]bool), fetch: http.NewCrossOriginProtection()}
	for _, h := range o.AllowedHosts {
		if h == "" || strings.ContainsAny(h, "/:* ") || h != strings.ToLower(h) {
			return nil, fmt.Errorf("allowed host %q: expected a lower-case DNS name without scheme and port", h)
		}
		p.hosts[h] = true
	}
	for _, origin := range o.AllowedOrigins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || origin != strings.ToLower(u.Scheme+"://"+u.Host) {
			return nil, fmt.Errorf("allowed origin %q: expected scheme://host[:port] in lower case, without a path", origin)
		}
		if err := p.fetch.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("allowed origin %q: %w", origin, err)
		}
		p.origins[origin] = true
	}
	return p, nil
}

// Check returns why r must be refused with 403: "host" or "origin"; "" if nothing speaks against it.
func (p *Perimeter) Check(r *http.Request) string {
	if !p.hostAllowed(r) {
		return "host"
	}
	if origins := r.Header["Origin"]; len(origins) > 0 {
		if len(origins) > 1 || !p.originAllowed(origins[0], r.Host) {
			return "origin"
		}
	}
	if p.fetch.Check(r) != nil {
		return "origin"
	}
	return ""
}

// hostAllowed: a rebound name is a DNS name, so names must be known; localhost is. An address cannot be rebound, but on a
// loopback listener only a loopback address makes sense.
func (p *Perimeter) hostAllowed(r *http.Request) bool {
	name := hostname(r.Host)
	if p.hosts[name] {
		return true
	}
	if isLoopback(name) {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || local == nil {
		return false // not behind a listener: treat it as a loopback one
	}
	ap, err := netip.ParseAddrPort(local.String())
	if err != nil || ap.Addr().Unmap().IsLoopback() {
		return false
	}
	_, err = netip.ParseAddr(name)
	return err == nil
}

// originAllowed: a page of this very server when it is addressed as loopback, or one that is listed. "null" and anything
// that a browser would not have written exactly so are neither.
func (p *Perimeter) originAllowed(origin, host string) bool {
	if p.origins[origin] {
		return true
	}
	scheme, rest, ok := strings.Cut(origin, "://")
	if !ok || (scheme != "http" && scheme != "https") {
		return false
	}
	return rest == host && isLoopback(hostname(host))
}

func hostname(hostport string) string {
	name := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		name = h
	}
	if len(name) > 2 && name[0] == '[' && name[len(name)-1] == ']' {
		name = name[1 : len(name)-1]
	}
	return name
}

func isLoopback(name string) bool {
	if name == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && a.Unmap().IsLoopback()
}
