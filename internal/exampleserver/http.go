package exampleserver

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// keepAlive is how often an idle stream gets a comment, so that nobody between takes it for dead.
const keepAlive = 15 * time.Second

// Handler serves both eras on one path. Requests from other hosts' pages are refused, and with [Options.Bearer] all that
// do not show the token. Wrong options are reported by every request.
func Handler(opts Options) http.Handler {
	h := &httpServer{s: newServer(opts), opts: opts, fault: opts.validate(), sessions: map[string]*session{}}
	h.started = sync.OnceFunc(func() { _ = wait(context.Background(), opts.StartDelay) })
	return h
}

type httpServer struct {
	s       *server
	opts    Options
	fault   error
	started func()

	mu       sync.Mutex // guards sessions
	sessions map[string]*session
}

const maxSessions = 10_000

func (h *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case h.fault != nil:
		http.Error(w, h.fault.Error(), http.StatusInternalServerError)
		return
	case !loopback(r.Host) || !sameMachine(r.Header.Get("Origin")):
		http.Error(w, "a page of another host asks", http.StatusForbidden)
		return
	case h.opts.Bearer != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+h.opts.Bearer)) != 1:
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
		return
	}
	h.started()
	switch {
	case r.Method == http.MethodPost:
		h.post(w, r)
	case r.Method == http.MethodGet && h.opts.Era.legacy():
		h.get(w, r)
	case r.Method == http.MethodDelete && h.opts.Era.legacy():
		h.delete(w, r)
	default:
		w.Header().Set("Allow", "POST")
		http.Error(w, "only POST is possible", http.StatusMethodNotAllowed)
	}
}

func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}

func sameMachine(origin string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && loopback(u.Host)
}

func (h *httpServer) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
		return
	} else if err != nil {
		return
	}
	m, fault := parseMessage(body)
	if fault != nil {
		respond(w, http.StatusBadRequest, fault.append(nil, m.id))
		return
	}
	meta := m.meta()
	_, inBody := meta.str(metaVersion)
	header := r.Header.Get("Mcp-Protocol-Version")
	if inBody || header != "" && !slices.Contains(legacyVersions, header) {
		h.modern(w, r, m, meta)
		return
	}
	h.legacy(w, r, m, meta)
}

func (h *httpServer) modern(w http.ResponseWriter, r *http.Request, m message, meta object) {
	version, _ := meta.str(metaVersion)
	switch header := r.Header.Get("Mcp-Protocol-Version"); {
	case !h.opts.Era.modern():
		http.Error(w, "Bad Request: unsupported protocol version", http.StatusBadRequest)
		return
	case m.id == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case header == "":
		respond(w, http.StatusBadRequest, mismatch("Mcp-Protocol-Version is missing").append(nil, m.id))
		return
	case meta == nil || version == "":
		respond(w, http.StatusBadRequest, invalidParams("_meta: "+metaVersion+" is missing").append(nil, m.id))
		return
	case header != version:
		respond(w, http.StatusBadRequest, mismatch("Mcp-Protocol-Version differs from the body").append(nil, m.id))
		return
	}
	fault := h.s.checkModern(version, meta)
	if fault == nil {
		fault = checkHeaders(r.Header, &m)
	}
	if fault != nil {
		respond(w, http.StatusBadRequest, fault.append(nil, m.id))
		return
	}
	h.exchange(w, r.Context(), &exchange{message: m, modern: true, meta: meta})
}

func mismatch(msg string) *rpcError { return &rpcError{code: codeHeaderMismatch, message: msg} }

// checkHeaders compares the headers that mirror the body with it.
func checkHeaders(header http.Header, m *message) *rpcError {
	if header.Get("Mcp-Method") != m.method {
		return mismatch("Mcp-Method differs from the body, or is missing")
	}
	if m.method != "tools/call" {
		return nil
	}
	name, _ := m.params.str("name")
	if got, ok := decodeHeader(header.Get("Mcp-Name")); !ok || got != name {
		return mismatch("Mcp-Name differs from the body, or is missing")
	}
	if name != "rich" {
		return nil
	}
	args := m.params.object("arguments")
	for _, p := range []struct{ argument, header string }{{"region", "Mcp-Param-Region"}, {"priority", "Mcp-Param-Priority"}, {"dry", "Mcp-Param-Dry-Run"}} {
		raw, given := args[p.argument]
		given = given && raw.Kind() != 'n'
		want := string(raw)
		if s, ok := args.str(p.argument); ok {
			want = s
		}
		got, ok := decodeHeader(header.Get(p.header))
		if !ok || len(header.Values(p.header)) > 1 || given != (len(header.Values(p.header)) == 1) || given && got != want {
			return mismatch(p.header + " differs from the body, or is missing")
		}
	}
	return nil
}

// decodeHeader undoes the Base64 form that a value takes which is no plain ASCII.
func decodeHeader(v string) (string, bool) {
	enc, ok := strings.CutPrefix(v, "=?base64?")
	if !ok || !strings.HasSuffix(enc, "?=") {
		return v, true
	}
	b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(enc, "?="))
	return string(b), err == nil
}

func (h *httpServer) legacy(w http.ResponseWriter, r *http.Request, m message, meta object) {
	if !h.opts.Era.legacy() {
		requested, _ := m.params.str("protocolVersion")
		respond(w, http.StatusBadRequest, h.s.unsupportedVersion(requested).append(nil, m.id))
		return
	}
	if m.method == "initialize" && m.id != nil {
		h.open(w, r, &m)
		return
	}
	session, status := h.session(r)
	switch {
	case session == nil:
		respond(w, status, (&rpcError{code: codeInvalidRequest, message: "no such session"}).append(nil, m.id))
		return
	case m.id == nil:
		switch m.method {
		case "notifications/initialized":
			session.readied.Do(func() { close(session.ready) })
		case "notifications/cancelled":
			session.inFlight.cancel(&m)
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	// In this era a client that leaves has not cancelled: only notifications/cancelled does, or the end of its session.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	if !session.inFlight.add(m.id, cancel) {
		respond(w, http.StatusBadRequest, (&rpcError{code: codeInvalidRequest, message: "the id is in use"}).append(nil, m.id))
		return
	}
	h.exchange(w, ctx, &exchange{message: m, session: session, meta: meta})
}

// open makes a session.
func (h *httpServer) open(w http.ResponseWriter, r *http.Request, m *message) {
	if r.Header.Get("Mcp-Session-Id") != "" {
		respond(w, http.StatusBadRequest, (&rpcError{code: codeInvalidRequest, message: "initialize has no session yet"}).append(nil, m.id))
		return
	}
	b, fault := h.s.initialize(m)
	if fault != nil {
		respond(w, http.StatusBadRequest, fault.append(nil, m.id))
		return
	}
	id, session := rand.Text(), newSession()
	session.open()
	h.mu.Lock()
	full := len(h.sessions) >= maxSessions
	if !full {
		session.changes = h.s.subscribe()
		h.sessions[id] = session
	}
	h.mu.Unlock()
	if full {
		http.Error(w, "too many sessions", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Mcp-Session-Id", id)
	respond(w, http.StatusOK, b)
}

// session is that of a request; nil with the status to refuse it with if there is none.
func (h *httpServer) session(r *http.Request) (*session, int) {
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		return nil, http.StatusBadRequest
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.sessions[id]; s != nil {
		return s, http.StatusOK
	}
	return nil, http.StatusNotFound
}

// get is a legacy client's stream of what is not about a request of its own.
func (h *httpServer) get(w http.ResponseWriter, r *http.Request) {
	session, status := h.session(r)
	if session == nil {
		http.Error(w, "a session is needed", status)
		return
	}
	if !session.streaming.TryLock() {
		http.Error(w, "there is a stream already", http.StatusConflict)
		return
	}
	defer session.streaming.Unlock()
	out := &stream{w: w}
	out.open()
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-session.gone:
			return
		case <-tick.C:
			out.comment()
		case <-session.changes:
			out.event(notification("notifications/tools/list_changed", nil))
		}
	}
}

func (h *httpServer) delete(w http.ResponseWriter, r *http.Request) {
	session, status := h.session(r)
	if session == nil {
		http.Error(w, "no such session", status)
		return
	}
	h.mu.Lock()
	_, there := h.sessions[r.Header.Get("Mcp-Session-Id")]
	delete(h.sessions, r.Header.Get("Mcp-Session-Id"))
	h.mu.Unlock()
	if there {
		h.s.unsubscribe(session.changes)
		close(session.gone)
		session.inFlight.cancelAll()
	}
	w.WriteHeader(http.StatusNoContent)
}

// exchange answers a request with JSON, or with a stream once there is something to say before the answer.
func (h *httpServer) exchange(w http.ResponseWriter, ctx context.Context, ex *exchange) {
	out := &stream{w: w}
	ex.notify = out.event
	over := func() { // before the answer: its reader may use the id again at once
		if ex.session != nil {
			ex.session.inFlight.remove(ex.id)
		}
	}
	ex.cut = func() { over(); panic(http.ErrAbortHandler) } // the way to cut a connection from within a handler
	stop := out.keepAlive(ctx)
	b := h.s.handle(ctx, ex)
	over()
	stop()
	switch {
	case b == nil && !out.isOpen():
		w.WriteHeader(http.StatusAccepted) // cancelled: whoever asked is not there to read it, or does not want an answer
	case b == nil:
	case out.isOpen():
		out.event(b)
	default:
		status := http.StatusOK
		if ex.modern && strings.Contains(string(b[:min(len(b), 512)]), `"error":{"code":-32601`) {
			status = http.StatusNotFound
		}
		respond(w, status, b)
	}
}

func respond(w http.ResponseWriter, status int, b []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that has left does not read it
}
