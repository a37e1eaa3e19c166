package session

import (
	"net/http"
	"strconv"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// Keys of _meta that the protocol reserves for the sender of a request (R1.6).
const (
	keyRevision     = "io.modelcontextprotocol/protocolVersion"
	keyClientInfo   = "io.modelcontextprotocol/clientInfo"
	keyCapabilities = "io.modelcontextprotocol/clientCapabilities"
	keyLogLevel     = "io.modelcontextprotocol/logLevel"
	keySubscription = "io.modelcontextprotocol/subscriptionId"
	keyToken        = "progressToken"
)

// newID is a string, which can never collide with the integers that the SDK counts with on the same pipe (S-001).
func (s *Session) newID() string {
	b := append(make([]byte, 0, 12), 'g')
	return string(strconv.AppendUint(b, s.nextID.Add(1), 10))
}

// appendClientMeta writes the members that every modern request carries.
func (s *Session) appendClientMeta(dst []byte) []byte {
	dst = append(dst, `"`+keyRevision+`":"`+modernRevisions[0]+`","`+keyClientInfo+`":{"name":`...)
	dst = content.AppendString(dst, s.opts.ClientName)
	dst = append(dst, `,"version":`...)
	dst = content.AppendString(dst, s.opts.ClientVersion)
	dst = append(dst, `},"`+keyCapabilities+`":{`...)
	var extensions []string
	if s.opts.ToolContract {
		extensions = append(extensions, toolContract)
	}
	if s.offersEvents() {
		extensions = append(extensions, worldEvents)
	}
	for i, name := range extensions {
		dst = append(dst, [...]string{`"extensions":{"`, `,"`}[min(i, 1)]...)
		dst = append(append(dst, name...), `":{"version":1}`...)
	}
	if extensions != nil {
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// requestMeta is what one request adds to _meta.
type requestMeta struct {
	caller   []byte // the caller's own object, or nil
	token    string // "" : no progress is wanted
	logLevel string // "" : no log messages are wanted
}

// appendMeta writes the _meta object. The caller's keys stay as they are; keys that the protocol reserves for the sender
// are ours to set, and are not taken from a caller (S-017).
func (s *Session) appendMeta(dst []byte, modern bool, m requestMeta) []byte {
	dst = append(dst, '{')
	start := len(dst)
	comma := func() {
		if len(dst) > start {
			dst = append(dst, ',')
		}
	}
	for k, v := range content.Members(m.caller) {
		if content.ReservedMetaKey(k) {
			continue
		}
		comma()
		dst = append(content.AppendString(dst, k), ':')
		dst = append(dst, v...)
	}
	if modern {
		comma()
		dst = append(dst, s.meta...)
		if m.logLevel != "" {
			dst = append(dst, `,"`+keyLogLevel+`":`...)
			dst = content.AppendString(dst, m.logLevel)
		}
	}
	if m.token != "" {
		comma()
		dst = append(dst, `"`+keyToken+`":`...)
		dst = content.AppendString(dst, m.token)
	}
	return append(dst, '}')
}

// params is a complete params object with the given members, which have no braces; the modern era adds _meta.
func (s *Session) params(members []byte) []byte {
	dst := append(make([]byte, 0, len(members)+len(s.meta)+16), '{')
	dst = append(dst, members...)
	if s.isModern() {
		if len(members) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `"_meta":{`...)
		dst = append(dst, s.meta...)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// isModern is true before the era is known, because the probe is a modern request.
func (s *Session) isModern() bool { return s.agreed().Revision == "" || s.agreed().Modern }

// header is what one request adds on HTTP; nil on stdio. Keys are in Go's canonical form.
func (s *Session) header(method, name string) http.Header {
	if s.http == nil || !s.isModern() {
		return nil // the carrier adds the session of the legacy era itself
	}
	h := make(http.Header, 6)
	h["Mcp-Protocol-Version"] = []string{modernRevisions[0]}
	h["Mcp-Method"] = []string{method}
	if name != "" {
		h["Mcp-Name"] = []string{content.EncodeHeaderValue(name)}
	}
	return h
}
