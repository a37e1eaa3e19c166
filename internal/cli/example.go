package cli

import (
	"context"
	"errors"
	"flag"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary/internal/exampleserver"
	"github.com/ostiary/ostiary/internal/exampleserver/chat"
)

// newExampleServerCommand is the MCP server of the demonstration and of the tests, or with the word chat the one that shows
// what an author can do. Each has flags of its own, which it reads itself.
func newExampleServerCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "example-server",
		Short: "Serve example tools over MCP, to try the gateway with",
		Long: `Serves a few tools over stdin and stdout, to try the gateway with: ostiary example-server, or ostiary example-server chat,
which also has scopes and events. Each takes -help. It is for demonstrations and tests alone.`,
		Example:            "  ostiary init --name ex --allow echo,add -- ostiary example-server",
		DisableFlagParsing: true,
		RunE: a.run(func(ctx context.Context, args []string) error {
			run := exampleserver.Run
			if len(args) > 0 && args[0] == "chat" {
				run, args = chat.Run, args[1:]
			}
			err := run(ctx, args, a.in, a.out, a.err)
			if errors.Is(err, flag.ErrHelp) {
				return nil
			}
			return err
		}),
	}
}
