package exampleserver

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The revisions that the server speaks, newest first.
var (
	modernVersions = []string{"2026-07-28"}
	legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
)

// Keys of _meta that the modern era defines.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
	metaServer       = "io.modelcontextprotocol/serverInfo"
)

const (
	serverInfo   = `{"name":"ostiary-example","title":"Ostiary's example server","version":"1.0.0"}`
	instructions = `A server to try things with. Nothing here is real; the only effects are notes and a counter.`
)

// server is what all connections of one example server share.
type server struct {
	opts Options
	log  *slog.Logger

	began time.Time

	mu        sync.Mutex // guards what follows
	drift     map[string]drifted
	calls     int
	ran       map[string]int
	notes     []string
	events    int
	listeners map[chan struct{}]struct{}
}

func newServer(opts Options) *server {
	s := &server{
		opts: opts, log: opts.logger(), began: time.Now(), drift: map[string]drifted{}, ran: map[string]int{},
		listeners: map[chan struct{}]struct{}{},
	}
	for _, name := range opts.Drifted {
		s.drift[name] = drifted{description: 1, schema: 1}
	}
	return s
}

// session is a legacy client's: made by initialize, over HTTP known by an id.
type session struct {
	mu     sync.Mutex // guards what follows
	level  string
	opened bool

	ready     chan struct{} // closed by notifications/initialized
	readied   sync.Once
	gone      chan struct{} // closed by DELETE
	changes   chan struct{} // as [server.subscribe] made it
	streaming sync.Mutex    // held by the one GET stream
	inFlight  inFlight
}

func newSession() *session {
	return &session{level: "info", ready: make(chan struct{}), gone: make(chan struct{})}
}

func (s *session) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = true
}

func (s *session) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

func (s *session) setLevel(level string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}

func (s *session) logLevel() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

// exchange is one request, and the ways back to who sent it.
type exchange struct {
	message
	modern  bool
	session *session // legacy only
	meta    object

	notify func([]byte) // sends a notification about this request, before its answer
	junk   func([]byte) // writes bytes outside of the protocol; nil where the transport has no place for them
	cut    func()       // ends the connection in the middle of the call; it does not return over HTTP

}

// answer is what a request came to.
type answer struct {
	members    []byte // the result object's members, without its braces
	resultType string // modern; "" is complete
	whole      []byte // if set, this is sent as it is, instead of a response made from the above
	meta       []byte // further members of its _meta, each with a leading comma
	late       bool   // it is sent even though the request was cancelled
	none       bool   // nothing is sent
}

// handle answers one request. nil means that nothing is to be sent.
func (s *server) handle(ctx context.Context, ex *exchange) []byte {
	a, fault := s.dispatch(ctx, ex)
	switch {
	case a.none, ctx.Err() != nil && !a.late:
		return nil
	case fault != nil:
		return fault.append(nil, ex.id)
	case a.whole != nil:
		return a.whole
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":`), ex.id...)
	b = append(b, `,"result":{`...)
	if ex.modern {
		if a.resultType == "" {
			a.resultType = "complete"
		}
		b = append(append(b, `"resultType":`...), quote(a.resultType)...)
		b = append(b, `,"_meta":{"`+metaServer+`":`+serverInfo...)
	} else {
		b = append(b, `"_meta":{`...)
		a.meta = bytes.TrimPrefix(a.meta, []byte{','})
	}
	b = append(append(b, a.meta...), '}')
	if len(a.members) > 0 {
		b = append(append(b, ','), a.members...)
	}
	return append(b, `}}`...)
}

func (s *server) dispatch(ctx context.Context, ex *exchange) (answer, *rpcError) {
	switch ex.method {
	case "tools/list":
		return s.list(ex)
	case "tools/call":
		return s.call(ctx, ex)
	case "server/discover":
		if ex.modern {
			return s.discover(), nil
		}
	case "subscriptions/listen":
		if ex.modern {
			return s.listen(ctx, ex)
		}
	case "ping":
		if !ex.modern {
			return answer{}, nil
		}
	case "logging/setLevel":
		if !ex.modern {
			level, ok := ex.params.str("level")
			if !ok || severity(level) < 0 {
				return answer{}, invalidParams("level: expected one of the eight syslog levels")
			}
			ex.session.setLevel(level)
			return answer{}, nil
		}
	}
	return answer{}, &rpcError{code: codeMethodNotFound, message: "method not found: " + ex.method}
}

func (s *server) discover() answer {
	b := []byte(`"supportedVersions":` + string(quoteAll(s.versions())) + `,"capabilities":` + s.capabilities(true))
	b = append(b, `,"instructions":`...)
	b = append(b, quote(instructions)...)
	return answer{members: append(b, `,"ttlMs":0,"cacheScope":"private"`...)}
}

// versions are those that server/discover announces and that errors name.
func (s *server) versions() []string {
	switch s.opts.Era {
	case EraModern:
		return modernVersions
	case EraLegacy:
		return legacyVersions
	}
	return append(append([]string(nil), modernVersions...), legacyVersions...)
}

func (s *server) unsupportedVersion(requested string) *rpcError {
	data := append([]byte(`{"supported":`), quoteAll(s.versions())...)
	data = append(append(data, `,"requested":`...), quote(requested)...)
	return &rpcError{code: codeUnsupportedVersion, message: "unsupported protocol version", data: append(data, '}')}
}

// initialize opens a legacy session.
func (s *server) initialize(m *message) ([]byte, *rpcError) {
	requested, ok := m.params.str("protocolVersion")
	if !ok {
		return nil, invalidParams("protocolVersion: expected a string")
	}
	if !s.opts.Era.legacy() {
		return nil, s.unsupportedVersion(requested)
	}
	version := legacyVersions[0]
	for _, v := range legacyVersions {
		if v == requested {
			version = v
		}
	}
	b := []byte(`{"jsonrpc":"2.0","id":` + string(m.id) + `,"result":{"protocolVersion":"` + version + `","capabilities":` + s.capabilities(false))
	b = append(b, `,"serverInfo":`+serverInfo+`,"instructions":`...)
	return append(append(b, quote(instructions)...), `}}`...), nil
}

// listen is subscriptions/listen: it lasts until the client leaves or the server ends.
func (s *server) listen(ctx context.Context, ex *exchange) (answer, *rpcError) {
	filter := ex.params.object("notifications")
	if filter == nil {
		return answer{}, invalidParams("notifications: expected an object")
	}
	changes := s.subscribe()
	defer s.unsubscribe(changes)
	meta := `{"_meta":{"` + metaSubscription + `":` + string(ex.id) + `}`
	wanted := filter.isTrue("toolsListChanged")
	honoured := `{}`
	if wanted {
		honoured = `{"toolsListChanged":true}`
	}
	ex.notify(notification("notifications/subscriptions/acknowledged", []byte(meta+`,"notifications":`+honoured+`}`)))
	for {
		select {
		case <-ctx.Done():
			return answer{none: true}, nil
		case <-changes:
			if wanted {
				ex.notify(notification("notifications/tools/list_changed", []byte(meta+`}`)))
			}
		}
	}
}

// subscribe returns a channel that is signalled, coalesced, when the list of tools changes.
func (s *server) subscribe() chan struct{} {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[c] = struct{}{}
	return c
}

func (s *server) unsubscribe(c chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, c)
}

func (s *server) announceLocked() {
	for c := range s.listeners {
		select {
		case c <- struct{}{}:
		default: // one is waiting already, and it stands for this change too
		}
	}
}

func quoteAll(words []string) []byte {
	b := []byte{'['}
	for i, w := range words {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, quote(w)...)
	}
	return append(b, ']')
}

// inFlight are the requests of one sender that have no answer yet.
type inFlight struct {
	mu   sync.Mutex
	open map[string]context.CancelFunc // by raw id
}

// add registers a request; ok is false if its id is in use.
func (f *inFlight) add(id jsontext.Value, cancel context.CancelFunc) (ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open = map[string]context.CancelFunc{}
	}
	if _, taken := f.open[string(id)]; taken {
		return false
	}
	f.open[string(id)] = cancel
	return true
}

func (f *inFlight) remove(id jsontext.Value) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, string(id))
}

// cancel ends the request that notifications/cancelled names, if it is still open.
func (f *inFlight) cancel(m *message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.open[string(m.params["requestId"])]; c != nil {
		c()
	}
}

func (f *inFlight) cancelAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.open {
		c()
	}
}
