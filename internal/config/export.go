package config

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/builtin"
	"github.com/ostiary/ostiary/internal/world"
)

const (
	defaultExport = "default"
	mcpPath       = "/v1/mcp"
)

var (
	exportName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	flatName   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	exportPath = regexp.MustCompile(`^(/[A-Za-z0-9_.~-]+)+$`)
)

// reservedPaths are routes of the gateway itself.
var reservedPaths = []string{"/healthz", "/readyz", "/metrics", "/console", "/v1/admin", "/.well-known"}

func (l *loader) export(name string, t *node) {
	s := l.section(exportSection, t, "export", name)
	s.unknown()
	if !exportName.MatchString(name) {
		l.fault(t.line, joinKey(s.path...), "lower-case letters, digits, _ and - are possible, at most 64", "illegal name of an export")
	}
	e := Export{line: t.line, Name: name, Path: s.str("path", nil), Naming: Naming(s.str("naming", nil)), Instructions: s.str("instructions", nil)}
	if !s.has("path") {
		e.Path = mcpPath
		if name != defaultExport {
			e.Path += "/" + name
		}
		s.derived("path", e.Path)
	} else if e.Path != path.Clean(e.Path) || !exportPath.MatchString(e.Path) {
		s.faultAt("path", "", "%s: expected a plain path such as /v1/mcp/team", shownText(e.Path))
	} else if r := slices.IndexFunc(reservedPaths, func(r string) bool { return e.Path == r || strings.HasPrefix(e.Path, r+"/") }); r >= 0 {
		s.faultAt("path", "", "%s is a route of the gateway itself", reservedPaths[r])
	}
	if !s.has("instructions") {
		e.Instructions = l.config.Server.Instructions
	}
	e.Tools = s.exportedTools(e.Naming)
	e.World = s.readable(e.Tools)
	l.config.Exports = append(l.config.Exports, e)
}

// exportedTools checks each tool id against the providers (R2.5) and gives it its name towards clients (R10.7).
func (s *section) exportedTools(naming Naming) []ExportedTool {
	ids, lines := s.strs("tools", nil)
	s.distinct("tools", ids, lines)
	var tools []ExportedTool
	taken := map[string]int{}
	rawPackage := ""
	for i, text := range ids {
		key, line := s.item("tools", i), lines[i]
		id := call.ToolID(text)
		pkg, name, ok := id.Split()
		if !ok {
			s.fault(line, key, s.suggestTool(text), "%s is no tool id: expected aur.mcp.PACKAGE.NAME", shownText(text))
			continue
		}
		if pkg == call.WorldPackage {
			if t, ok := s.builtIn(id, name, naming, line, key); ok && s.notTaken(taken, ids, lines, i, naming, t) {
				tools = append(tools, t)
			}
			continue
		}
		p, ok := s.config.Provider(pkg)
		if !ok {
			s.fault(line, key, s.suggestProvider(pkg), "there is no provider %s", shownText(pkg))
			continue
		}
		if !isAllowed(&p.Profile, name) {
			hint := didYouMean(name, allowedNames(&p.Profile))
			if hint == "" {
				hint = "add it to allowed_tools of provider " + pkg
			}
			s.fault(line, key, hint, "%s is not in allowed_tools of provider %s", shownText(name), pkg)
			continue
		}
		t := ExportedTool{ID: id, Name: text}
		switch naming {
		case NamingFlat:
			t.Name = strings.ReplaceAll(pkg, ".", "_") + "__" + name
			if !flatName.MatchString(t.Name) {
				s.fault(line, key, "give the tool a shorter alias in allowed_tools", "its flat name %s has %d characters: at most 64 are possible", shownText(t.Name), len(t.Name))
				continue
			}
		case NamingRaw:
			t.Name = name
			if rawPackage != "" && rawPackage != pkg {
				s.fault(line, key, `use naming = "flat", or one export a provider`, "a raw export has the tools of one provider, and this has %s and %s", rawPackage, pkg)
				continue
			}
			rawPackage = pkg
		}
		if s.notTaken(taken, ids, lines, i, naming, t) {
			tools = append(tools, t)
		}
	}
	return tools
}

// notTaken takes the name of the tool at i, unless another has it.
func (s *section) notTaken(taken map[string]int, ids []string, lines []int, i int, naming Naming, t ExportedTool) bool {
	first, twice := taken[t.Name]
	if twice && ids[first] != ids[i] { // an id that is repeated is reported already
		s.fault(lines[i], s.item("tools", i), "give one of the tools an alias in allowed_tools", "its %s name %s is that of %s too", naming, shownText(t.Name), ids[first])
	}
	if !twice {
		taken[t.Name] = i
	}
	return !twice
}

// builtIn names a tool of the gateway's own.
func (s *section) builtIn(id call.ToolID, name string, naming Naming, line int, key string) (t ExportedTool, ok bool) {
	if !slices.Contains(builtin.Exportable(), id) {
		var ids []string
		for _, b := range builtin.Exportable() {
			ids = append(ids, string(b))
		}
		s.fault(line, key, didYouMean(string(id), ids), "%s is none of the built-in tools: they are %s", shownText(string(id)), strings.Join(ids, " and "))
		return t, false
	}
	t = ExportedTool{ID: id, Name: string(id)}
	switch naming {
	case NamingFlat:
		t.Name = builtin.FlatName(name)
	case NamingRaw:
		t.Name = builtin.RawName(name)
	}
	return t, true
}

// readable reads which scopes of the world can be read through the export. There is no default: what providers say of the
// world is not for every client.
func (s *section) readable(tools []ExportedTool) world.Readable {
	patterns, lines := s.strs("world", nil)
	s.distinct("world", patterns, lines)
	sound := true
	for i, p := range patterns {
		if err := world.CheckPattern(p); err != nil {
			s.fault(lines[i], s.item("world", i), "write a scope such as aurora:mcp:chat, all scopes below one as qq:*, or * for every scope", "%v", err)
			sound = false
		}
	}
	if s.has("world") && len(patterns) == 0 && sound {
		s.faultAt("world", "leave it out if nothing of the world is to be read", "the list is empty")
	}
	for _, t := range tools {
		if pkg, _, _ := t.ID.Split(); pkg == call.WorldPackage && !s.has("world") {
			s.faultAt("tools", `write world = ["aurora:mcp:PACKAGE"], or ["*"] for all of it`, "%s reads the world, and nothing says which scopes this export may read", t.ID)
			break
		}
	}
	if !sound {
		return nil
	}
	r, err := world.ParseReadable(patterns)
	if err != nil {
		s.faultAt("world", "", "%v", err)
	}
	return r
}

// suggestTool finds the tool id that was meant by package.name or a bare name.
func (l *loader) suggestTool(text string) string {
	for _, p := range l.config.Providers {
		for _, name := range allowedNames(&p.Profile) {
			pkg := p.Profile.Package
			if slices.Contains([]string{name, pkg + "." + name, pkg + "/" + name, pkg + "__" + name}, text) {
				return "did you mean " + quote(string(call.NewToolID(pkg, name))) + "?"
			}
		}
	}
	return ""
}

// exportPaths refuses two exports on one path.
func (l *loader) exportPaths() {
	owner := map[string]string{}
	for _, e := range l.config.Exports {
		if other, twice := owner[e.Path]; twice {
			l.fault(e.line, joinKey("export", e.Name, "path"), "give it a path of its own", "%s is the path of export %s too", e.Path, other)
			continue
		}
		owner[e.Path] = e.Name
	}
}
