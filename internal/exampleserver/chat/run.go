package chat

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Run is the hidden command `ostiary example-server chat`: it reads its flags from args and serves over stdio until the
// client leaves or ctx ends. [flag.ErrHelp] means that the flags were asked for and have been printed.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) error {
	o := Options{Logger: slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	fs := flag.NewFlagSet("example-server chat", flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.BoolVar(&o.LoseReceipts, "lose-receipts", false, "send messages and lose the proof, so that the effect of send_message is unknown")
	fs.BoolVar(&o.LegacyEvents, "legacy-events", false, "send events to clients of 2025-11-25 too, as log messages")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("example server: %q: no arguments are expected", strings.Join(fs.Args(), " "))
	}
	s, ext, err := New(o)
	if err != nil {
		return fmt.Errorf("example server: %w", err)
	}
	err = s.Run(ctx, ext.Transport(&mcp.IOTransport{Reader: io.NopCloser(in), Writer: open{out}}))
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		return fmt.Errorf("example server: %w", err)
	}
	return nil
}

// open is an output that somebody else closes.
type open struct{ io.Writer }

func (open) Close() error { return nil }
