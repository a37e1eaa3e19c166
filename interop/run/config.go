//go:build unix

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ostiary/ostiary/interop/mcpraw"
)

// entry is a peer as a provider of a gateway.
type entry struct {
	peer    *peer
	tools   []mcpraw.Tool
	aliases map[string]string // raw name → alias, for names that do not fit
	left    []string          // what no gateway may take in, and why
}

// admit decides which of a server's tools are allowed, and under which name.
func admit(p *peer, listed []mcpraw.Tool) *entry {
	e := &entry{peer: p, aliases: map[string]string{}}
	count, taken := map[string]int{}, map[string]bool{}
	for _, t := range listed {
		count[t.Name]++
	}
	for _, t := range listed {
		switch schema := t.Object.Object("inputSchema"); {
		case t.Name == "":
			e.left = append(e.left, "a tool without a name")
			continue
		case count[t.Name] > 1:
			if told := fmt.Sprintf("%q is listed %d times", t.Name, count[t.Name]); !slices.Contains(e.left, told) {
				e.left = append(e.left, told)
			}
			continue
		case schema.Text("type") != "object":
			e.left = append(e.left, fmt.Sprintf("%q: its input schema is no object's", t.Name))
			continue
		case t.Name == "bad_header": // of the example server: see its definition
			e.left = append(e.left, fmt.Sprintf("%q: an illegal x-mcp-header", t.Name))
			continue
		}
		if !fits(t.Name) {
			alias := strings.Trim(strings.Map(func(r rune) rune {
				if fits("a" + string(r)) {
					return r
				}
				return '_'
			}, t.Name), "_")
			for taken[alias] || count[alias] > 0 || !fits(alias) {
				alias = "a" + alias + "_"
			}
			taken[alias] = true
			e.aliases[t.Name] = alias
		}
		e.tools = append(e.tools, t)
	}
	return e
}

// fits says whether a name can be the last part of a tool id.
func fits(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || (r < '0' || r > '9') && r != '_' && r != '-') {
			return false
		}
	}
	return name != ""
}

func (e *entry) name(t mcpraw.Tool) string {
	if alias := e.aliases[t.Name]; alias != "" {
		return alias
	}
	return t.Name
}

// flat is the name under which the export `naming = "flat"` shows a tool.
func (e *entry) flat(t mcpraw.Tool) string { return e.peer.ID + "__" + e.name(t) }

// provider writes the provider's tables.
func (e *entry) provider() string {
	p := e.peer
	var b strings.Builder
	fmt.Fprintf(&b, "[provider.%s]\ntrust_tier = \"CONTROLLED_LOCAL\"\n", p.ID)
	if p.URL != "" {
		fmt.Fprintf(&b, "transport = \"http\"\nurl = %s\n", quote(p.URL))
		if p.Bearer != "" {
			fmt.Fprintf(&b, "credential = \"env:%s\"\n", p.bearerEnv())
		}
	} else {
		fmt.Fprintf(&b, "transport = \"stdio\"\ncommand = %s\nargs = %s\ndir = %s\n", quote(p.Cmd[0]), quoteAll(p.Cmd[1:]), quote(p.work))
		env := []string{"HOME = " + quote(p.work)}
		for _, k := range slices.Sorted(maps.Keys(p.Env)) {
			env = append(env, k+" = "+quote(p.Env[k]))
		}
		fmt.Fprintf(&b, "env = { %s }\n", strings.Join(env, ", "))
	}
	b.WriteString("allowed_tools = [\n")
	for _, t := range e.tools {
		if alias := e.aliases[t.Name]; alias != "" {
			fmt.Fprintf(&b, "  { name = %s, as = %s },\n", quote(t.Name), quote(alias))
		} else {
			fmt.Fprintf(&b, "  %s,\n", quote(t.Name))
		}
	}
	fmt.Fprintf(&b, "]\n[provider.%s.policy]\navailable = true\napproval = \"never\"\n\n", p.ID)
	return b.String()
}

func (p *peer) bearerEnv() string {
	return "BEARER_" + strings.ToUpper(strings.ReplaceAll(p.ID, "-", "_"))
}

// export writes one export with all tools of all entries.
func export(naming string, entries ...*entry) string {
	var b strings.Builder
	b.WriteString("[export.default]\nnaming = " + quote(naming) + "\ntools = [\n")
	for _, e := range entries {
		for _, t := range e.tools {
			fmt.Fprintf(&b, "  %s,\n", quote("aur.mcp."+e.peer.ID+"."+e.name(t)))
		}
	}
	b.WriteString("]\n")
	return b.String()
}

// quote writes a TOML string: JSON's are.
func quote(s string) string { return mcpraw.Quote(s) }

func quoteAll(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = quote(w)
	}
	return "[" + strings.Join(all, ", ") + "]"
}
