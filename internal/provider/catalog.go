package provider

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/drift"
	"github.com/ostiary/ostiary/internal/world"
)

// maxWarnings bounds what one catalog says about odd tools; Counts go on counting.
const maxWarnings = 100

// Catalog is what one generation of a provider offers, frozen: it never changes (R2.6).
type Catalog struct {
	Generation Generation
	Negotiated Negotiated
	Tools      []*Tool // the allowed and sound ones, in the server's order
	Counts     Counts
	Warnings   []ToolWarning // for operators, never for callers (R6.3)
	Digest     call.Digest   // over all descriptor digests and the instructions

	// seen has every listed tool by raw name: its definition if it is in Tools, nil otherwise. For comparing with later
	// listings.
	seen map[string][]byte
}

// Counts are the numbers of a listing (R6.3).
type Counts struct {
	Offered    int   `json:"offered"`
	Allowed    int   `json:"allowed"`
	NotAllowed int   `json:"not_allowed"`
	LeftOut    int   `json:"left_out"` // allowed, but not usable; see the warnings
	Bytes      int64 `json:"bytes"`
	Pages      int   `json:"pages"`
}

// Tool is a frozen tool with what is needed to let a call of it through.
type Tool struct {
	*call.Descriptor
	Schema   *Schema
	Output   *Schema      // of structuredContent; nil: the tool has none, or none that can be checked
	Revision string       // of MCP, as the tool's connection negotiated it
	Expected call.Digest  // the schema digest that it must have; zero: none was given
	Scopes   world.Scopes // what calls of it observe and publish
	Provider *Provider
}

// Freeze checks a listing against the profile and makes a catalog of it. An allowed tool that could not be addressed, or
// whose input schema is not of an object, fails the whole start (R2.3), as does one with scopes that cannot be (R4.3); one whose schema cannot be checked within bounds
// is left out with a warning (S-012, S-014, S-016); one that is not allowed is only counted (R6.3).
func Freeze(p *Profile, gen Generation, n Negotiated, listing Listing) (*Catalog, error) {
	c := &Catalog{Generation: gen, Negotiated: n, Warnings: slices.Clone(listing.Warnings), seen: make(map[string][]byte, len(listing.Tools))}
	c.Counts = Counts{Offered: len(listing.Tools), Bytes: listing.Bytes, Pages: listing.Pages, LeftOut: len(listing.Warnings)}
	allowed := make(map[string]AllowedTool, len(p.AllowedTools))
	for _, a := range p.AllowedTools {
		allowed[a.Raw] = a
	}
	var faults []error
	ids := map[call.ToolID]bool{}
	for _, raw := range listing.Tools {
		d, err := readDefinition(raw)
		if err != nil {
			c.warn("", "definition cannot be read: "+err.Error())
			continue
		}
		a, ok := allowed[d.RawName]
		if !ok {
			c.Counts.NotAllowed++
			c.seen[d.RawName] = nil
			continue
		}
		d.Package, d.Name, d.Effect = p.Package, a.Name(), p.Effects[a.Name()]
		d.ID = call.NewToolID(p.Package, d.Name)
		if err := call.CheckToolName(d.Name); err != nil {
			faults = append(faults, fmt.Errorf("tool %q: %w; give it an alias: { name = %q, as = \"…\" }", clip(d.RawName, 80), err, clip(d.RawName, 80)))
			continue
		}
		if ids[d.ID] {
			faults = append(faults, fmt.Errorf("tool %q: the server lists two tools for the id %s", d.RawName, d.ID))
			continue
		}
		ids[d.ID] = true
		c.seen[d.RawName] = d.Definition
		c.Tools = append(c.Tools, &Tool{Descriptor: d, Expected: p.ExpectedDigests[d.Name], Revision: n.Revision})
	}
	faults = append(faults, c.compile()...)
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	c.Counts.Allowed = len(c.Tools)
	for _, a := range p.AllowedTools {
		if _, ok := c.seen[a.Raw]; !ok && !slices.ContainsFunc(c.Warnings, func(w ToolWarning) bool { return w.Tool == a.Raw }) {
			c.warn(a.Raw, "allowed, but the server does not offer it")
		}
	}
	return c, c.digest()
}

// compile reads all schemas and takes the digests, on all processors: it is most of the work of a start.
func (c *Catalog) compile() (faults []error) {
	errs := make([]error, len(c.Tools))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, t := range c.Tools {
		g.Go(func() error {
			errs[i] = t.freeze(c.Negotiated.ToolContract)
			return nil
		})
	}
	_ = g.Wait() // the functions never fail: errs has what they found
	sound := c.Tools[:0]
	for i, t := range c.Tools {
		switch err := errs[i]; {
		case err == nil:
			sound = append(sound, t)
			if t.OutputSchema != nil {
				if t.Output, err = CompileOutputSchema(t.OutputSchema); err != nil {
					c.warn(t.RawName, err.Error()+"; results are not held against it")
				}
			}
		case isFatal(err):
			faults = append(faults, fmt.Errorf("tool %q: %w", t.RawName, err))
		default:
			c.seen[t.RawName] = nil
			c.warn(t.RawName, err.Error())
			c.Counts.LeftOut++
		}
	}
	c.Tools = sound
	return faults
}

// fatalSchema marks what R2.3 and R4.3 let fail the start, not only the tool.
type fatalSchema struct{ error }

func isFatal(err error) bool {
	_, ok := errors.AsType[fatalSchema](err)
	return ok
}

func (t *Tool) freeze(contract bool) (err error) {
	if t.SchemaDigest, err = drift.Digest(orNull(t.InputSchema)); err != nil {
		return err
	}
	if t.DescriptorDigest, err = drift.Digest(t.Definition); err != nil {
		return err
	}
	if t.Schema, err = CompileSchema(t.InputSchema); err != nil {
		return err
	}
	if t.Scopes, err = ScopesOf(t.Package, t.Definition, contract); err != nil {
		return fatalSchema{err}
	}
	return nil
}

func orNull(raw []byte) []byte {
	if raw == nil {
		return []byte("null")
	}
	return raw
}

// digest covers everything that a model would read of the catalog, in a fixed order.
func (c *Catalog) digest() error {
	e := new(bytes.Buffer)
	enc := jsontext.NewEncoder(e)
	fail := enc.WriteToken(jsontext.BeginArray)
	fail = errors.Join(fail, enc.WriteToken(jsontext.String(c.Negotiated.Instructions)))
	tools := slices.Clone(c.Tools)
	slices.SortFunc(tools, func(a, b *Tool) int { return bytes.Compare([]byte(a.ID), []byte(b.ID)) })
	for _, t := range tools {
		fail = errors.Join(fail, enc.WriteToken(jsontext.String(string(t.ID))), enc.WriteToken(jsontext.String(t.DescriptorDigest.String())))
	}
	if fail = errors.Join(fail, enc.WriteToken(jsontext.EndArray)); fail != nil {
		return fmt.Errorf("digest catalog: %w", fail)
	}
	var err error
	c.Digest, err = drift.Digest(e.Bytes())
	return err
}

func (c *Catalog) warn(tool, reason string) {
	if len(c.Warnings) < maxWarnings {
		c.Warnings = append(c.Warnings, ToolWarning{Tool: clip(tool, 120), Reason: clip(reason, 300)})
	}
}

// Read is the descriptor of an allowed tool as p has it, of a definition that was kept: for showing it, not for calls.
func Read(p *Profile, definition []byte) (*call.Descriptor, error) {
	d, err := readDefinition(definition)
	if err != nil {
		return nil, fmt.Errorf("read a kept definition of %s: %w", p.Package, err)
	}
	for _, a := range p.AllowedTools {
		if a.Raw == d.RawName {
			d.Package, d.Name, d.Effect = p.Package, a.Name(), p.Effects[a.Name()]
			d.ID = call.NewToolID(p.Package, d.Name)
			return d, nil
		}
	}
	return nil, fmt.Errorf("read a kept definition of %s: tool %q is not allowed", p.Package, clip(d.RawName, 80))
}

// Diff compares the frozen catalog with a later listing (R2.6). Tools that are not allowed count only when they come or go.
func (c *Catalog) Diff(p *Profile, later Listing) []drift.Change {
	allowed := make(map[string]bool, len(p.AllowedTools))
	for _, a := range p.AllowedTools {
		allowed[a.Raw] = true
	}
	now := make(map[string][]byte, len(later.Tools))
	for _, raw := range later.Tools {
		d, err := readDefinition(raw)
		if err != nil {
			continue
		}
		if def, listed := c.seen[d.RawName]; allowed[d.RawName] && (!listed || def != nil) {
			now[d.RawName] = d.Definition
		} else {
			now[d.RawName] = nil
		}
	}
	return drift.Diff(c.seen, now)
}

// readDefinition reads what the runtime needs of a tool object. The bytes of its parts are parts of raw.
func readDefinition(raw []byte) (*call.Descriptor, error) {
	d := &call.Descriptor{Definition: raw}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if t, err := dec.ReadToken(); err != nil {
		return nil, err
	} else if t.Kind() != '{' {
		return nil, errors.New("not an object")
	}
	named := false
	for dec.PeekKind() == '"' {
		t, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := t.String()
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		switch end := dec.InputOffset(); key {
		case "name":
			if v.Kind() != '"' {
				return nil, errors.New("name is not a string")
			}
			d.RawName, named = unquote(v), true
		case "title":
			d.Title = unquote(v)
		case "description":
			d.Description = unquote(v)
		case "inputSchema":
			d.InputSchema = raw[end-int64(len(v)) : end : end]
		case "outputSchema":
			d.OutputSchema = raw[end-int64(len(v)) : end : end]
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	if !named {
		return nil, errors.New("it has no name")
	}
	return d, nil
}

// unquote reads a JSON string; anything else is "".
func unquote(v jsontext.Value) string {
	if v.Kind() != '"' {
		return ""
	}
	s, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return ""
	}
	return string(s)
}
