package ostiary

import (
	"context"
	"fmt"
	"maps"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/admission"
	"github.com/ostiary/ostiary/internal/builtin"
	"github.com/ostiary/ostiary/internal/gate"
	"github.com/ostiary/ostiary/internal/ledger"
	"github.com/ostiary/ostiary/internal/mcpwire/endpoint"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/store"
	"github.com/ostiary/ostiary/internal/world"
)

// builtIns are the tools of the gateway's own, and how calls of them are answered (R2.5, R5.7). Calls of all others go on to
// their providers.
type builtIns struct {
	catalog *provider.Catalog
	answers builtin.Answers
	others  gate.Upstream
}

var _ gate.Upstream = (*builtIns)(nil)

// newBuiltIns makes them a part of the registry, and known to the book that says what is admitted.
func (h *Host) newBuiltIns() (*builtIns, error) {
	c, err := builtin.Catalog(h.o.Now())
	if err != nil {
		return nil, err
	}
	if err := h.registry.Include(c); err != nil {
		return nil, err
	}
	h.admitted.book.Vouch(descriptorsOf(c)...)
	b := &builtIns{catalog: c, others: h.upstreams}
	b.answers = builtin.Answers{View: h.viewWorld, Readable: h.readable}
	return b, nil
}

// Call implements [gate.Upstream].
func (b *builtIns) Call(ctx context.Context, c gate.Cleared) call.Answer {
	if t := c.Tool(); t != nil && t.Package == call.WorldPackage {
		return b.answers.Answer(ctx, t.ID, c.Export(), c.Arguments())
	}
	return b.others.Call(ctx, c)
}

func (h *Host) viewWorld(ctx context.Context, fn func(world.View) error) error {
	return h.store.View(ctx, func(v store.View) error { return fn(v) })
}

// readable are the scopes of the world that may be read through an export. The operator reads all.
func (h *Host) readable(export string) world.Readable {
	if export == "" {
		return world.Readable{"*"}
	}
	e, _ := h.o.Config.Export(export)
	return e.World
}

// resources are what an export shows of the world; nil if it shows nothing.
func (b *builtIns) resources(r world.Readable) *endpoint.Resources {
	if len(r) == 0 {
		return nil
	}
	var read *call.Descriptor
	for _, t := range b.catalog.Tools {
		if t.ID == builtin.Read {
			read = t.Descriptor
		}
	}
	return &endpoint.Resources{Read: read, Readable: r, List: func(ctx context.Context, after call.Scope, limit int) (scopes []call.Scope, err error) {
		err = b.answers.View(ctx, func(v world.View) error {
			scopes = nil
			return world.HeadsIn(v, r, after, limit, func(s call.Scope, _ int64) error {
				scopes = append(scopes, s)
				return nil
			})
		})
		return scopes, err
	}}
}

// worldHeads tells subscriptions of a host's world.
type worldHeads struct{ h *Host }

var _ endpoint.World = worldHeads{}

func (w worldHeads) Heads(ctx context.Context, scopes []call.Scope) (call.Frontier, error) {
	return w.h.WorldHead(ctx, scopes)
}

func (w worldHeads) Watch(ctx context.Context) <-chan struct{} { return w.h.store.Watch(ctx) }

// byBuild is the decider of what was admitted by being a part of the program.
const byBuild = "built_in"

// recordBuiltIns has the ledger say which definitions this build has, unless the last build had the same: a call of them is
// rebuilt with it (R9.1).
func (h *Host) recordBuiltIns(ctx context.Context) error {
	now, known := map[string]string{}, map[string]string{}
	for _, t := range h.builtIns.catalog.Tools {
		now[t.RawName] = t.DescriptorDigest.String()
	}
	err := h.store.View(ctx, func(v store.View) error {
		return v.RecordsOfKind(ledger.KindAdmission, func(r ledger.Record) error {
			if pkg, definitions := ledger.Admitted(&r); pkg == call.WorldPackage {
				known = definitions
			}
			return nil
		})
	})
	if err == nil && !maps.Equal(now, known) {
		err = h.record(ctx, ledger.KindAdmission, map[string]any{"provider": call.WorldPackage, "state": admission.Admitted.String(), "decider": byBuild, "definitions": now})
	}
	if err != nil {
		return fmt.Errorf("record the built-in tools: %w", err)
	}
	return nil
}
