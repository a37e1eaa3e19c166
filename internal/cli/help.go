package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary/call"
)

// endsWith notes the exit codes that a command has beside 0, 1, 2 and 130, which every command has.
func endsWith(c *cobra.Command, codes ...call.Exit) *cobra.Command {
	var names []string
	for _, e := range codes {
		names = append(names, itoa(int(e)))
	}
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations["exit"] = strings.Join(names, " ")
	return c
}

// takes checks the number of arguments, and names what is missing. The last name stands for any number if it ends in "…".
func takes(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		hint := "see " + c.CommandPath() + " --help"
		required := 0
		for _, n := range names {
			if !strings.HasPrefix(n, "[") {
				required++
			}
		}
		if len(args) < required {
			return usage(hint, "%s is missing", names[len(args)])
		}
		many := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "…]")
		if len(args) > len(names) && !many {
			return usage(hint, "unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// exitStatus is the end of a command's help.
func exitStatus(c *cobra.Command) string {
	if !c.Runnable() || c.HasAvailableSubCommands() {
		return ""
	}
	own := strings.Fields(c.Annotations["exit"])
	var b strings.Builder
	for _, x := range exits {
		n := itoa(int(x.exit))
		common := x.exit <= call.ExitUsage || x.exit == call.ExitInterrupted
		for _, o := range own {
			common = common || o == n
		}
		if common {
			b.WriteString("  " + strings.Repeat(" ", 3-len(n)) + n + "  " + x.meaning + "\n")
		}
	}
	return b.String()
}

const helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}`

const usageTemplate = `USAGE
{{if and .Runnable (not .HasAvailableSubCommands)}}  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}  {{.CommandPath}} COMMAND{{end}}
{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{if eq (len .Groups) 0}}
COMMANDS
{{range $cmds}}{{if .IsAvailableCommand}}  {{rpad .Name .NamePadding}} {{.Short}}
{{end}}{{end}}{{else}}{{range $group := .Groups}}
{{.Title}}
{{range $cmds}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}}  {{rpad .Name .NamePadding}} {{.Short}}
{{end}}{{end}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}
FLAGS
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}{{if .HasAvailableInheritedFlags}}
GLOBAL FLAGS
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}{{if .HasHelpSubCommands}}
TOPICS
{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}  {{rpad .CommandPath .CommandPathPadding}} {{.Short}}
{{end}}{{end}}{{end}}{{with exitStatus .}}
EXIT STATUS
{{.}}{{end}}{{if .HasExample}}
EXAMPLE
{{.Example}}
{{end}}`

// manners gives the whole tree one style of help.
func manners(root *cobra.Command) {
	cobra.AddTemplateFunc("exitStatus", exitStatus)
	root.SetHelpTemplate(helpTemplate)
	root.SetUsageTemplate(usageTemplate)
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Short = "Help about any command or topic"
			c.Run, c.RunE = nil, func(_ *cobra.Command, words []string) error {
				to, rest, err := root.Find(words)
				if err != nil || len(rest) > 0 {
					return usage("see "+root.Name()+" --help", "there is no command or topic %q", strings.Join(words, " "))
				}
				return to.Help()
			}
		}
	}
	everyCommand(root, func(c *cobra.Command) {
		c.DisableFlagsInUseLine = true
		c.SuggestionsMinimumDistance = 2
		c.InitDefaultHelpFlag()
		if f := c.Flags().Lookup("help"); f != nil {
			f.Usage = "show this help"
		}
		c.SetErrPrefix("ostiary:")
	})
}

// everyCommand calls fn for a command and all below it.
func everyCommand(c *cobra.Command, fn func(*cobra.Command)) {
	fn(c)
	for _, sub := range c.Commands() {
		everyCommand(sub, fn)
	}
}
