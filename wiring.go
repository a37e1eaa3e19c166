package ostiary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/admission"
	"github.com/ostiary/ostiary/internal/config"
	"github.com/ostiary/ostiary/internal/identity"
	"github.com/ostiary/ostiary/internal/mcpwire/endpoint"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/vault"
)

// profiles are the profiles of the providers that this host starts.
func (h *Host) profiles() ([]provider.Profile, error) {
	var out []provider.Profile
	if h.o.Offline {
		return nil, nil
	}
	for _, p := range h.o.Config.Providers {
		if len(h.o.Only) == 0 || slices.Contains(h.o.Only, p.Profile.Package) {
			out = append(out, withCredential(h.secret, p))
		}
	}
	for _, pkg := range h.o.Only {
		if _, ok := h.o.Config.Provider(pkg); !ok && pkg != call.WorldPackage {
			return nil, fmt.Errorf("there is no provider %s in %s", pkg, h.o.Config.File)
		}
	}
	return out, nil
}

// secret reads the vault of the data directory.
func (h *Host) secret(ctx context.Context, name string) (vault.Secret, error) {
	return h.vault.Get(ctx, name)
}

// withCredential is a provider's profile with its bearer token out of the vault, if that is where it is. The vault is asked
// when the token is needed: while it is locked, this provider alone is down (F-11).
func withCredential(secret func(context.Context, string) (vault.Secret, error), p config.Provider) provider.Profile {
	profile := p.Profile
	if p.CredentialEntry == "" || profile.HTTP == nil {
		return profile
	}
	remote := *profile.HTTP
	remote.Credential = func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), profile.Limits.Connect) // asked for where there is no context
		defer cancel()
		token, err := secret(ctx, p.CredentialEntry)
		if err != nil {
			return "", fmt.Errorf("credential %s: %w", p.CredentialEntry, err)
		}
		return token.Reveal(), nil
	}
	profile.HTTP = &remote
	return profile
}

// openEndpoint resolves the exports against the registry and opens them (R2.5). A tool that an export names and that no
// provider offers is an error, unless its provider may be unavailable, and is.
func (h *Host) openEndpoint(guard *identity.Guard) error {
	h.admitted.mu.Lock() // nothing is admitted between rendering the lists and the first change of them
	defer h.admitted.mu.Unlock()
	c := h.o.Config
	var faults []error
	var exports []endpoint.Export
	var infos []ExportInfo
	shown := map[string][]endpoint.Tool{}
	for _, e := range c.Exports {
		x := endpoint.Export{Name: e.Name, Path: e.Path, Instructions: e.Instructions, Principals: principalsOf(c, e.Name)}
		info := ExportInfo{Name: e.Name, Path: e.Path, Served: exportServed(c, e.Name)}
		for _, t := range e.Tools {
			if _, ok := h.registry.Tool(t.ID); !ok && !h.mayLack(t.ID) {
				faults = append(faults, fmt.Errorf("export %s: %s does not exist: %s", e.Name, t.ID, h.whyMissing(t.ID)))
			}
		}
		x.Tools, info.Tools, info.Lacks = h.exported(e)
		x.Resources = h.builtIns.resources(e.World)
		exports, infos = append(exports, x), append(infos, info)
		shown[e.Name] = x.Tools
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	ep, err := endpoint.New(endpoint.Options{
		ServerName: "ostiary", ServerVersion: Version, Exports: exports, Caller: h.gate, World: worldHeads{h}, Guard: guard,
		AllowedHosts: c.Server.AllowedHosts, AllowedOrigins: c.Server.AllowedOrigins,
		MaxBody: c.Server.MaxBody, MaxConcurrent: c.Server.MaxConcurrent, MaxSessions: c.Server.MaxSessions, SessionTimeout: c.Server.SessionIdle,
		Logger: h.log, Now: h.o.Now, OnRefused: h.endpointRefused,
	})
	if err != nil {
		return err
	}
	h.endpoint.Store(ep)
	h.mu.Lock()
	h.exports, h.shown = infos, shown
	h.mu.Unlock()
	return nil
}

// exported lists what an export takes calls of now: the tools that were admitted, each by the definition that was admitted,
// whatever its server says of it meanwhile (R6.6). One that its server does not list any more is not shown, and a call of it
// has the list read again.
func (h *Host) exported(e config.Export) (tools []endpoint.Tool, names, lacks []string) {
	for _, t := range e.Tools {
		tool, ok := h.registry.Tool(t.ID)
		var shown *call.Descriptor
		gone := ok && tool.Provider.Gone(tool.RawName)
		if ok {
			shown = h.shownTool(tool)
		}
		if shown != nil {
			tools = append(tools, endpoint.Tool{Name: t.Name, Descriptor: shown, Unlisted: gone})
		}
		if shown == nil || gone {
			lacks = append(lacks, string(t.ID))
			continue
		}
		names = append(names, t.Name)
	}
	return tools, names, lacks
}

// shownTool is the admitted definition of a tool; nil if there is none.
func (h *Host) shownTool(t *provider.Tool) *call.Descriptor {
	if t.Package == call.WorldPackage { // it was compiled in: there is no pin
		return t.Descriptor
	}
	if _, ok := h.admitted.pins[admission.Key{Provider: t.Package}]; !ok {
		return nil
	}
	pin, ok := h.admitted.pins[admission.Key{Provider: t.Package, RawName: t.RawName}]
	if !ok {
		return nil
	}
	if pin.DescriptorDigest == t.DescriptorDigest {
		return t.Descriptor
	}
	d, err := provider.Read(&t.Provider.Profile, pin.Definition)
	if err != nil {
		h.log.Error("read an admitted definition", "tool", t.ID, "err", err)
		return nil
	}
	return d
}

// refreshExports shows clients what is admitted now, and tells those of an export that has changed.
func (h *Host) refreshExports() error {
	ep := h.endpoint.Load()
	if ep == nil {
		return nil
	}
	var errs []error
	for i, e := range h.o.Config.Exports {
		tools, names, lacks := h.exported(e)
		h.mu.Lock()
		h.exports[i].Tools, h.exports[i].Lacks = names, lacks
		same := slices.EqualFunc(h.shown[e.Name], tools, func(a, b endpoint.Tool) bool {
			return a.Name == b.Name && a.Unlisted == b.Unlisted && bytes.Equal(a.Descriptor.Definition, b.Descriptor.Definition)
		})
		h.shown[e.Name] = tools
		h.mu.Unlock()
		if !same {
			errs = append(errs, ep.SetTools(e.Name, tools))
		}
	}
	return errors.Join(errs...)
}

// principalsOf lists who may use an export; nil: everyone.
func principalsOf(c *config.Config, export string) map[string]bool {
	m := map[string]bool{overStdio.ID: true}
	all := true
	for _, p := range c.Principals {
		if len(p.Exports) == 0 || slices.Contains(p.Exports, export) {
			m[p.Name] = true
		} else {
			all = false
		}
	}
	if all {
		return nil
	}
	return m
}

// mayLack says whether an export may go without a tool now: its provider is optional, whether it did not start or does not
// offer the tool (one server must not keep the others from being used by what it lists), is blocked, or was left out of this
// host. Which tools there could be at all, the configuration was checked for.
func (h *Host) mayLack(id call.ToolID) bool {
	pkg, _, ok := id.Split()
	if !ok {
		return false
	}
	for _, p := range h.providers.Providers() {
		if p.Profile.Package == pkg {
			return p.Catalog() == nil || !p.Profile.Required
		}
	}
	return len(h.o.Only) > 0
}

func (h *Host) whyMissing(id call.ToolID) string {
	pkg, name, _ := id.Split()
	for _, p := range h.providers.Providers() {
		if p.Profile.Package != pkg {
			continue
		}
		raw := name
		for _, a := range p.Profile.AllowedTools {
			if a.Name() == name {
				raw = a.Raw
			}
		}
		if c := p.Catalog(); c != nil {
			for _, w := range c.Warnings {
				if w.Tool == raw {
					return w.Reason
				}
			}
		}
		return "the provider does not offer it"
	}
	return "there is no such provider"
}

// ServeStdio serves one export over a pipe until in ends or ctx does (R10.6). Whoever can start the
// process is let in.
func (h *Host) ServeStdio(ctx context.Context, export string, in io.Reader, out io.Writer) error {
	ep := h.endpoint.Load()
	if ep == nil {
		return errors.New("serve stdio: the gateway has not started")
	}
	if _, ok := h.o.Config.Export(export); !ok {
		return fmt.Errorf("serve stdio: there is no export %s in %s", export, h.o.Config.File)
	}
	return ep.ServeStdio(ctx, export, overStdio, in, out)
}
