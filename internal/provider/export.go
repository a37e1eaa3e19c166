package provider

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/ostiary/ostiary/call"
)

// Naming is how an export's tools are called towards its clients (R10.7).
type Naming uint8

// The namings. The zero value is the tool id itself.
const (
	NamingID   Naming = iota // aur.mcp.<package>.<name>
	NamingFlat               // package__tool, for clients that take 64 characters of [A-Za-z0-9_-]
	NamingRaw                // the provider's own names; one provider only
)

// ParseNaming reads a naming as configuration writes it.
func ParseNaming(s string) (Naming, error) {
	switch s {
	case "id":
		return NamingID, nil
	case "flat":
		return NamingFlat, nil
	case "raw":
		return NamingRaw, nil
	}
	return 0, fmt.Errorf("naming %q: expected id, flat or raw", s)
}

// Exposed is one tool of an export, under the name that clients know it by.
type Exposed struct {
	Name string
	Tool *Tool
}

// flatName is what the strictest clients take as a tool name.
var flatName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

var flatDots = regexp.MustCompile(`\.`)

// Expose resolves an export's tool ids against the registry, in the export's order (R10.3). A tool that is not there is an
// error, unless missing says that it may be, because its provider is allowed to be unavailable; then it is left out.
func Expose(r *Registry, ids []call.ToolID, naming Naming, missing func(call.ToolID) bool) ([]Exposed, error) {
	var out []Exposed
	var faults []error
	byName := map[string]call.ToolID{}
	first := ""
	for _, id := range ids {
		t, ok := r.Tool(id)
		if !ok {
			if !missing(id) {
				faults = append(faults, fmt.Errorf("tool %s does not exist", id))
			}
			continue
		}
		name, err := exposedName(t.Descriptor, naming)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if naming == NamingRaw {
			if first == "" {
				first = t.Package
			} else if first != t.Package {
				faults = append(faults, fmt.Errorf("tool %s: raw names are for one provider only, and %s is in the export already", id, first))
				continue
			}
		}
		if other, taken := byName[name]; taken {
			faults = append(faults, fmt.Errorf("tools %s and %s have one name, %q", other, id, name))
			continue
		}
		byName[name] = id
		out = append(out, Exposed{Name: name, Tool: t})
	}
	return out, errors.Join(faults...)
}

func exposedName(d *call.Descriptor, naming Naming) (string, error) {
	switch naming {
	case NamingFlat:
		name := FlatName(d.Package, d.Name)
		if !flatName.MatchString(name) {
			return "", fmt.Errorf("tool %s: its flat name %q is longer than 64 characters; give the tool a shorter alias", d.ID, name)
		}
		return name, nil
	case NamingRaw:
		return d.RawName, nil
	default:
		return string(d.ID), nil
	}
}

// FlatName is the flat name of a tool: its package with '_' for dots, two underscores, its name. It may be too long.
func FlatName(pkg, name string) string { return flatDots.ReplaceAllString(pkg, "_") + "__" + name }
