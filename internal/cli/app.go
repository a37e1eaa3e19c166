package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/adminapi"
	"github.com/ostiary/ostiary/internal/config"
)

// app is what commands share: the streams, the global flags, and lazy ways to what lies behind them.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)

	configFile string
	data       string
	noInput    bool
	quiet      bool
	verbose    bool

	loaded *config.Config // once it was read

	asTerminal bool // questions may be asked although the streams are no terminal; for tests

	ran bool // a command's own code has begun, so an error is no longer one of usage
}

func newApp(in io.Reader, out, err io.Writer, env func(string) (string, bool)) *app {
	return &app{in: in, out: out, err: err, env: env}
}

// run makes a command's function into what cobra calls.
func (a *app) run(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		a.ran = true
		return fn(c.Context(), args)
	}
}

// group makes a command that only holds others: alone it shows its help, with a word that it does not know it says so.
func (a *app) group(c *cobra.Command) {
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		hint := "see " + c.CommandPath() + " --help"
		if s := c.SuggestionsFor(args[0]); len(s) > 0 {
			hint = "did you mean " + c.CommandPath() + " " + s[0] + "?"
		}
		return usage(hint, "unknown command %q for %q", args[0], c.CommandPath())
	}
}

// lookup reads a variable; "" if it is not set.
func (a *app) lookup(name string) string {
	v, _ := a.env(name)
	return v
}

// configPath finds the configuration file: the flag, OSTIARY_CONFIG, ./ostiary.toml, the user's own.
func (a *app) configPath() (string, error) {
	if a.configFile != "" {
		return a.configFile, nil
	}
	if v := a.lookup("OSTIARY_CONFIG"); v != "" {
		return v, nil
	}
	candidates := []string{defaultConfigFile}
	if dir := a.userDir("XDG_CONFIG_HOME", ".config", "APPDATA"); dir != "" {
		candidates = append(candidates, filepath.Join(dir, "ostiary", defaultConfigFile))
	}
	for _, c := range candidates {
		if _, err := os.Stat(c); err == nil {
			return c, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fail(call.ExitUsage, "", "read configuration: %w", err)
		}
	}
	return "", usage("make one with ostiary init, or name one with --config", "%w: looked for %s", errNoConfig, join(candidates))
}

const defaultConfigFile = "ostiary.toml"

// errNoConfig says that no file was named, and that none is where one is looked for.
var errNoConfig = errors.New("there is no configuration")

// userDir is a folder of the user's by the XDG rules, or by the variable that Windows has for it; "" if neither is known.
func (a *app) userDir(xdg, below, windows string) string {
	if v := a.lookup(xdg); filepath.IsAbs(v) {
		return v
	}
	if runtime.GOOS == "windows" {
		return a.lookup(windows)
	}
	if home := a.lookup("HOME"); home != "" {
		return filepath.Join(home, below)
	}
	return ""
}

// config loads the configuration and says its warnings.
func (a *app) config() (*config.Config, error) {
	if a.loaded != nil {
		return a.loaded, nil
	}
	path, err := a.configPath()
	if err != nil {
		return nil, err
	}
	c, err := config.Load(path, a.env)
	if err != nil {
		if _, ok := errors.AsType[config.Faults](err); ok {
			return nil, err
		}
		return nil, fail(call.ExitUsage, "name another file with --config", "%w", err)
	}
	if a.verbose {
		a.warnings(c)
	}
	a.loaded = c
	return c, nil
}

func (a *app) warnings(c *config.Config) {
	for _, w := range c.Warnings {
		a.say("warning: %s", w)
		if w.Hint != "" {
			a.say("  hint: %s", w.Hint)
		}
	}
}

// dataDir finds the data directory: the flag, OSTIARY_DATA, the configuration, the user's own. c may be nil.
func (a *app) dataDir(c *config.Config) (string, error) {
	if a.data != "" {
		return a.data, nil
	}
	if v := a.lookup("OSTIARY_DATA"); v != "" {
		return v, nil
	}
	if c != nil && c.Server.Data != "" {
		return c.Server.Data, nil
	}
	if dir := a.userDir("XDG_STATE_HOME", filepath.Join(".local", "state"), "LOCALAPPDATA"); dir != "" {
		return filepath.Join(dir, "ostiary"), nil
	}
	return "", usage("name one with --data", "there is no place for a data directory: HOME is not set")
}

// logger writes the log to stderr. Commands that end by themselves log only what needs attention.
func (a *app) logger(level slog.Level) *slog.Logger {
	switch {
	case a.verbose:
		level = slog.LevelDebug
	case a.quiet:
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
}

// place finds the configuration and its data directory.
func (a *app) place() (*config.Config, string, error) {
	c, err := a.config()
	if err != nil {
		return nil, "", err
	}
	dir, err := a.dataDir(c)
	return c, dir, err
}

// host makes a host on the configuration and the data directory; it is not started.
func (a *app) host(level slog.Level, change func(*ostiary.Options)) (*ostiary.Host, *config.Config, error) {
	c, dir, err := a.place()
	if err != nil {
		return nil, nil, err
	}
	o := ostiary.Options{Config: c, DataDir: dir, Logger: a.logger(level), LookupEnv: a.env, OnPhase: a.phases()}
	if change != nil {
		change(&o)
	}
	h, err := ostiary.New(o)
	if err != nil {
		return nil, nil, fail(call.ExitUsage, "", "%w", err)
	}
	return h, c, nil
}

// phases tells a person how the start of each provider gets on.
func (a *app) phases() func(provider, phase string) {
	if a.quiet || !a.verbose && !isTerminal(a.err) {
		return nil
	}
	return func(provider, phase string) { a.say("%s: %s", provider, phase) }
}

// stopWithin bounds the end of a host that a command has started for itself.
const stopWithin = 30 * time.Second

// withHost starts a host of the command's own, without an inbound side, for as long as fn runs.
func (a *app) withHost(ctx context.Context, only []string, fn func(*ostiary.Host, *config.Config) error) error {
	return a.withHostOptions(ctx, slog.LevelWarn, func(o *ostiary.Options) { o.Only, o.NoEndpoint = only, true }, fn)
}

func (a *app) withHostOptions(ctx context.Context, level slog.Level, change func(*ostiary.Options), fn func(*ostiary.Host, *config.Config) error) (err error) {
	h, c, err := a.host(level, change)
	if err != nil {
		return err
	}
	if err := h.Start(ctx); err != nil {
		return startFailure(ctx, err)
	}
	defer func() {
		// The command may have ended because ctx did; the host still has to let go of its processes and its store.
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		if serr := h.Stop(stopCtx); serr != nil && err == nil {
			err = fmt.Errorf("stop: %w", serr)
		}
	}()
	return fn(h, c)
}

// running is the gateway that runs on the data directory, nil if there is none, and the directory.
func (a *app) running(ctx context.Context) (*adminapi.Client, string, error) {
	_, dir, err := a.place()
	if err != nil {
		return nil, "", err
	}
	c, err := adminapi.Dial(ctx, dir)
	if errors.Is(err, adminapi.ErrNotRunning) {
		return nil, dir, nil
	}
	return c, dir, err
}

// withOperations gives fn the gateway that runs on the data directory, or starts what is needed in this process. only
// limits the latter to some providers; nil: all.
func (a *app) withOperations(ctx context.Context, only []string, fn func(ostiary.Operations) error) error {
	running, _, err := a.running(ctx)
	if err != nil {
		return err
	}
	if running != nil {
		return fn(running)
	}
	return a.withHost(ctx, only, func(h *ostiary.Host, _ *config.Config) error { return fn(h) })
}

// startFailure says why a host did not start: the store, a provider, or anything else.
func startFailure(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errInterrupted) || errors.Is(cause, errTerminated) {
		return cause // it is not the provider that failed
	}
	start, isStart := errors.AsType[*ostiary.StartError](err)
	switch {
	case errors.Is(err, ostiary.ErrLocked):
		return fail(call.ExitStore, "a gateway runs on this data directory: point clients at its URL, or give this command a directory of its own with --data", "%w", err)
	case errors.Is(err, ostiary.ErrUnavailable), errors.Is(err, ostiary.ErrDamaged):
		return fail(call.ExitStore, "", "%w", err)
	case errors.Is(err, ostiary.ErrNotLocked):
		return fail(call.ExitHeld, "look at the changes with ostiary drift; if they are meant, let them in with ostiary admit PROVIDER, then write the lock again with ostiary lock", "%w", err)
	case isStart:
		hint := "ostiary doctor looks closer"
		if start.Advice != "" {
			hint = start.Advice + "; " + hint
		}
		return fail(call.ExitProvider, hint, "%w", err)
	default:
		return fail(call.ExitFailed, "", "%w", err)
	}
}

func join(words []string) string {
	out := ""
	for i, w := range words {
		if i > 0 {
			out += ", "
		}
		out += w
	}
	return out
}
