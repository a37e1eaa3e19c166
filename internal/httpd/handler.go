package httpd

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

// Handler is the whole of what the server answers, for tests and for mounting elsewhere. The order is: panic net, perimeter,
// health, readiness, mounts, and for everything else credential before existence.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	out := &answer{ResponseWriter: w, rc: http.NewResponseController(w), idle: s.o.WriteIdle, now: s.o.Now}
	defer s.recover(out, r)
	// A deadline that an earlier request on this connection left behind would hit "100 Continue".
	_ = out.rc.SetWriteDeadline(time.Time{})
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = newPacedBody(r.Body, out.rc, &s.o)
	}

	if why := s.o.Perimeter.Check(r); why != "" {
		s.log.Warn("request refused by the perimeter", "reason", why, "peer", r.RemoteAddr)
		plain(out, http.StatusForbidden, "forbidden: "+why)
		return
	}
	switch r.URL.Path {
	case healthPath:
		s.status(out, r, true, "")
		return
	case readyPath:
		ok, reason := s.ready()
		if ok && s.o.Fit != nil {
			ok, reason = s.o.Fit()
		}
		s.status(out, r, ok, reason)
		return
	}
	if ok, reason := s.ready(); !ok {
		out.Header().Set("Retry-After", "2")
		plain(out, http.StatusServiceUnavailable, "not ready: "+reason)
		return
	}
	if h := s.mounted(r.URL.Path); h != nil {
		h.ServeHTTP(out, r)
		return
	}
	if s.o.Guard != nil {
		if _, refusal := s.o.Guard.Check(r); refusal != nil {
			refusal.Write(out)
			return
		}
	}
	plain(out, http.StatusNotFound, "not found")
}

func (s *Server) ready() (bool, string) {
	if s.draining.Load() {
		return false, "draining"
	}
	return s.o.Ready()
}

func (s *Server) status(w http.ResponseWriter, r *http.Request, ok bool, reason string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		plain(w, http.StatusMethodNotAllowed, "method not allowed")
		return
	}
	body, code := struct {
		Status string `json:"status"`
		Reason string `json:"reason,omitempty"`
	}{"ok", reason}, http.StatusOK
	if !ok {
		body.Status, code = "unavailable", http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "2")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the status line has gone out: there is nobody left to tell
}

// mounted finds the handler of a path: an exact mount, else the longest one that ends in "/". Paths are compared as they
// are: nothing is cleaned and nobody is redirected.
func (s *Server) mounted(path string) http.Handler {
	if h, ok := s.o.Mount[path]; ok {
		return h
	}
	for i := strings.LastIndexByte(path, '/'); i >= 0; i = strings.LastIndexByte(path[:i], '/') {
		if h, ok := s.o.Mount[path[:i+1]]; ok {
			return h
		}
	}
	return nil
}

// recover turns a handler's panic into a 500 of that one request (F-64). The values of the panic may hold a caller's data:
// only its type and the stack are logged.
func (s *Server) recover(w *answer, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p) // the way to cut a connection, and no fault
	}
	s.log.Error("panic in a handler", "path_length", len(r.URL.Path), "kind", kindOf(p), "stack", string(debug.Stack()))
	if w.began {
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
	plain(w, http.StatusInternalServerError, "internal error")
}

func kindOf(p any) string {
	switch p.(type) {
	case error:
		return "error"
	case string:
		return "string"
	default:
		return "other"
	}
}

func plain(w http.ResponseWriter, code int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n")
}
