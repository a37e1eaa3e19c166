package provider

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ostiary/ostiary/call"
)

// Registry is the one set of tools that listing and routing read (R2.5). Reading takes no lock: each reader sees one
// immutable snapshot. Its zero value is empty and ready.
type Registry struct {
	tools   atomic.Pointer[map[call.ToolID]*Tool]
	builtIn []*Catalog // part of each snapshot; set before providers start
}

// Include makes catalogs of [BuiltIn] a part of every snapshot, from now on. It is to be called before providers start.
func (r *Registry) Include(catalogs ...*Catalog) error {
	r.builtIn = append(r.builtIn, catalogs...)
	return r.publish(nil)
}

// Tool finds a tool by its id.
func (r *Registry) Tool(id call.ToolID) (*Tool, bool) {
	m := r.tools.Load()
	if m == nil {
		return nil, false
	}
	t, ok := (*m)[id]
	return t, ok
}

// Len is the number of tools.
func (r *Registry) Len() int {
	if m := r.tools.Load(); m != nil {
		return len(*m)
	}
	return 0
}

// publish replaces the whole snapshot. Two tools of one id are a fault of the caller: packages are unique, and a catalog
// has no id twice.
func (r *Registry) publish(catalogs []*Catalog) error {
	m := map[call.ToolID]*Tool{}
	for _, c := range slices.Concat(r.builtIn, catalogs) {
		for _, t := range c.Tools {
			if _, ok := m[t.ID]; ok {
				return fmt.Errorf("registry: two tools have the id %s", t.ID)
			}
			m[t.ID] = t
		}
	}
	r.tools.Store(&m)
	return nil
}
