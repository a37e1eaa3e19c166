package transport

import (
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerLastID  = "Last-Event-Id"
)

// Header values that never change, shared by all requests.
var (
	acceptBoth  = []string{"application/json, text/event-stream"}
	acceptSSE   = []string{"text/event-stream"}
	contentJSON = []string{"application/json"}
)

// managedHeaders are not the user's to set (R1.10): those of MCP, and those that decide how bytes travel.
var managedHeaders = []string{
	headerSession, headerVersion, headerMethod, headerName, headerLastID, "Content-Type", "Accept",
	"Accept-Encoding", "Content-Encoding", "Content-Length", "Connection", "Expect", "Host", "Keep-Alive", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// userHeaders checks the user's headers and adds what every request carries.
func userHeaders(user map[string]string, credential bool) (http.Header, error) {
	h := http.Header{"User-Agent": {"ostiary"}, "Accept-Encoding": {"identity"}}
	for name, value := range user {
		key := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case !content.IsToken(name):
			return nil, fmt.Errorf("header %q: the name is no HTTP token", name)
		case slices.Contains(managedHeaders, key) || strings.HasPrefix(key, content.ParamHeaderPrefix):
			return nil, fmt.Errorf("header %s is managed here and cannot be set", key)
		case key == "Authorization" && credential:
			return nil, fmt.Errorf("header Authorization cannot be set beside a credential")
		case !content.ValidHeaderValue(value):
			return nil, fmt.Errorf("header %s: the value is not printable ASCII", key)
		}
		h[key] = []string{value}
	}
	return h, nil
}

// header makes the header of one request: the base, what the session adds, the credential. own may replace nothing of the
// base, because what the user may set and what a session sets do not meet.
func (x *flight) header(own http.Header) (http.Header, error) {
	c := x.c
	h := make(http.Header, len(c.base)+len(own)+6)
	for k, v := range c.base {
		h[k] = v
	}
	for k, v := range own {
		h[textproto.CanonicalMIMEHeaderKey(k)] = v
	}
	s := c.session.Load()
	if s.version != "" && h[headerVersion] == nil {
		h[headerVersion] = []string{s.version}
	}
	if s.id != "" && h[headerSession] == nil {
		h[headerSession] = []string{s.id}
	}
	if modernHeader(h) {
		delete(h, headerSession) // R1.8
	}
	if c.opts.Credential != nil {
		token, err := c.opts.Credential()
		if err != nil {
			return nil, &Fault{Code: call.CodeProviderUnavailable, Detail: "the credential is not available: " + err.Error()}
		}
		if token == "" || !content.ValidHeaderValue(token) {
			return nil, &Fault{Code: call.CodeProviderUnavailable, Detail: "the credential is empty or holds characters that a header cannot carry"}
		}
		h["Authorization"] = []string{"Bearer " + token}
	}
	return h, nil
}

// modernHeader says whether a request is of the modern era, by the revision that it names.
func modernHeader(h http.Header) bool {
	v := h[headerVersion]
	return len(v) > 0 && v[0] >= modernRevision
}

// foreignHeader is what of a request's header may go to another origin than the provider's: what the protocol needs, no
// credential, no session and nothing of the user's (R1.9).
func foreignHeader(h http.Header) http.Header {
	out := http.Header{"User-Agent": {"ostiary"}, "Accept-Encoding": {"identity"}}
	for k, v := range h {
		switch k {
		case "Accept", "Content-Type", headerVersion, headerMethod, headerName:
			out[k] = v
		default:
			if strings.HasPrefix(k, content.ParamHeaderPrefix) {
				out[k] = v
			}
		}
	}
	return out
}
