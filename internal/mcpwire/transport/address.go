package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// errAddressBlocked says that a name resolved to an address that the provider may not have.
var errAddressBlocked = errors.New("address_blocked")

// checkURL says whether a provider, or a hop of a redirect, may be at u (R1.9): https, or http on loopback; a host and no
// user, no fragment. The host is ASCII, so that what an operator reads is what is resolved.
func checkURL(u *url.URL) error {
	switch {
	case u.Opaque != "" || u.Host == "" || u.Hostname() == "":
		return errors.New("the URL has no host")
	case u.User != nil:
		return errors.New("the URL has a user or a password in it")
	case u.Fragment != "" || u.RawFragment != "":
		return errors.New("the URL has a fragment")
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("the URL is neither https nor http")
	case u.Scheme == "http" && !loopbackHost(u.Hostname()):
		return errors.New("http is for loopback addresses only; use https")
	}
	for _, c := range []byte(u.Host) {
		if c <= 0x20 || c >= 0x7f || c == '%' {
			return errors.New("the host is not plain ASCII; write an international name in its xn-- form")
		}
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return errors.New("the port is not in 1 to 65535")
		}
	} else if strings.HasSuffix(u.Host, ":") {
		return errors.New("the port is empty")
	}
	return nil
}

// loopbackHost says whether a URL's host is a loopback literal or localhost.
func loopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

// sameOrigin compares scheme, host and port.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

// metadataAddresses serve credentials of the machine to whoever asks. They are never a provider's, whatever networks are
// allowed; those in link-local space are refused as such.
var metadataAddresses = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"), // Alibaba Cloud
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd20:ce::254"),    // Google Cloud
	netip.MustParseAddr("fd00:42::42"),     // Scaleway
}

// privateV4 and privateV6 are what AllowPrivateNet opens.
var (
	privateV4 = []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("100.64.0.0/10"),
	}
	privateV6  = []netip.Prefix{netip.MustParsePrefix("fc00::/7")}
	loopbackV4 = netip.MustParsePrefix("127.0.0.0/8")
	loopbackV6 = netip.MustParsePrefix("::1/128")
)

// addressGuard dials for one provider. Every dial checks the address that the name resolved to, so that an answer of the
// resolver that changes between two dials opens nothing (F-41). A loopback host reaches loopback and nothing else; every
// other host reaches the public networks, and private ones if allowed.
type addressGuard struct {
	loopback bool // the provider's own URL is on loopback
	public   *ssrf.Guardian
	dialer   net.Dialer
}

func newAddressGuard(loopback, private bool, timeout time.Duration, resolver *net.Resolver) *addressGuard {
	opts := []ssrf.Option{ssrf.WithAnyPort()}
	if private {
		opts = append(opts, ssrf.WithAllowedV4Prefixes(privateV4...), ssrf.WithAllowedV6Prefixes(privateV6...))
	}
	return &addressGuard{
		loopback: loopback,
		public:   ssrf.New(opts...),
		dialer: net.Dialer{
			Timeout:  timeout,
			Resolver: resolver,
			KeepAliveConfig: net.KeepAliveConfig{
				Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 3,
			},
		},
	}
}

// dial is an http.Transport's DialContext.
func (g *addressGuard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := g.dialer
	onLoopback := g.loopback && loopbackHost(host)
	d.Control = func(network, resolved string, raw syscall.RawConn) error {
		if err := g.check(network, resolved, onLoopback); err != nil {
			return err
		}
		return boundUnacknowledged(raw)
	}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &sentConn{Conn: conn}, nil
}

// endingWith makes a dial end with life too. net/http lets a dial outlive the request that asked for it, in case another
// can use the connection.
func endingWith(life context.Context, dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		return dial(ctx, network, address)
	}
}

func (g *addressGuard) check(network, resolved string, onLoopback bool) error {
	ap, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("%w: %s is no address", errAddressBlocked, resolved)
	}
	ip := ap.Addr()
	if onLoopback {
		if ip.Is4() && loopbackV4.Contains(ip) || ip == loopbackV6.Addr() {
			return nil
		}
		return fmt.Errorf("%w: a loopback name resolved to %s", errAddressBlocked, ip)
	}
	for _, m := range metadataAddresses {
		if ip.WithZone("") == m {
			return fmt.Errorf("%w: %s serves credentials of the machine", errAddressBlocked, ip)
		}
	}
	if err := g.public.Safe(network, resolved, nil); err != nil {
		return fmt.Errorf("%w: %s is not in a network that this provider may use", errAddressBlocked, ip)
	}
	return nil
}
