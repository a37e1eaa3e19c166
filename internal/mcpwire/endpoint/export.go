package endpoint

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// Revisions of the protocol, newest first, as server/discover tells them.
const revisionModern = "2026-07-28"

var (
	legacyRevisions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
	revisions       = append([]string{revisionModern}, legacyRevisions...)
)

// How long clients may keep what we said (ms). Changes are announced as well.
const (
	listTTL     = "60000"
	discoverTTL = "300000"
)

// maxPageBytes is how much one page of tools/list may hold. Clients that ignore nextCursor see the first page alone, so
// it is far above what ordinary exports need, and below what clients take in one message.
const maxPageBytes = 4 << 20

// export is an [Export] with everything rendered that does not depend on the request.
type export struct {
	Export
	discover  []byte // the result of server/discover
	templates []byte // the array of resources/templates/list; nil: there are no resources
	identity  []byte
	listing   atomic.Pointer[listing]
	hub       hub
	legacy    *legacy
}

// listing is one tool set, rendered. It never changes.
type listing struct {
	tools  map[string]*Tool
	pages  []page
	cursor uint64 // of which set the cursors are
}

// page is one page of tools/list, as a result of either era.
type page struct{ modern, legacy []byte }

func (e *Endpoint) newExport(x Export) (*export, error) {
	x.Tools = slices.Clone(x.Tools)
	l, err := render(e.identity(), x.Tools)
	if err != nil {
		return nil, err
	}
	ex := &export{Export: x, discover: e.renderDiscover(x.Instructions, x.Resources != nil), identity: e.identity()}
	if r := x.Resources; r != nil {
		if e.o.World == nil || r.Read == nil || r.List == nil {
			return nil, errors.New("resources of nothing")
		}
		ex.templates = renderTemplates(r)
	}
	ex.listing.Store(l)
	ex.legacy = e.newLegacy(ex)
	return ex, nil
}

// allows says whether a principal may know of this export.
func (x *export) allows(principal string) bool { return x.Principals == nil || x.Principals[principal] }

// announce tells both eras that the tool set changed.
func (x *export) announce() {
	x.hub.signal()
	x.legacy.toolsChanged()
}

// identity is the _meta member that names this server in the results that are its own.
func (e *Endpoint) identity() []byte {
	info := content.NewObject(nil).String("name", e.o.ServerName).String("version", e.o.ServerVersion).End()
	return content.NewObject(nil).Raw(keyServerInfo, info).End()
}

func (e *Endpoint) renderDiscover(instructions string, resources bool) []byte {
	versions := []byte{'['}
	for i, v := range revisions {
		if i > 0 {
			versions = append(versions, ',')
		}
		versions = content.AppendString(versions, v)
	}
	capabilities := []byte(`{"tools":{"listChanged":true},"logging":{}}`)
	if resources {
		capabilities = []byte(`{"tools":{"listChanged":true},"logging":{},"resources":{"subscribe":true}}`)
	}
	o := content.NewObject(nil).
		String("resultType", "complete").
		Raw("supportedVersions", append(versions, ']')).
		Raw("capabilities", capabilities)
	if instructions != "" {
		o.String("instructions", instructions)
	}
	return o.Raw("ttlMs", []byte(discoverTTL)).String("cacheScope", "private").Raw("_meta", e.identity()).End()
}

// render checks a tool set and writes its pages: each definition byte for byte, with "name" replaced where clients know
// the tool by another one. The order is that of tools, so equal sets give equal bytes (S-069, R10.3).
func render(meta []byte, tools []Tool) (*listing, error) {
	l := &listing{tools: make(map[string]*Tool, len(tools))}
	sum := fnv.New64a()
	var bodies [][]byte // the inside of the tools array of each page
	var body []byte
	for i := range tools {
		t := &tools[i]
		def, err := definition(t)
		if err != nil {
			return nil, err
		}
		if _, taken := l.tools[t.Name]; taken {
			return nil, fmt.Errorf("two tools would be called %q by clients", t.Name)
		}
		// An annotation that breaks the rules is none: clients leave such a tool out (S-042).
		t.mirrored, _ = content.ParamHeaders(t.Descriptor.InputSchema)
		l.tools[t.Name] = t
		if t.Unlisted {
			continue
		}
		_, _ = sum.Write(def) // never fails
		if len(body) > 0 && len(body)+len(def) > maxPageBytes {
			bodies = append(bodies, body)
			body = nil
		}
		if len(body) > 0 {
			body = append(body, ',')
		}
		body = append(body, def...)
	}
	bodies = append(bodies, body)
	l.cursor = sum.Sum64()
	for i, body := range bodies {
		array := append(append([]byte{'['}, body...), ']')
		modern := content.NewObject(nil).String("resultType", "complete").Raw("tools", array)
		old := content.NewObject(nil).Raw("tools", array)
		if i+1 < len(bodies) {
			next := l.cursorOf(i + 1)
			modern.String("nextCursor", next)
			old.String("nextCursor", next)
		}
		modern.Raw("ttlMs", []byte(listTTL)).String("cacheScope", "private").Raw("_meta", meta)
		l.pages = append(l.pages, page{modern: modern.End(), legacy: old.End()})
	}
	return l, nil
}

// definition is the tool object as clients of the export see it, on one line.
func definition(t *Tool) ([]byte, error) {
	if t.Name == "" || t.Descriptor == nil {
		return nil, errors.New("a tool without a name or a descriptor")
	}
	def := jsontext.Value(t.Descriptor.Definition)
	if !def.IsValid() || !content.IsObject(def) {
		return nil, fmt.Errorf("tool %q: its definition is no JSON object", t.Name)
	}
	raw, ok := content.String(content.Member(def, "name"))
	if ok && raw == t.Name {
		return oneLine(def), nil
	}
	return oneLine(content.ReplaceMember(nil, def, "name", content.AppendString(nil, t.Name))), nil
}

// oneLine is b on one line; b itself is not changed.
func oneLine(b []byte) []byte {
	if bytes.IndexByte(b, '\n') < 0 && bytes.IndexByte(b, '\r') < 0 {
		return b
	}
	b = bytes.Clone(b)
	flatten(b)
	return b
}

func (l *listing) cursorOf(page int) string {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 12), l.cursor)
	b = binary.BigEndian.AppendUint32(b, uint32(page)) //nolint:gosec // pages are few
	return base64.RawURLEncoding.EncodeToString(b)
}

// pageAt is the page that a cursor names; ok is false for anything that this very tool set did not hand out. The empty
// cursor names the first page.
func (l *listing) pageAt(cursor string) (p *page, ok bool) {
	if cursor == "" {
		return &l.pages[0], true
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != 12 || binary.BigEndian.Uint64(b) != l.cursor {
		return nil, false
	}
	n := binary.BigEndian.Uint32(b[8:])
	if n == 0 || uint64(n) >= uint64(len(l.pages)) {
		return nil, false
	}
	return &l.pages[n], true
}
