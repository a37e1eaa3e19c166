package ostiary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/config"
	"github.com/ostiary/ostiary/internal/identity"
	"github.com/ostiary/ostiary/internal/mcpwire/endpoint"
	"github.com/ostiary/ostiary/internal/policy"
	"github.com/ostiary/ostiary/internal/provider"
)

// newPolicy turns the providers' policies into the one that the gate asks.
func newPolicy(c *config.Config) (*policy.Policy, error) {
	var packages []string
	var sets []policy.ToolSet
	for _, p := range c.Providers {
		packages = append(packages, p.Profile.Package)
		set := policy.ToolSet{Package: p.Profile.Package, Available: p.Policy.Available, Approval: approval(p.Policy.Approval), Tools: map[string]policy.Override{}}
		for name, t := range p.Policy.Tools {
			set.Tools[name] = policy.Override{Available: &t.Available, Approval: approval(t.Approval)}
		}
		sets = append(sets, set)
	}
	return policy.New(packages, sets)
}

func approval(r config.ApprovalRule) policy.Approval {
	switch r {
	case config.ApprovalNever:
		return policy.ApprovalNever
	case config.ApprovalByEffect:
		return policy.ApprovalByEffect
	default:
		return policy.ApprovalRequired
	}
}

// profiles are the profiles of the providers that this host starts.
func (h *Host) profiles() ([]provider.Profile, error) {
	var out []provider.Profile
	for _, p := range h.o.Config.Providers {
		if len(h.o.Only) == 0 || slices.Contains(h.o.Only, p.Profile.Package) {
			out = append(out, p.Profile)
		}
	}
	for _, pkg := range h.o.Only {
		if _, ok := h.o.Config.Provider(pkg); !ok {
			return nil, fmt.Errorf("there is no provider %s in %s", pkg, h.o.Config.File)
		}
	}
	return out, nil
}

// openEndpoint resolves the exports against the registry and opens them (R2.5). A tool that an export names and that no
// provider offers is an error, unless its provider may be unavailable, and is.
func (h *Host) openEndpoint(guard *identity.Guard) error {
	c := h.o.Config
	var faults []error
	var exports []endpoint.Export
	var infos []ExportInfo
	for _, e := range c.Exports {
		x := endpoint.Export{Name: e.Name, Path: e.Path, Instructions: e.Instructions, Principals: principalsOf(c, e.Name)}
		info := ExportInfo{Name: e.Name, Path: e.Path, Served: exportServed(c, e.Name)}
		for _, t := range e.Tools {
			tool, ok := h.registry.Tool(t.ID)
			switch {
			case ok:
				x.Tools = append(x.Tools, endpoint.Tool{Name: t.Name, Descriptor: tool.Descriptor})
				info.Tools = append(info.Tools, t.Name)
			case h.mayLack(t.ID):
				info.Lacks = append(info.Lacks, string(t.ID))
			default:
				faults = append(faults, fmt.Errorf("export %s: %s does not exist: %s", e.Name, t.ID, h.whyMissing(t.ID)))
			}
		}
		exports, infos = append(exports, x), append(infos, info)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	ep, err := endpoint.New(endpoint.Options{
		ServerName: "ostiary", ServerVersion: Version, Exports: exports, Caller: h.gate, Guard: guard,
		AllowedHosts: c.Server.AllowedHosts, AllowedOrigins: c.Server.AllowedOrigins,
		MaxBody: c.Server.MaxBody, MaxConcurrent: c.Server.MaxConcurrent, MaxSessions: c.Server.MaxSessions, SessionTimeout: c.Server.SessionIdle,
		Logger: h.log, Now: h.o.Now, OnRefused: h.endpointRefused,
	})
	if err != nil {
		return err
	}
	h.endpoint.Store(ep)
	h.mu.Lock()
	h.exports = infos
	h.mu.Unlock()
	return nil
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

// mayLack says whether an export may go without a tool now: its provider is optional and did not start, is blocked, or was
// left out of this host.
func (h *Host) mayLack(id call.ToolID) bool {
	pkg, _, ok := id.Split()
	if !ok {
		return false
	}
	for _, p := range h.providers.Providers() {
		if p.Profile.Package == pkg {
			return p.Catalog() == nil
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
