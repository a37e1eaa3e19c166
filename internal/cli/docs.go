package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ostiary/ostiary/call"
)

// commandDocs renders the whole command tree as Markdown, a page a command, by file name.
func commandDocs(root *cobra.Command) map[string]string {
	pages := map[string]string{}
	everyCommand(root, func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" {
			return
		}
		pages[docName(c)] = commandPage(c)
	})
	return pages
}

func docName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "_") + ".md" }

func commandPage(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n<!-- Generated: go test ./internal/cli -update -->\n\n", c.CommandPath())
	if c.IsAdditionalHelpTopicCommand() {
		fmt.Fprintf(&b, "```\n%s\n```\n", c.Long)
		return b.String()
	}
	fmt.Fprintf(&b, "%s.\n", c.Short)
	if c.Long != "" {
		fmt.Fprintf(&b, "\n%s\n", longText(c.Long))
	}
	if c.Runnable() && !c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n```\n%s\n```\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\n| command | |\n|---|---|\n")
		for _, sub := range c.Commands() {
			if sub.Hidden || sub.Name() == "help" {
				continue
			}
			fmt.Fprintf(&b, "| [`%s`](%s) | %s |\n", sub.CommandPath(), docName(sub), sub.Short)
		}
	}
	flagTable(&b, "Flags", c.NonInheritedFlags())
	if c.HasParent() {
		b.WriteString("\nThe global flags stand in [`ostiary`](ostiary.md).\n")
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "\n## Example\n\n```sh\n%s\n```\n", unindent(c.Example))
	}
	if status := exitStatus(c); status != "" {
		fmt.Fprintf(&b, "\n## Exit status\n\n```\n%s```\n", status)
	}
	return b.String()
}

// longText keeps the indented parts of a long help as they are, as blocks of code.
func longText(long string) string {
	var out []string
	for _, block := range strings.Split(long, "\n\n") {
		if strings.HasPrefix(block, "  ") {
			block = "```\n" + unindent(block) + "\n```"
		}
		out = append(out, block)
	}
	return strings.Join(out, "\n\n")
}

func unindent(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	return strings.Join(lines, "\n")
}

func flagTable(b *strings.Builder, title string, flags *pflag.FlagSet) {
	rows := ""
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, meaning := pflag.UnquoteUsage(f)
		flag := "--" + f.Name
		if name != "" {
			flag += " " + strings.ToUpper(name)
		}
		if f.Shorthand != "" {
			flag = "-" + f.Shorthand + ", " + flag
		}
		value := ""
		switch f.DefValue {
		case "", "false", "0", "0s", "[]":
		default:
			value = " Default: `" + f.DefValue + "`."
		}
		rows += fmt.Sprintf("| `%s` | %s.%s |\n", flag, strings.ReplaceAll(meaning, "|", `\|`), value)
	})
	if rows != "" {
		fmt.Fprintf(b, "\n## %s\n\n| flag | |\n|---|---|\n%s", title, rows)
	}
}

// errorsPage is docs/ERRORS.md.
func errorsPage() string {
	var b strings.Builder
	b.WriteString(`# Errors

<!-- Generated from call/code.go: go test ./internal/cli -update -->

Every call that does not simply succeed has one of these codes, in the order in which a call can meet them. A client finds it in
` + "`_meta[\"org.ostiary/outcome\"].code`" + `, the ledger in the record of the outcome, and the command line in its exit code. "Retry" says who may
try again if the request was not sent or a definite answer came; the gateway itself never does. Whether the effect may have happened is
not in the code but in ` + "`status`, `delivery` and `effect`" + ` beside it.

| code | stage | retry | exit | meaning | what to do |
|---|---|---|--:|---|---|
`)
	for _, c := range call.Codes() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d | %s | %s |\n", c.Code, c.Stage, c.Retry, c.Exit, c.Meaning, c.Advice)
	}
	b.WriteString("\n## Exit codes\n\n| code | meaning |\n|--:|---|\n")
	for _, x := range exits {
		fmt.Fprintf(&b, "| %d | %s |\n", x.exit, x.meaning)
	}
	return b.String()
}
