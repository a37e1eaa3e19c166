package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/adminapi"
	"github.com/ostiary/ostiary/internal/config"
)

// withReview gives fn the gateway that runs on the data directory. Without one, fn gets what the data directory knows if
// only is nil; else the providers that it names, all if it is empty, are started in this process first.
func (a *app) withReview(ctx context.Context, only []string, fn func(adminapi.Gateway) error) error {
	running, dir, err := a.running(ctx)
	if err != nil {
		return err
	}
	if running != nil {
		return fn(running)
	}
	if only == nil {
		if err := usedBefore(ctx, dir); err != nil {
			return err
		}
	}
	// What waits is said by the commands themselves, and need not be in the log too.
	return a.withHostOptions(ctx, slog.LevelError, func(o *ostiary.Options) { o.Only, o.NoEndpoint, o.Offline = only, true, only == nil }, func(h *ostiary.Host, _ *config.Config) error {
		return fn(h)
	})
}

// usedBefore refuses a data directory that nothing has been kept in. A command that only looks must not make one: its keys
// and its ledger would be there for good, because of a word that was mistyped.
func usedBefore(ctx context.Context, dir string) error {
	l, err := ostiary.OpenLedger(ctx, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(call.ExitStore, "no gateway has run on this data directory yet: ostiary serve or ostiary admit PROVIDER makes it; name another with --data",
			"open data directory: %w", err)
	case err == nil:
		return l.Close()
	}
	return nil // whoever opens it in earnest says what is wrong with it
}

// lookable refuses a data directory that nothing has been kept in, and on which no gateway runs.
func (a *app) lookable(ctx context.Context) error {
	running, dir, err := a.running(ctx)
	if err != nil || running != nil {
		return err
	}
	return usedBefore(ctx, dir)
}

// withRunning gives fn the gateway that runs on the data directory, and fails if there is none.
func (a *app) withRunning(ctx context.Context, fn func(*adminapi.Client) error) error {
	_, dir, err := a.place()
	if err != nil {
		return err
	}
	running, err := adminapi.Dial(ctx, dir)
	if errors.Is(err, adminapi.ErrNotRunning) {
		return fail(call.ExitStore, "start it with ostiary serve, or name its data directory with --data", "no gateway is running on %s", dir)
	}
	if err != nil {
		return err
	}
	return fn(running)
}

// providerNamed checks that the configuration has a provider.
func (a *app) providerNamed(pkg string) (config.Provider, error) {
	c, err := a.config()
	if err != nil {
		return config.Provider{}, err
	}
	p, ok := c.Provider(pkg)
	if !ok {
		names := make([]string, len(c.Providers))
		for i, p := range c.Providers {
			names[i] = p.Profile.Package
		}
		hint := ""
		if len(names) > 0 {
			hint = "providers: " + join(names)
		}
		return p, usage(hint, "there is no provider %q in %s", pkg, c.File)
	}
	return p, nil
}

// rawName is the raw name of a provider's tool, however the tool is named. A name that is not allowed stays as it is: it may
// be that of a tool that was allowed once.
func rawName(p config.Provider, name string) string {
	for _, t := range p.Profile.AllowedTools {
		if slices.Contains(forms(p.Profile.Package, t.Name(), t.Raw), name) {
			return t.Raw
		}
	}
	return name
}

// ask puts a question and reads a line. false: the input has ended, which is no answer.
func (a *app) ask(in *bufio.Reader, question string) (string, bool) {
	fmt.Fprint(a.err, question)
	line, err := in.ReadString('\n')
	if err != nil && line == "" {
		fmt.Fprintln(a.err)
		return "", false
	}
	return strings.ToLower(strings.TrimSpace(line)), true
}

// writeOut writes a result to a file, or to stdout for "" and "-".
func (a *app) writeOut(file string, b []byte) error {
	if file == "" || file == "-" {
		_, err := a.out.Write(b)
		return err
	}
	return writeWhole(file, func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
}

// indented begins every line with the same blanks.
func indented(text, blanks string) string {
	return blanks + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+blanks)
}
