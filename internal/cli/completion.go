package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newCompletionCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a completion script for a shell",
		Long: `Prints a script that completes commands, flags and the names of tools.

  bash        source <(ostiary completion bash)
  zsh         ostiary completion zsh > "${fpath[1]}/_ostiary"
  fish        ostiary completion fish > ~/.config/fish/completions/ostiary.fish
  powershell  ostiary completion powershell | Out-String | Invoke-Expression`,
		Example:   "  ostiary completion bash > /etc/bash_completion.d/ostiary",
		Args:      takes("SHELL"),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
	}
	c.RunE = a.run(func(_ context.Context, args []string) error {
		root := c.Root()
		switch args[0] {
		case "bash":
			return root.GenBashCompletionV2(a.out, true)
		case "zsh":
			return root.GenZshCompletion(a.out)
		case "fish":
			return root.GenFishCompletion(a.out, true)
		case "powershell":
			return root.GenPowerShellCompletionWithDesc(a.out)
		default:
			return usage("bash, zsh, fish or powershell", "%q is no shell that is known here", args[0])
		}
	})
	return c
}
