package identity

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ostiary/ostiary/call"
)

// Authenticator resolves a presented bearer token. [Tokens.Authenticate] is one.
type Authenticator func(ctx context.Context, bearer string) (call.Principal, bool)

// Guard stands before every route that is not open to strangers. It is safe for concurrent use.
type Guard struct {
	authenticate Authenticator
	throttle     *Throttle
}

// NewGuard makes a guard. A nil authenticator lets nobody in; a nil throttle is replaced by one with its defaults.
func NewGuard(a Authenticator, t *Throttle) *Guard {
	if a == nil {
		a = func(context.Context, string) (call.Principal, bool) { return call.Principal{}, false }
	}
	if t == nil {
		t = NewThrottle(ThrottleOptions{})
	}
	return &Guard{authenticate: a, throttle: t}
}

// Refusal says why a request has no principal.
type Refusal struct {
	Status     int           // 401, 429, or 400 for a credential in the query string
	Reason     string        // one word for logs: missing, malformed, invalid, throttled, query
	RetryAfter time.Duration // of a 429
}

// Check authenticates r. A good token always passes, whatever happened from the same address before (F-47). The answer to
// a missing, a malformed and a wrong token is the same but for its wording, and says nothing about what exists.
func (g *Guard) Check(r *http.Request) (call.Principal, *Refusal) {
	if queryCredential(r.URL.RawQuery) {
		return call.Principal{}, &Refusal{Status: http.StatusBadRequest, Reason: "query"}
	}
	bearer, reason := bearerOf(r.Header)
	if reason == "" {
		if p, ok := g.authenticate(r.Context(), bearer); ok {
			return p, nil
		}
		reason = "invalid"
	}
	if reason == "missing" {
		// Clients ask without a token first, to learn what is needed: that is no guess.
		return call.Principal{}, &Refusal{Status: http.StatusUnauthorized, Reason: reason}
	}
	if after := g.throttle.Failed(r.RemoteAddr); after > 0 {
		return call.Principal{}, &Refusal{Status: http.StatusTooManyRequests, Reason: "throttled", RetryAfter: after}
	}
	return call.Principal{}, &Refusal{Status: http.StatusUnauthorized, Reason: reason}
}

// Write answers the request that was refused.
func (f *Refusal) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	message := "send a valid bearer token in the Authorization header"
	switch f.Status {
	case http.StatusUnauthorized:
		challenge := `Bearer realm="ostiary"`
		if f.Reason != "missing" {
			challenge += `, error="invalid_token"`
		}
		h.Set("WWW-Authenticate", challenge)
	case http.StatusTooManyRequests:
		h.Set("Retry-After", strconv.Itoa(int((f.RetryAfter+time.Second-1)/time.Second)))
		message = "too many invalid tokens from this address; wait"
	case http.StatusBadRequest:
		message = "a credential does not belong in a query string; treat it as leaked and " + message
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(`{"error":"unauthenticated","message":"` + message + `"}`))
}

// bearerOf takes the token out of exactly one Authorization header.
func bearerOf(h http.Header) (bearer, reason string) {
	values := h["Authorization"]
	switch {
	case len(values) == 0:
		return "", "missing"
	case len(values) > 1:
		return "", "malformed"
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", "malformed"
	}
	if token = strings.Trim(token, " "); token == "" {
		return "", "malformed"
	}
	return token, ""
}

// queryCredential reports a query parameter that looks like a credential: such a URL ends in logs and histories.
func queryCredential(query string) bool {
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		switch strings.ToLower(strings.ReplaceAll(name, "%5F", "_")) {
		case "access_token", "token", "bearer", "authorization", "api_key", "apikey":
			return true
		}
	}
	return false
}
