package cli

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
)

// Main runs one command and gives the exit code of the process. env looks up environment variables, as [os.LookupEnv]
// does.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	// net/http tells the global logger about bytes that servers send unasked. They are a provider's, and nobody judged them.
	log.SetOutput(io.Discard)
	ctx, stop := signalled(context.Background())
	defer stop()
	if !isTerminal(stderr) { // a person at a terminal may stop the output, and wants all of it
		stderr = newPatient(stderr)
	}
	a := newApp(stdin, stdout, stderr, env)
	root := newRootCommand(a)
	root.SetArgs(args)
	err := refuseDebugSwitches(env)
	if err == nil {
		err = keepPrivate()
	}
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		return int(call.ExitOK)
	}
	return int(a.report(ctx, err, args))
}

// The causes of a context that a signal has ended.
var (
	errInterrupted = errors.New("interrupted")
	errTerminated  = errors.New("terminated")
)

// signalled gives a context that the first SIGINT or SIGTERM cancels, with a cause that says which. A second one ends the
// process as if nobody listened.
func signalled(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			signal.Stop(signals)
			if s == syscall.SIGTERM {
				cancel(errTerminated)
			} else {
				cancel(errInterrupted)
			}
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// newRootCommand is the whole command tree.
func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "ostiary",
		Short: "The doorkeeper between agents and MCP servers",
		Long: `Ostiary stands between agents and MCP servers. It freezes and pins what each server offers, lets a call through
only if it is allowed, approved and unchanged, says truthfully what is known of its effect, and records all of it.`,
		Example: `  ostiary init -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  ostiary serve
  ostiary call files.read_text_file path=/srv/docs/a.txt`,
		Version:           ostiary.Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("see "+c.CommandPath()+" --help", "%v", err)
	})
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "output" { // both are usual, and both are taken everywhere
			name = "out"
		}
		return pflag.NormalizedName(name)
	})
	flags := root.PersistentFlags()
	flags.StringVar(&a.configFile, "config", "", "configuration `file` (default ./ostiary.toml, else the user's own)")
	flags.StringVar(&a.data, "data", "", "data `directory` (default: server.data, else the user's state directory)")
	flags.BoolVar(&a.noInput, "no-input", false, "never ask anything")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "say nothing but errors on stderr")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "say more on stderr")
	root.AddGroup(&cobra.Group{ID: "run", Title: "RUN"}, &cobra.Group{ID: "decide", Title: "DECIDE"}, &cobra.Group{ID: "look", Title: "LOOK"}, &cobra.Group{ID: "set", Title: "SET UP"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("run", newServeCommand(a), newStdioCommand(a), newCallCommand(a))
	add("decide", newAdmitCommand(a), newApprovalsCommand(a), newQuarantineCommand(a), newEvidenceCommand(a), newTaintCommand(a))
	add("look", newStatusCommand(a), newToolsCommand(a), newDriftCommand(a), newPolicyCommand(a), newWorldCommand(a), newLedgerCommand(a), newDoctorCommand(a), newProbeCommand(a))
	add("set", newInitCommand(a), newConfigCommand(a), newVaultCommand(a), newLockCommand(a), newCompletionCommand(a), newVersionCommand(a), newExampleServerCommand(a))
	root.AddCommand(newExitCodesTopic())
	a.group(root)
	manners(root)
	return root
}
