package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ostiary/ostiary/call"
)

// Starter is a provider that was looked at, and what was chosen of it: what `ostiary init` writes.
type Starter struct {
	Package string

	Command    []string // of a stdio server: the program and its arguments
	EnvFrom    []string
	URL        string // of an http server
	Credential string // "env:NAME"; "" if it needs none
	Private    bool   // the host may resolve to private addresses

	Revision string // that was negotiated; for a comment
	Tools    []StarterTool
	Approval string // "never" or "required"
}

// StarterTool is one tool as the server lists it. All but Allowed is the server's own word: it goes into comments, and
// grants nothing (R6.7).
type StarterTool struct {
	Name     string
	Summary  string
	ReadOnly bool // the server says that it only reads
	Allowed  bool // the user chose it
}

// entry is the tool's element of allowed_tools.
func (t StarterTool) entry() string {
	if call.CheckToolName(t.Name) == nil {
		return quote(t.Name)
	}
	return fmt.Sprintf("{ name = %s, as = %s }", quote(t.Name), quote(suggestAlias(t.Name)))
}

func (t StarterTool) name() string {
	if call.CheckToolName(t.Name) == nil {
		return t.Name
	}
	return suggestAlias(t.Name)
}

// ToolIDs are the ids of the chosen tools.
func (s Starter) ToolIDs() []string {
	ids := []string{}
	for _, t := range s.Tools {
		if t.Allowed {
			ids = append(ids, string(call.NewToolID(s.Package, t.name())))
		}
	}
	return ids
}

// File is a whole ostiary.toml with the one provider.
func (s Starter) File() string {
	var b strings.Builder
	b.WriteString(`# Ostiary's configuration. Every key: docs/CONFIG.md. To check it: ostiary config check

[server]
listen    = "127.0.0.1:7411"
token_env = "OSTIARY_TOKEN"           # without this variable nothing is served: export OSTIARY_TOKEN=$(openssl rand -hex 32)

`)
	b.WriteString(s.Provider())
	b.WriteString("\n" + s.Export(defaultExport))
	return b.String()
}

// Provider is the provider's part of a file.
func (s Starter) Provider() string {
	var b strings.Builder
	table := joinKey("provider", s.Package)
	line := func(key, value, comment string) {
		text := fmt.Sprintf("%-13s = %s", key, value)
		if comment != "" {
			text = fmt.Sprintf("%-37s # %s", text, comment)
		}
		b.WriteString(text + "\n")
	}
	fmt.Fprintf(&b, "[%s]\n", table)
	if s.URL != "" {
		line("transport", quote(transportHTTP), "")
		line("url", quote(s.URL), "")
		if s.Credential != "" {
			line("credential", quote(s.Credential), "the environment variable with its bearer token")
		}
		if s.Private {
			line("allow_private_network", "true", "")
		}
	} else {
		line("transport", quote(transportStdio), "")
		line("command", quote(s.Command[0]), "never passes through a shell")
		line("args", quoteAll(s.Command[1:]), "")
		if len(s.EnvFrom) > 0 {
			line("env_from", quoteAll(s.EnvFrom), "handed on from the gateway's environment")
		}
	}
	if s.Revision != "" {
		line("protocol", `"auto"`, "negotiated: "+comment(s.Revision, 20))
	}
	line("trust_tier", `"USER_ADDED_REVIEWED"`, "CONTROLLED_LOCAL, USER_ADDED_REVIEWED, ORG_MANAGED or BLOCKED")
	chosen := slices.ContainsFunc(s.Tools, func(t StarterTool) bool { return t.Allowed })
	if !chosen {
		b.WriteString("# Nothing is allowed yet: take the # from the tools that may be called.\n")
	}
	b.WriteString("# Beside each tool is what the server says of it; nobody has checked that.\n")
	b.WriteString("allowed_tools = [\n")
	for _, t := range s.Tools {
		mark := "# "
		if t.Allowed {
			mark = ""
		}
		text := "  " + mark + t.entry() + ","
		if sum := comment(t.Summary, 70); sum != "" {
			text = fmt.Sprintf("%-37s # %s", text, sum)
		}
		b.WriteString(text + "\n")
	}
	b.WriteString("]\n\n")
	fmt.Fprintf(&b, "[%s]\navailable = true\n", joinKey("provider", s.Package, "policy"))
	if s.Approval == "never" {
		b.WriteString("approval  = \"never\"                  # in so many words: without it, calls with outside effects wait for approval\n")
	} else {
		b.WriteString("# Calls of clients wait until you agree (ostiary approvals). Nobody agrees to a call of their own, so your own ostiary call\n" +
			"# cannot pass: \"never\", here or for one tool, lets calls through without anyone's approval.\napproval  = \"required\"\n")
	}
	for _, t := range s.Tools {
		if t.ReadOnly && t.Allowed {
			fmt.Fprintf(&b, "\n# The server says that this tool only reads. If you know that it is so:\n# [%s]\n# effect   = \"READ_ONLY\"\n# approval = \"never\"\n",
				joinKey("provider", s.Package, "policy", "tools", t.name()))
		}
	}
	return b.String()
}

// Export is an export with the chosen tools.
func (s Starter) Export(name string) string {
	var b strings.Builder
	where := mcpPath
	if name != defaultExport {
		where += "/" + name
	}
	fmt.Fprintf(&b, "%-37s # served at %s\ntools  = [\n", "["+joinKey("export", name)+"]", where)
	for _, t := range s.Tools {
		mark := "# "
		if t.Allowed {
			mark = ""
		}
		fmt.Fprintf(&b, "  %s%s,\n", mark, quote(string(call.NewToolID(s.Package, t.name()))))
	}
	b.WriteString("]\nnaming = \"flat\"                       # names for clients: package__tool\n")
	return b.String()
}

// AddTo adds the provider to a file: its tables go to the end, and its tools into the export "default", or into one of
// their own where that cannot be edited. It says which export has them. The result is checked before it is returned.
func (s Starter) AddTo(file string, text []byte, env func(string) (string, bool)) (out []byte, export string, err error) {
	before, err := Parse(file, text, env)
	if err != nil {
		return nil, "", err
	}
	if _, twice := before.Provider(s.Package); twice {
		return nil, "", Faults{{File: file, Key: joinKey("provider", s.Package), Problem: "the provider exists already", Hint: "choose another name with --name"}}
	}
	body := strings.TrimRight(string(text), "\n") + "\n\n" + s.Provider()
	if _, ok := before.Export(defaultExport); !ok {
		out = []byte(body + "\n" + s.Export(defaultExport))
		_, err = Parse(file, out, env)
		return out, defaultExport, err
	}
	if edited, ok := s.intoDefaultExport(body); ok {
		if after, perr := Parse(file, []byte(edited), env); perr == nil {
			was, _ := before.Export(defaultExport)
			is, _ := after.Export(defaultExport)
			if len(is.Tools) == len(was.Tools)+len(s.ToolIDs()) {
				return []byte(edited), defaultExport, nil
			}
		}
	}
	export = strings.Map(func(r rune) rune {
		if r == '.' {
			return '-'
		}
		return r
	}, s.Package)
	out = []byte(body + "\n" + s.Export(export))
	_, err = Parse(file, out, env)
	return out, export, err
}

// intoDefaultExport puts the tools at the beginning of the export's array, where no comma is missing. It looks for the
// plain form alone, a header and a line that begins with tools = [, and gives up on any other.
func (s Starter) intoDefaultExport(text string) (string, bool) {
	lines := strings.Split(text, "\n")
	inside := false
	for i, l := range lines {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "[") {
			header, _, _ := strings.Cut(l, "#")
			inside = strings.TrimSpace(header) == "[export.default]"
			continue
		}
		key, value, ok := strings.Cut(lines[i], "=")
		if !inside || !ok || strings.TrimSpace(key) != "tools" || !strings.HasPrefix(strings.TrimSpace(value), "[") {
			continue
		}
		var ids strings.Builder
		for _, id := range s.ToolIDs() {
			ids.WriteString("\n  " + quote(id) + ",")
		}
		lines[i] = strings.Replace(lines[i], "[", "["+ids.String(), 1)
		return strings.Join(lines, "\n"), true
	}
	return "", false
}

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// comment makes the server's words fit for a comment: one line, nothing that TOML forbids or an editor would hide.
func comment(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if r := []rune(s); len(r) > most {
		s = string(r[:most-1]) + "…"
	}
	return s
}
