package provider

import (
	"fmt"
	"time"

	"github.com/ostiary/ostiary/internal/world"
)

// BuiltIn freezes tools that the gateway has itself (R2.5). Their provider is always READY: there is no connection that could
// end, and no server that could change them. They observe and publish nothing. A definition that is left out for any reason
// is an error.
func BuiltIn(p Profile, definitions [][]byte, now time.Time) (*Catalog, error) {
	gen := Generation{Attachment: builtInSession + "/" + p.Package, Number: 1}
	c, err := Freeze(&p, gen, Negotiated{}, Listing{Tools: definitions, Pages: 1})
	if err != nil {
		return nil, fmt.Errorf("built-in tools of %s: %w", p.Package, err)
	}
	if len(c.Tools) != len(definitions) || len(c.Warnings) > 0 {
		return nil, fmt.Errorf("built-in tools of %s: %d of %d are sound: %v", p.Package, len(c.Tools), len(definitions), c.Warnings)
	}
	provider := &Provider{Profile: p, Origin: p.Origin(), builtIn: true, state: Ready, since: now, catalog: c, gen: gen}
	for _, t := range c.Tools {
		t.Provider, t.Scopes = provider, world.Scopes{}
	}
	return c, nil
}
