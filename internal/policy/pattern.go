package policy

import (
	"fmt"
	"strings"

	"github.com/ostiary/ostiary/call"
)

// glob is a pattern in which * stands for any run of characters, none included. Everything else stands for itself.
type glob string

// matches takes time proportional to the product of the lengths at most: there is one place to go back to.
func (g glob) matches(s string) bool {
	p, i := 0, 0
	star, from := -1, 0
	for i < len(s) {
		switch {
		case p < len(g) && g[p] == '*':
			star, from = p, i
			p++
		case p < len(g) && g[p] == s[i]:
			p++
			i++
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	for p < len(g) && g[p] == '*' {
		p++
	}
	return p == len(g)
}

// toolPattern is a pattern of tool ids. The package and the name are matched apart, because a package may have dots:
// aur.mcp.files.* means the tools of files and not those of a package files.archive. What is built in is meant by its own
// patterns, aur.world.NAME, and by * alone.
type toolPattern struct {
	pkg, name glob
	all       bool
}

func parseToolPattern(s string) (toolPattern, error) {
	if s == "*" {
		return toolPattern{"*", "*", true}, nil
	}
	pkg, name, ok := call.ToolID(s).Split()
	if !ok {
		return toolPattern{}, fmt.Errorf("tool pattern %q: expected aur.mcp.PACKAGE.NAME or aur.world.NAME, each with * where anything will do, or * alone", clip(s, 120))
	}
	if err := call.CheckPackage(strings.ReplaceAll(pkg, "*", "x")); err != nil {
		return toolPattern{}, fmt.Errorf("tool pattern %q: %w", clip(s, 120), err)
	}
	if err := call.CheckToolName(strings.ReplaceAll(name, "*", "x")); err != nil {
		return toolPattern{}, fmt.Errorf("tool pattern %q: %w", clip(s, 120), err)
	}
	return toolPattern{glob(pkg), glob(name), false}, nil
}

func (t toolPattern) matches(pkg, name string) bool {
	if pkg == call.WorldPackage && t.pkg != call.WorldPackage && !t.all {
		return false
	}
	return t.name.matches(name) && t.pkg.matches(pkg)
}
