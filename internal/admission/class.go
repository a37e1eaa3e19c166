package admission

import (
	"slices"
	"strings"
)

// Class is how much a change may mean. It orders what a reviewer reads; it never makes a change pass. The zero value is
// the gravest.
type Class uint8

// The classes.
const (
	Authority   Class = iota // what the tool can be told to do, or how it is judged
	Behavioural              // what a model reads
	Cosmetic                 // what neither should see
)

var classNames = []string{"AUTHORITY", "BEHAVIOURAL", "COSMETIC"}

func (c Class) String() string { return nameOf(classNames, c) }

// MarshalText writes the name.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the name.
func (c *Class) UnmarshalText(b []byte) (err error) {
	*c, err = parseName[Class](classNames, string(b), "class of change")
	return err
}

// ClassOf is the gravest class of the fields that differ, given as JSON pointers into a definition.
func ClassOf(fields []string) Class {
	if len(fields) == 0 {
		return Authority // it differs, and nobody can say in what
	}
	class := Cosmetic
	for _, f := range fields {
		class = min(class, classOfField(f))
	}
	return class
}

func classOfField(pointer string) Class {
	top, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	switch top {
	case "", "name", "inputSchema", "outputSchema", "annotations", "execution", "origin", "tool_contract":
		return Authority
	case "title", "description", "instructions":
		return Behavioural
	}
	return Cosmetic // icons, _meta, and what no revision knows
}

// members names the members of a definition that differ in words of ours: what a provider calls a member that no revision
// knows is not repeated.
func members(fields []string) string {
	var names []string
	for _, f := range fields {
		top, _, _ := strings.Cut(strings.TrimPrefix(f, "/"), "/")
		switch top {
		case "":
			top = "everything"
		case "name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution", "icons", "_meta", "instructions", "origin", "tool_contract":
		default:
			top = "a member that is not known"
		}
		if !slices.Contains(names, top) {
			names = append(names, top)
		}
	}
	return strings.Join(names, ", ")
}
