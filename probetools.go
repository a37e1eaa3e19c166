package ostiary

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/world"
)

// The extensions that the gateway knows.
const (
	toolContract = content.ToolContract
	worldEvents  = content.WorldEvents
)

// What of a server is looked at.
const (
	maxProbedExtensions = 64
	maxProbeFindings    = 200
)

// extensions says what is offered, and what of it holds.
func (p *probe) extensions(ctx context.Context) {
	for _, r := range p.Revisions {
		n := 0
		for name, settings := range content.Members(content.Member(r.Capabilities, "extensions")) {
			if n++; n > maxProbedExtensions {
				p.fault("revision "+r.Revision, "offer fewer", "more than %d extensions: the others are not looked at", maxProbedExtensions)
				break
			}
			if ctx.Err() != nil {
				return
			}
			e := p.extension(name)
			if e == nil && len(p.Extensions) == maxProbedExtensions {
				continue
			}
			if e == nil {
				p.Extensions = append(p.Extensions, ProbedExtension{Name: name, Settings: json.RawMessage(settings), Revisions: []string{}, Negotiated: []string{}})
				e = &p.Extensions[len(p.Extensions)-1]
			} else if !bytes.Equal(e.Settings, settings) {
				p.warn("extension "+name, "", "its settings are others in %s: %s", r.Revision, cut(settings))
			}
			e.Revisions = append(e.Revisions, r.Revision)
			reason := whyNot(name, settings, r.Revision, p.Transport)
			if reason == "" {
				e.Negotiated = append(e.Negotiated, r.Revision)
			} else {
				e.Reason = reason
			}
		}
	}
	for i := range p.Extensions {
		e := &p.Extensions[i]
		switch strict := strictV1(e.Settings); {
		case e.Name != toolContract && e.Name != worldEvents:
		case strict != "":
			p.fault("extension "+e.Name, `offer exactly {"version": 1}`, "it never holds: %s", strict)
		case len(e.Negotiated) == 0:
			p.warn("extension "+e.Name, "", "it never holds: %s", e.Reason)
		case e.Name == worldEvents:
			e.Reason = "where a provider has them switched on"
		default:
			e.Reason = ""
		}
	}
}

func (p *probe) extension(name string) *ProbedExtension {
	for i := range p.Extensions {
		if p.Extensions[i].Name == name {
			return &p.Extensions[i]
		}
	}
	return nil
}

// whyNot says why an extension does not hold; "" if it does.
func whyNot(name string, settings []byte, revision, transport string) string {
	switch {
	case name != toolContract && name != worldEvents:
		return "the gateway does not know it"
	case strictV1(settings) != "":
		return strictV1(settings)
	case name == worldEvents && transport == "http":
		return "events do not exist over HTTP"
	case name == worldEvents && revision != "2026-07-28":
		return "events need 2026-07-28"
	}
	return ""
}

// strictV1 says in which way settings are not strictly {"version": 1} (R4.1); "" if they are.
func strictV1(settings []byte) string {
	if !content.IsObject(settings) {
		return fmt.Sprintf("its settings are %s, no object", cut(settings))
	}
	n, version := 0, []byte(nil)
	for k, v := range content.Members(settings) {
		if n++; k == "version" {
			version = v
		}
	}
	switch {
	case version == nil:
		return "its settings have no version"
	case string(version) != "1":
		return fmt.Sprintf("its version is %s, not 1", cut(version))
	case n > 1:
		return "its settings have more in them than the version"
	}
	return ""
}

func cut(raw []byte) string {
	if len(raw) > 80 {
		return string(raw[:80]) + "…"
	}
	return string(raw)
}

// tools looks at each tool once, as it is in the first revision that lists it.
func (p *probe) tools(ctx context.Context) {
	first := map[string]probedDefinition{}
	where := map[string]string{}          // the revision of first
	lists := map[string]map[string]bool{} // the names that each revision lists
	var order []string
	var listed []ProbedRevision
	for _, r := range p.Revisions {
		if r.Pages == 0 {
			continue
		}
		listed = append(listed, r)
		here := map[string]bool{}
		lists[r.Revision] = here
		for _, d := range r.tools {
			switch before, known := first[d.name]; {
			case here[d.name]:
				p.fault("tool "+d.name, "give each tool a name of its own", "it is listed twice in %s", r.Revision)
			case !known:
				first[d.name], where[d.name] = d, r.Revision
				order = append(order, d.name)
			case before.left == "" && d.left == "" && !bytes.Equal(before.raw, d.raw):
				p.warn("tool "+d.name, "", "its definition in %s is another one than in %s", r.Revision, where[d.name])
			case before.left != "" && d.left == "": // the other transport's rules do not hide it
				first[d.name] = probedDefinition{name: d.name, raw: d.raw, left: before.left}
			}
			here[d.name] = true
		}
	}
	for _, name := range order {
		if ctx.Err() != nil {
			return
		}
		for _, r := range listed {
			if !lists[r.Revision][name] {
				p.warn("tool "+name, "", "it is not listed in %s", r.Revision)
			}
		}
		p.Tools = append(p.Tools, p.tool(ctx, first[name]))
	}
	for _, r := range listed {
		if f := p.screenText(ctx, r.said); f != "" {
			p.warn("instructions", "", "screening finds %s", f)
			break
		}
	}
}

func (p *probe) tool(ctx context.Context, d probedDefinition) ProbedTool {
	text := func(object []byte, key string) string {
		s, _ := content.String(content.Member(object, key))
		return s
	}
	t := ProbedTool{Name: d.name, Title: text(d.raw, "title"), Observe: []string{}, Publish: []string{}}
	t.ReadOnly = string(content.Member(content.Member(d.raw, "annotations"), "readOnlyHint")) == "true"
	at := "tool " + d.name
	switch err := call.CheckToolName(d.name); {
	case d.name == "":
		p.fault("a tool", "name it", "it has no name")
	case err != nil:
		p.warn(at, "choose another name", "%v: it can only be used by an alias", err)
	}
	if d.left != "" {
		p.fault(at, "", "it is left out: %s", d.left)
	}
	if d.raw == nil {
		return t
	}
	input := content.Member(d.raw, "inputSchema")
	if _, err := provider.CompileSchema(input); err != nil {
		p.fault(at, "", "%v", err)
	}
	if out := content.Member(d.raw, "outputSchema"); out != nil {
		if _, err := provider.CompileOutputSchema(out); err != nil {
			p.warn(at, "", "%v: results are not held against it", err)
		}
	}
	if _, err := content.ParamHeaders(input); err != nil && d.left == "" {
		p.fault(at, "", "over HTTP it would be left out: %v", err)
	}
	for _, f := range p.engine.ScreenDefinition(ctx, d.raw, d.name, nil) {
		p.fault(at, "an operator has to look at it before it is admitted", "screening finds %s at %s: %s", f.Code, place(f), f.Excerpt)
	}
	p.scopes(at, d.raw, input, &t)
	return t
}

func place(f firewall.Finding) string {
	if f.Place == "" {
		return "the whole"
	}
	return f.Place
}

// scopes are what the gateway would hold calls of the tool to.
func (p *probe) scopes(at string, raw, input []byte, t *ProbedTool) {
	e := p.extension(toolContract)
	holds := e != nil && len(e.Negotiated) > 0
	declared := content.Member(content.Member(raw, "_meta"), toolContract) != nil
	if declared && e == nil {
		p.warn(at, "offer the extension "+toolContract, "it declares scopes that mean nothing: the server does not offer the contract")
	}
	scopes, err := provider.ScopesOf(probedPackage, raw, holds || declared)
	switch {
	case errors.Is(err, world.ErrForeignPublish): // perhaps the name that the server will have: it is not known here
		p.warn(at, "leave publish out: the default is the server's own scope", "scopes: %v, so it starts only if that is its own name", err)
		return
	case err != nil:
		p.fault(at, "", "scopes: %v", err)
		return
	}
	if !holds {
		scopes, _ = provider.ScopesOf(probedPackage, raw, false) // the default, which cannot fail
	}
	required := map[string]bool{}
	for e := range content.Elements(content.Member(input, "required")) {
		s, _ := content.String(e)
		required[s] = true
	}
	for _, o := range scopes.Observe {
		t.Observe = append(t.Observe, o.String())
	}
	for _, o := range scopes.Publish {
		t.Publish = append(t.Publish, o.String())
	}
	var optional []string
	for _, o := range slices.Concat(scopes.Observe, scopes.Publish) {
		for _, name := range o.Properties() {
			if !required[name] && !slices.Contains(optional, name) {
				optional = append(optional, name)
			}
		}
	}
	if len(optional) > 0 {
		p.warn(at, "require it in the input schema", "its scopes need %s, which the input schema lets be left out: such a call is refused", strings.Join(optional, ", "))
	}
}

// screenText is the first thing that screening finds in a text; "" if there is nothing.
func (p *probe) screenText(ctx context.Context, text string) string {
	if text == "" {
		return ""
	}
	for _, f := range p.engine.ScreenText(ctx, []byte(text), firewall.Rules{}).Findings {
		if f.Code.Info().Result != firewall.Accept {
			return fmt.Sprintf("%s: %s", f.Code, f.Excerpt)
		}
	}
	return ""
}
