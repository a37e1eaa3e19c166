package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/mcpwire/transport"
	"github.com/ostiary/ostiary/internal/provider"
)

// The errors by which a server shows that it is modern.
const (
	codeHeaderMismatch      = -32020
	codeMissingCapability   = -32021
	codeUnsupportedRevision = -32022
	codeInternalError       = -32603
	codeMethodNotFound      = -32601
	codeInvalidParams       = -32602
)

// maxProbe is how long a silent server on stdio is taken for one that may still answer (R1.4).
const maxProbe = time.Second

// verdict is what a probe has shown.
type verdict struct {
	modern []byte // the DiscoverResult; nil: it is not modern, or refused
	offer  string // the legacy revision to offer by initialize; "" : do not
	silent bool   // no answer within the time of a probe
	again  bool   // it refused the revision and named it as one that it supports
	err    error  // neither
}

// negotiate agrees on one revision by the rules of R1.2 to R1.5, on this connection and no other.
func (s *Session) negotiate(ctx context.Context) error {
	pin := s.opts.Protocol
	switch {
	case pin == "auto", slices.Contains(modernRevisions, pin):
	case slices.Contains(legacyRevisions, pin):
		return s.initialize(ctx, pin)
	default:
		return &Failure{Err: fmt.Errorf("protocol %q is not known", pin), Ours: allRevisions(),
			Advice: "use auto, " + strings.Join(allRevisions(), ", ")}
	}
	v := s.probe(ctx)
	if v.again {
		// The specification has a client retry with a revision that the server names, and this one names the one that was
		// asked for. Asking has no effect, so it is asked once more.
		if v = s.discover(ctx); v.again {
			v.err = s.noCommon(modernRevisions, "the server refuses the revision that it says it supports")
		}
	}
	switch {
	case v.err != nil:
		return v.err
	case v.modern != nil:
		return s.beModern(v.modern)
	case pin != "auto":
		return s.noCommon(nil, "the server does not speak the one revision that was asked for")
	}
	err := s.initialize(ctx, v.offer)
	if err == nil || !v.silent || ctx.Err() != nil {
		return err
	}
	if _, refused := errors.AsType[*refusedInitialize](err); !refused {
		return err
	}
	// It was silent and now refuses to initialize: it may have been slow to start, not old. It is awake now, so it is
	// asked once more, and has the whole deadline to answer.
	again := s.discover(ctx)
	if again.err == nil && again.modern != nil {
		return s.beModern(again.modern)
	}
	return err
}

// probe asks which era the server belongs to.
func (s *Session) probe(ctx context.Context) verdict {
	if s.http != nil || s.opts.Protocol != "auto" {
		return s.discover(ctx)
	}
	probe, cancel := context.WithTimeout(ctx, min(maxProbe, s.opts.Limits.Connect/3))
	defer cancel()
	v := s.discover(probe)
	if v.err != nil && probe.Err() != nil && ctx.Err() == nil && errors.Is(v.err, probe.Err()) {
		return verdict{offer: legacyRevisions[0], silent: true}
	}
	return v
}

func (s *Session) discover(ctx context.Context) verdict {
	r := &transport.Request{
		ID: s.newID(), Method: "server/discover", Header: s.header("server/discover", ""),
		Params: s.params(nil), OnAnswer: s.discovered,
	}
	resp, err := s.carrier.Do(ctx, r)
	if s.http != nil {
		return s.judgeHTTP(resp, err)
	}
	switch {
	case err != nil:
		if f, ok := errors.AsType[*transport.Fault](err); ok && f.Code == call.CodeProtocolError {
			return verdict{offer: legacyRevisions[0]} // it answered, but nothing that a modern server says
		}
		return verdict{err: err}
	case resp.Error != nil:
		return s.judgeError(resp.Error)
	default:
		return s.judgeResult(resp.Result, true)
	}
}

// judgeHTTP applies R1.5: only 400, 404 and 405 without a recognised modern error lead back to initialize. An MCP server
// that answers with an ordinary JSON-RPC error has said as clearly that it does not know the method.
func (s *Session) judgeHTTP(resp transport.Response, err error) verdict {
	if err == nil && resp.Error == nil {
		return s.judgeResult(resp.Result, false)
	}
	status := resp.HTTPStatus
	rpc := resp.Error
	if err != nil {
		f, ok := errors.AsType[*transport.Fault](err)
		if !ok {
			return verdict{err: err}
		}
		status = f.HTTPStatus
		if frame, perr := content.ParseFrame(f.Body, content.FrameLimits{}); perr == nil && frame.Kind == content.ErrorResponse {
			rpc = frame.Error
		}
	}
	legacyStatus := status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusMethodNotAllowed
	switch {
	case rpc != nil && isModernError(rpc.Code) && (legacyStatus || status == http.StatusOK):
		return s.judgeError(rpc)
	case legacyStatus:
		return verdict{offer: legacyRevisions[0]}
	case err == nil && status == http.StatusOK && rpc.Code != codeInternalError:
		return verdict{offer: legacyRevisions[0]}
	case err != nil:
		return verdict{err: err}
	default:
		return verdict{err: fmt.Errorf("server/discover: HTTP %d, JSON-RPC error %d", status, rpc.Code)}
	}
}

func isModernError(code int64) bool {
	return code == codeHeaderMismatch || code == codeMissingCapability || code == codeUnsupportedRevision
}

// judgeError: a recognised modern error never leads back to initialize by itself. A server that lists what it supports
// instead is taken at its word.
func (s *Session) judgeError(e *call.ProviderError) verdict {
	if !isModernError(e.Code) {
		return verdict{offer: legacyRevisions[0]}
	}
	if e.Code != codeUnsupportedRevision {
		return verdict{err: &Failure{Err: fmt.Errorf("the server is modern and refuses server/discover with error %d", e.Code),
			Advice: "report this to the server's author"}}
	}
	theirs, _ := revisionList(content.Member(e.Data, "supported"))
	if slices.Contains(theirs, modernRevisions[0]) {
		return verdict{again: true}
	}
	return s.chooseLegacy(theirs, "the server does not support the revision that was offered")
}

// judgeResult reads a DiscoverResult. A server may answer it and not list a modern revision.
func (s *Session) judgeResult(result []byte, stdio bool) verdict {
	theirs, ok := revisionList(content.Member(result, "supportedVersions"))
	if !ok {
		if stdio {
			return verdict{offer: legacyRevisions[0]} // no DiscoverResult, so not modern (R1.4)
		}
		return verdict{err: &Failure{Err: errors.New("the result of server/discover has no supportedVersions"),
			Advice: `if the server only speaks an older revision, set protocol = "2025-11-25"`}}
	}
	if slices.Contains(theirs, modernRevisions[0]) {
		return verdict{modern: result}
	}
	return s.chooseLegacy(theirs, "no revision is common to both sides")
}

func (s *Session) chooseLegacy(theirs []string, why string) verdict {
	if s.opts.Protocol == "auto" {
		for _, ours := range legacyRevisions {
			if slices.Contains(theirs, ours) {
				return verdict{offer: ours}
			}
		}
	}
	return verdict{err: s.noCommon(theirs, why)}
}

// noCommon names both sides' revisions (R1.5).
func (s *Session) noCommon(theirs []string, why string) error {
	ours := allRevisions()
	if s.opts.Protocol != "auto" {
		ours = []string{s.opts.Protocol}
	}
	said := "none that it named"
	if len(theirs) > 0 {
		said = strings.Join(theirs, ", ")
	}
	f := &Failure{
		Ours: ours, Theirs: theirs,
		Err: fmt.Errorf("%s: ours %s; the server's %s", why, strings.Join(ours, ", "), said),
	}
	if s.opts.Protocol != "auto" {
		f.Advice = `set protocol = "auto", or a revision that the server speaks`
	}
	return f
}

// revisionList reads an array of strings and bounds what it keeps of a peer's words.
func revisionList(raw []byte) (list []string, ok bool) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	for e := range content.Elements(raw) {
		v, isString := content.String(e)
		if !isString {
			return nil, false
		}
		if len(list) < 32 {
			list = append(list, printable(v, 32))
		}
	}
	return list, true
}

func printable(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// beModern takes over what the server said of itself. Its name is for display alone (R1.6).
func (s *Session) beModern(result []byte) error {
	caps := content.Member(result, "capabilities")
	if caps != nil && !content.IsObject(caps) {
		return &Failure{Err: errors.New("the server's capabilities are not an object")}
	}
	info := content.Member(content.Member(result, "_meta"), "io.modelcontextprotocol/serverInfo")
	s.agree(modernRevisions[0], true, caps, info, content.Member(result, "instructions"))
	return nil
}

func (s *Session) agree(revision string, modern bool, caps, info, instructions []byte) {
	n := provider.Negotiated{Revision: revision, Modern: modern, Capabilities: caps}
	n.ServerName, _ = content.String(content.Member(info, "name"))
	n.ServerVersion, _ = content.String(content.Member(info, "version"))
	n.Instructions, _ = content.String(instructions)
	n.ToolChanges = string(content.Member(content.Member(caps, "tools"), "listChanged")) == "true"
	if n.Capabilities == nil {
		n.Capabilities = []byte("{}")
	}
	s.logging = content.IsObject(content.Member(caps, "logging"))
	n.ToolContract = s.opts.ToolContract && holdsV1(caps, toolContract)
	n.WorldEvents = s.eventsHold(modern, caps)
	s.negotiated.Store(&n)
	s.eventsAgreed(n.WorldEvents)
}

// toolContract names the extension; both sides' settings must be strictly {"version": 1} (R4.1).
const toolContract = content.ToolContract

// holdsV1 says whether capabilities, as their sender wrote them, hold exactly the settings {"version": 1} of an extension.
// Another way to write the number is another value here, whatever a decoder would make of it.
func holdsV1(caps []byte, extension string) bool {
	n, version := 0, false
	for k, v := range content.Members(content.Member(content.Member(caps, "extensions"), extension)) {
		n++
		version = k == "version" && string(v) == "1"
	}
	return n == 1 && version
}
