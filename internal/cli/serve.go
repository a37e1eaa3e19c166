package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/adminapi"
)

func newServeCommand(a *app) *cobra.Command {
	var locked string
	c := &cobra.Command{
		Use:   "serve [--locked FILE]",
		Short: "Serve the exports over HTTP",
		Long: `Starts every provider, and when all of the start has succeeded serves the exports over HTTP. One line on stderr says
that it is ready. With --locked it starts only if everything that is offered equals the lock file. /healthz answers as soon as the process listens, /readyz once it is ready.

SIGTERM stops new calls, lets those in work end within server.drain_seconds, closes the providers, and exits 0. SIGINT
does the same and exits 130. A second signal ends the process at once.`,
		Example: "  OSTIARY_TOKEN=$(openssl rand -hex 32) ostiary serve",
		Args:    takes(),
		RunE:    a.run(func(ctx context.Context, _ []string) error { return a.serve(ctx, locked) }),
	}
	c.Flags().StringVar(&locked, "locked", "", "lock `file` that everything offered must equal (ostiary lock)")
	return endsWith(c, call.ExitHeld, call.ExitProvider, call.ExitStore)
}

func (a *app) serve(ctx context.Context, locked string) error {
	calmCollector()
	var lock []byte
	if locked != "" {
		var err error
		if lock, err = a.readInput(locked); err != nil {
			return err
		}
	}
	h, c, err := a.host(slog.LevelInfo, func(o *ostiary.Options) { o.Lock = lock })
	if err != nil {
		return err
	}
	if !a.verbose {
		a.warnings(c)
	}
	if err := h.Start(ctx); err != nil {
		if errors.Is(context.Cause(ctx), errTerminated) {
			return nil // asked to end before it had begun
		}
		return startFailure(ctx, err)
	}
	ended := a.serveUntil(ctx, h)
	// The drain has its own bound; closing the providers gets as much again as they may take.
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Server.Drain+stopWithin)
	defer cancel()
	if err := h.Stop(stopCtx); err != nil {
		return errors.Join(ended, fmt.Errorf("stop: %w", err))
	}
	return ended
}

// serveUntil opens the operator's socket, says that the gateway is ready, and waits until a signal or a fault ends it.
func (a *app) serveUntil(ctx context.Context, h *ostiary.Host) (err error) {
	_, dir, err := a.place()
	if err != nil {
		return err
	}
	admin, err := adminapi.Serve(dir, h, a.logger(slog.LevelInfo).With("component", "adminapi"))
	if err != nil {
		return err
	}
	defer func() {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adminCloses)
		defer cancel()
		_ = admin.Close(closeCtx) // a command that still waits for its answer is cut off; that is no fault of the gateway
	}()
	status, err := h.Status(ctx)
	if err != nil {
		return err
	}
	a.say("%s", readyLine(status))
	select {
	case <-h.Done():
		return fail(call.ExitFailed, "", "the listener has ended by itself")
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errInterrupted) {
			return errInterrupted
		}
		return nil // terminated: that is how a gateway ends in order
	}
}

// adminCloses bounds how long a stop waits for commands that were answered just then.
const adminCloses = 2 * time.Second

// readyLine is the one line that says what is served: address, providers, tools, exports.
func readyLine(s ostiary.Status) string {
	up, tools := 0, 0
	for _, p := range s.Providers {
		if p.Available {
			up++
			if p.Counts != nil {
				tools += p.Counts.Allowed
			}
		}
	}
	providers := count(len(s.Providers), "provider")
	if down := len(s.Providers) - up; down > 0 {
		providers += fmt.Sprintf(" (%d unavailable)", down)
	}
	parts := []string{"ready: http://" + s.Address, providers, count(tools, "tool")}
	for _, e := range s.Exports {
		if e.Served {
			parts = append(parts, fmt.Sprintf("export %s at %s (%s)", e.Name, e.Path, count(len(e.Tools), "tool")))
		} else {
			parts = append(parts, fmt.Sprintf("export %s not served: no token is set", e.Name))
		}
	}
	if len(s.Exports) == 0 {
		parts = append(parts, "no exports")
	}
	return strings.Join(parts, " · ")
}
