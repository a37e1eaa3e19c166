package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
)

func newToolsCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "tools [TOOL] [--json]",
		Short: "List the tools that can be called, or show one",
		Long: `Lists the allowed tools of every provider with their effect class and what the policy says to a call: allow, ask or
deny, with an asterisk where that depends on arguments or on what the session has read; "held" is a tool that is not let
through because its definition is not the admitted one. With a name it shows that tool with its input schema. A name is a tool id, package.name, or the bare name where
only one tool has it. Descriptions are the server's own words.`,
		Example: "  ostiary tools files.read_text_file",
		Args:    takes("[TOOL]"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			var only []string
			if len(args) == 1 {
				pkg, err := a.providerOf(args[0])
				if err != nil {
					return err
				}
				only = []string{pkg}
			}
			if err := a.lookable(ctx); err != nil {
				return err
			}
			return a.withOperations(ctx, only, func(ops ostiary.Operations) error {
				tools, err := ops.Tools(ctx)
				if err != nil {
					return err
				}
				if len(args) == 0 {
					if asJSON {
						return a.printJSON(slices.Concat([]ostiary.ToolInfo{}, tools))
					}
					return a.printTools(tools)
				}
				t, err := findTool(tools, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(t)
				}
				return a.printTool(t)
			})
		}),
		ValidArgsFunction: a.completeTool,
	}
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitProvider, call.ExitStore)
}

func (a *app) printTools(tools []ostiary.ToolInfo) error {
	rows := make([][]string, len(tools))
	for i, t := range tools {
		rows[i] = []string{t.ID, t.Effect, policyWord(t), cleanLine(firstOf(t.Title, t.Description), 72)}
	}
	return table(a.out, []string{"TOOL", "EFFECT", "POLICY", "DESCRIPTION"}, rows)
}

// policyWord is what a call has to expect: the policy's word, with an asterisk where arguments or what the session has read
// may change it; or that it is not let through, whatever the policy says.
func policyWord(t ostiary.ToolInfo) string {
	switch {
	case t.Admission != "":
		return "held"
	case t.Depends:
		return t.Policy + "*"
	}
	return t.Policy
}

func (a *app) printTool(t ostiary.ToolInfo) error {
	line := func(k, v string) {
		if v != "" {
			fmt.Fprintf(a.out, "%-12s %s\n", k, v)
		}
	}
	line("tool", t.ID)
	line("title", cleanLine(t.Title, 200))
	if call.ToolID(t.ID) != call.NewToolID(t.Provider, t.RawName) {
		line("raw name", cleanLine(t.RawName, 200))
	}
	for _, e := range slices.Sorted(maps.Keys(t.Names)) {
		line("in "+e, t.Names[e])
	}
	line("effect", t.Effect)
	rule := t.Rule
	if t.Depends {
		rule += "; other rules look at its arguments, or at what the session has read"
	}
	line("policy", t.Policy+" ("+rule+")")
	line("admission", cleanLine(t.Admission, 300))
	contract := ""
	if t.ToolContract {
		contract = " (tool-contract)"
	}
	line("observes", strings.Join(t.Observe, " ")+contract)
	line("publishes", strings.Join(t.Publish, " ")+contract)
	line("schema", t.SchemaDigest)
	line("descriptor", t.DescriptorDigest)
	if t.Description != "" {
		fmt.Fprintf(a.out, "\n%s\n", clean(t.Description))
	}
	schema := jsontext.Value(slices.Clone(t.InputSchema))
	if err := schema.Indent(); err == nil {
		fmt.Fprintf(a.out, "\ninput schema:\n%s\n", clean(string(schema)))
	}
	_, err := fmt.Fprintf(a.out, "\nexample:\n  %s\n", clean(exampleCall(t)))
	return err
}

// exampleCall is a command line that calls a tool with its required arguments, to be filled in.
func exampleCall(t ostiary.ToolInfo) string {
	parts := []string{"ostiary", "call", strings.TrimPrefix(t.ID, "aur.mcp.")}
	schema := readSchema(t.InputSchema)
	for _, name := range schema.required {
		types := schema.types[name]
		if slices.Contains(types, "object") || slices.Contains(types, "array") {
			parts = append(parts, shellWord(name)+":=JSON")
			continue
		}
		parts = append(parts, shellWord(name)+"="+strings.ToUpper(firstOf(strings.Join(types, "|"), "text")))
	}
	return strings.Join(parts, " ")
}

// shellWord quotes a word for a shell, unless it is plain.
func shellWord(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("_-./:", r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// names lists the forms by which a tool can be called on the command line.
func forms(pkg, name, raw string) []string {
	return []string{string(call.NewToolID(pkg, name)), pkg + "." + name, pkg + "/" + name, pkg + "__" + name, name, raw}
}

// providerOf finds the one provider that a tool's name can belong to, so that no other needs to be started.
func (a *app) providerOf(name string) (string, error) {
	c, err := a.config()
	if err != nil {
		return "", err
	}
	if pkg, _, ok := call.ToolID(name).Split(); ok && pkg == call.WorldPackage {
		return pkg, nil // built in: no provider needs to be started
	}
	var found []string
	for _, p := range c.Providers {
		for _, t := range p.Profile.AllowedTools {
			if slices.Contains(forms(p.Profile.Package, t.Name(), t.Raw), name) {
				found = append(found, string(call.NewToolID(p.Profile.Package, t.Name())))
				break
			}
		}
	}
	switch len(found) {
	case 1:
		pkg, _, _ := call.ToolID(found[0]).Split()
		return pkg, nil
	case 0:
		return "", fail(call.ExitRefused, "ostiary tools lists what there is", "there is no allowed tool %q", name)
	default:
		return "", usage("give the whole tool id", "%q means %s", name, strings.Join(found, " and "))
	}
}

func findTool(tools []ostiary.ToolInfo, name string) (ostiary.ToolInfo, error) {
	for _, t := range tools {
		_, short, _ := call.ToolID(t.ID).Split()
		if slices.Contains(forms(t.Provider, short, t.RawName), name) {
			return t, nil
		}
	}
	return ostiary.ToolInfo{}, fail(call.ExitRefused, "ostiary status says whether its provider has started", "the tool %q is not there", name)
}

// completeTool completes tool names from the configuration alone: nothing is started for a press of the tab key.
func (a *app) completeTool(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := a.config()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, p := range c.Providers {
		for _, t := range p.Profile.AllowedTools {
			names = append(names, p.Profile.Package+"."+t.Name())
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
