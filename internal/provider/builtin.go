package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/world"
)

// BuiltIn freezes tools that the gateway has itself (R2.5). Their provider is always READY: there is no connection that could
// end, and no server that could change them. They observe and publish nothing. A definition that is left out for any reason
// is an error.
func BuiltIn(p Profile, definitions [][]byte, now time.Time) (*Catalog, error) {
	own := &inProcess{listing: Listing{Tools: definitions, Pages: 1}}
	gen := Generation{Attachment: builtInSession + "/" + p.Package, Number: 1}
	c, err := Freeze(&p, gen, own.Negotiated(), own.listing)
	if err != nil {
		return nil, fmt.Errorf("built-in tools of %s: %w", p.Package, err)
	}
	if len(c.Tools) != len(definitions) || len(c.Warnings) > 0 {
		return nil, fmt.Errorf("built-in tools of %s: %d of %d are sound: %v", p.Package, len(c.Tools), len(definitions), c.Warnings)
	}
	provider := &Provider{Profile: p, Origin: p.Origin(), builtIn: true, state: Ready, since: now, link: own, catalog: c, gen: gen}
	for _, t := range c.Tools {
		t.Provider, t.Scopes = provider, world.Scopes{}
	}
	return c, nil
}

// inProcess is the link of what is built in: calls of it go over no connection.
type inProcess struct{ listing Listing }

var _ Link = (*inProcess)(nil)

func (*inProcess) Negotiated() Negotiated { return Negotiated{} }

func (l *inProcess) List(context.Context) (Listing, error) { return l.listing, nil }

func (*inProcess) SetTools([]*call.Descriptor) {}

func (*inProcess) Renew(gen Generation, _ []*call.Descriptor) error {
	return fmt.Errorf("generation %s: what is built in has one", gen)
}

func (*inProcess) Changes() uint64 { return 0 }

func (*inProcess) Changed() <-chan struct{} { return nil }

func (*inProcess) Done() <-chan struct{} { return nil }

func (*inProcess) Err() error { return nil }

func (*inProcess) Stats() LinkStats { return LinkStats{} }

func (*inProcess) Close(context.Context) error { return nil }
