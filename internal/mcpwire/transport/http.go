package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// modernRevision is the first revision without sessions and handshakes. Revisions are dates and compare as text.
const modernRevision = "2026-07-28"

// HTTPOptions say how one provider is reached and what is borne from it. Zero values select the defaults.
type HTTPOptions struct {
	URL     string            // https, or http on loopback (R1.9)
	Headers map[string]string // the user's own; those that are managed here are refused (R1.10)
	// Credential gives the bearer token, fetched for every request and never kept; nil: none.
	Credential      func() (string, error)
	AllowRedirects  bool
	AllowPrivateNet bool
	RootCAs         *x509.CertPool // nil: the system's

	MaxMessage        int64         // bytes of one message; 16 MiB
	MaxResponseHeader int64         // bytes of a response's header; 64 KiB
	DialTimeout       time.Duration // TCP and TLS, each; 10 s
	HeaderTimeout     time.Duration // from the request to the first byte of its answer; 0: as long as the call may take
	CloseTimeout      time.Duration // how long Close waits for open requests; 5 s
	BodyWindow        time.Duration // a body that has begun must bring BodyFloor bytes in every such span (F-32); 10 s
	BodyFloor         int64         // 10 KiB

	Logger *slog.Logger     // nil: none
	Now    func() time.Time // nil: time.Now

	// OnNotification takes notifications that no request claims. Like OnRequest it runs on the goroutine that reads the
	// stream, in the stream's order; params may be kept.
	OnNotification func(method string, params []byte)
	// OnRequest takes requests of a handshake-era server, which are answered with [HTTPCarrier.Reply]. In the modern era
	// a request of the server is a violation, and only counted (S-049).
	OnRequest func(id []byte, method string, params []byte)

	resolver *net.Resolver // tests: nil is the system's
}

// The defaults of HTTPOptions.
const (
	defaultDialTimeout    = 10 * time.Second
	defaultMaxHeader      = 64 << 10
	defaultBodyWindow     = 10 * time.Second
	defaultBodyFloor      = 10 << 10
	defaultHTTPMaxMessage = 16 << 20
	// noticeTimeout bounds messages whose answer is only a status.
	noticeTimeout = 15 * time.Second
	// idleTimeout closes idle connections before common servers do, whose shortest default is five seconds: a request that
	// meets the server's close on the wire would end as unknown.
	idleTimeout = 4 * time.Second
)

func (o *HTTPOptions) setDefaults() {
	setDefault(&o.MaxMessage, defaultHTTPMaxMessage)
	setDefault(&o.MaxResponseHeader, defaultMaxHeader)
	setDefault(&o.DialTimeout, defaultDialTimeout)
	setDefault(&o.CloseTimeout, 5*time.Second)
	setDefault(&o.BodyWindow, defaultBodyWindow)
	setDefault(&o.BodyFloor, defaultBodyFloor)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// HTTPCarrier carries requests to one Streamable HTTP endpoint, in both eras. It speaks HTTP/1.1 alone: a connection then
// carries one request at a time, so that a broken one ends one call, and whether a request has left can be measured at the
// socket. It has no cookies, no proxy and no compression, and follows no redirect unless allowed.
//
// It starts no goroutine of its own but one that drains a stream whose answer has come, for at most a moment.
type HTTPCarrier struct {
	opts      HTTPOptions
	log       *slog.Logger
	url       *url.URL
	base      http.Header // on every request to the provider's own origin
	transport *http.Transport
	session   atomic.Pointer[httpSession]

	violations, strays, notifications atomic.Int64

	mu            sync.Mutex // guards what follows
	flights       map[*flight]struct{}
	closed        bool
	lastViolation string

	wg       sync.WaitGroup // flights and drains
	endDials context.CancelFunc
	done     chan struct{}
}

var _ Carrier = (*HTTPCarrier)(nil)

type httpSession struct{ id, version string }

var errHTTPClosed = errors.New("the connection was closed by the gateway")

// NewHTTP checks the options and makes a carrier. It touches no network.
func NewHTTP(o HTTPOptions) (*HTTPCarrier, error) {
	o.setDefaults()
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, errors.New("http provider: the URL cannot be read") // its text may hold a password
	}
	if err := checkURL(u); err != nil {
		return nil, fmt.Errorf("http provider: %w", err)
	}
	base, err := userHeaders(o.Headers, o.Credential != nil)
	if err != nil {
		return nil, fmt.Errorf("http provider: %w", err)
	}
	life, end := context.WithCancel(context.Background())
	guard := newAddressGuard(loopbackHost(u.Hostname()), o.AllowPrivateNet, o.DialTimeout, o.resolver)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	c := &HTTPCarrier{
		opts: o,
		log:  o.Logger.With("component", "transport.http"),
		url:  u,
		base: base,
		transport: &http.Transport{
			Proxy:                  nil, // no ambient proxy, whatever the environment says (F-44)
			DialContext:            endingWith(life, guard.dial),
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs, Time: o.Now},
			TLSHandshakeTimeout:    o.DialTimeout,
			DisableCompression:     true,
			MaxIdleConnsPerHost:    128,
			IdleConnTimeout:        idleTimeout,
			ResponseHeaderTimeout:  o.HeaderTimeout,
			MaxResponseHeaderBytes: o.MaxResponseHeader,
			WriteBufferSize:        32 << 10,
			ReadBufferSize:         16 << 10,
			Protocols:              protocols,
		},
		flights:  map[*flight]struct{}{},
		endDials: end,
		done:     make(chan struct{}),
	}
	c.session.Store(&httpSession{})
	return c, nil
}

// SetSession says what was negotiated: the revision, and in the handshake era the session id that the server gave, if any.
// From then on both travel with every request that does not bring its own. A session id in the modern era is forgotten.
func (c *HTTPCarrier) SetSession(id, version string) {
	if version >= modernRevision {
		id = ""
	}
	c.session.Store(&httpSession{id: id, version: version})
}

// Do posts r once (see [Carrier]). The answer is the message with r's id, in a JSON body or on an event stream; a message
// with another id breaks the protocol at once (F-34). A JSON-RPC error with r's id is an answer whatever the HTTP status.
func (c *HTTPCarrier) Do(ctx context.Context, r *Request) (Response, error) {
	x, err := c.begin(ctx)
	if err != nil {
		return Response{}, err
	}
	defer x.end()
	resp, err := x.do(r)
	if err == nil {
		r.Delivery.Confirmed()
		return resp, nil
	}
	if !x.sent.seal() {
		r.Delivery.MaybeSent()
	}
	return Response{}, x.fault(err)
}

func (x *flight) do(r *Request) (Response, error) {
	h, err := x.header(r.Header)
	if err != nil {
		return Response{}, err
	}
	h["Accept"] = acceptBoth
	h["Content-Type"] = contentJSON
	buf := message(96 + len(r.ID) + len(r.Method) + len(r.Params))
	*buf = content.AppendRequest(*buf, r.ID, r.Method, r.Params)
	defer func() {
		if x.sentOut() {
			keep(buf)
		}
	}()
	resp, err := x.send(http.MethodPost, h, *buf)
	if err != nil {
		return Response{}, err
	}
	return x.answer(r, h, resp)
}

// Notify posts a notification and waits for its status.
func (c *HTTPCarrier) Notify(ctx context.Context, method string, params []byte, header http.Header) error {
	return c.post(ctx, header, content.AppendNotification(nil, method, params))
}

// Reply posts the answer to a request of a handshake-era server: a result, or e.
func (c *HTTPCarrier) Reply(ctx context.Context, id, result []byte, e *call.ProviderError, header http.Header) error {
	if e != nil {
		return c.post(ctx, header, content.AppendError(nil, id, e))
	}
	return c.post(ctx, header, content.AppendResult(nil, id, result))
}

func (c *HTTPCarrier) post(ctx context.Context, header http.Header, body []byte) error {
	return c.notice(ctx, header, http.MethodPost, body)
}

// Delete ends the handshake-era session at the server (R1.8). Without a session it does nothing, and a server that does not
// let clients end sessions (405) has been told.
func (c *HTTPCarrier) Delete(ctx context.Context) error {
	if c.session.Load().id == "" {
		return nil
	}
	err := c.notice(ctx, nil, http.MethodDelete, nil)
	if f, ok := errors.AsType[*Fault](err); ok && (f.HTTPStatus == http.StatusMethodNotAllowed || f.HTTPStatus == http.StatusNotFound) {
		return nil
	}
	return err
}

// notice sends what is answered by a status alone.
func (c *HTTPCarrier) notice(ctx context.Context, header http.Header, method string, body []byte) error {
	x, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer x.end()
	late := time.AfterFunc(noticeTimeout, func() { x.cancel(errNoticeLate) })
	defer late.Stop()
	h, err := x.header(header)
	if err == nil {
		var resp *http.Response
		if body != nil {
			h["Content-Type"] = contentJSON
			h["Accept"] = acceptBoth
		}
		if resp, err = x.send(method, h, body); err == nil {
			err = x.accepted(resp)
		}
	}
	if err != nil {
		x.sent.seal()
		return x.fault(err)
	}
	return nil
}

// Done is closed by Close.
func (c *HTTPCarrier) Done() <-chan struct{} { return c.done }

// Err says that the carrier was closed, once it was.
func (c *HTTPCarrier) Err() error {
	select {
	case <-c.done:
		return errHTTPClosed
	default:
		return nil
	}
}

// Close gives up what is open and waits for it, at most for the carrier's bound or until ctx ends.
func (c *HTTPCarrier) Close(ctx context.Context) error {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	for x := range c.flights {
		x.cancel(errHTTPClosed)
	}
	c.mu.Unlock()
	if first {
		c.endDials()
		close(c.done)
	}
	settled := make(chan struct{})
	go func() { // ends with the last flight, each of which has been cancelled
		c.wg.Wait()
		close(settled)
	}()
	bound := time.NewTimer(c.opts.CloseTimeout)
	defer bound.Stop()
	defer c.transport.CloseIdleConnections()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close http connection: open requests remain: %w", ctx.Err())
	case <-bound.C:
		return errors.New("close http connection: open requests remain")
	}
}

// HTTPStats are counters for operators.
type HTTPStats struct {
	Violations    int64 // messages that broke the protocol
	Strays        int64 // answers to nobody
	Notifications int64
	Open          int
	LastViolation string
}

// Stats reads the counters.
func (c *HTTPCarrier) Stats() HTTPStats {
	c.mu.Lock()
	open, last := len(c.flights), c.lastViolation
	c.mu.Unlock()
	return HTTPStats{
		Violations: c.violations.Load(), Strays: c.strays.Load(), Notifications: c.notifications.Load(),
		Open: open, LastViolation: last,
	}
}

// violation counts a message that broke the protocol. why holds nothing that the peer sent.
func (c *HTTPCarrier) violation(why string) {
	c.violations.Add(1)
	c.mu.Lock()
	c.lastViolation = why
	c.mu.Unlock()
	c.log.Debug("protocol violation", "reason", why)
}
