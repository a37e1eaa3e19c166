package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/config"
)

func newStdioCommand(a *app) *cobra.Command {
	var export string
	c := &cobra.Command{
		Use:   "stdio [--export NAME]",
		Short: "Serve one export over stdin and stdout",
		Long: `Serves one export as an MCP server on stdin and stdout, for clients that start their servers themselves. stdout
carries MCP alone. No token is needed: whoever can start the process is let in.`,
		Example: `  {"mcpServers": {"ostiary": {"command": "ostiary", "args": ["stdio", "--config", "/home/me/ostiary.toml"]}}}`,
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			return a.withHost(ctx, nil, func(h *ostiary.Host, c *config.Config) error {
				if _, ok := c.Export(export); !ok {
					return usage("name one with --export", "there is no export %q in %s", export, c.File)
				}
				err := h.ServeStdio(ctx, export, a.in, a.out)
				if errors.Is(err, io.EOF) || errors.Is(context.Cause(ctx), errTerminated) {
					return nil
				}
				return err
			})
		}),
	}
	c.Flags().StringVar(&export, "export", "default", "`name` of the export")
	return endsWith(c, call.ExitProvider, call.ExitStore)
}
