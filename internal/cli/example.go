package cli

import (
	"context"
	"errors"
	"flag"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary/internal/exampleserver"
)

// newExampleServerCommand is the MCP server of the demonstration and of the tests. It has flags of its own and is not
// listed.
func newExampleServerCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:                "example-server",
		Short:              "Serve example tools over MCP",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: a.run(func(ctx context.Context, args []string) error {
			err := exampleserver.Run(ctx, args, a.in, a.out, a.err)
			if errors.Is(err, flag.ErrHelp) {
				return nil
			}
			return err
		}),
	}
}
