package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
)

type probeOptions struct {
	env        []string
	credential string
	private    bool
	timeout    time.Duration
	asJSON     bool
}

func newProbeCommand(a *app) *cobra.Command {
	var o probeOptions
	c := &cobra.Command{
		Use:   "probe [flags] URL | probe [flags] COMMAND [ARGUMENT…]",
		Short: "Tell the author of a server what it has",
		Long: `Connects to an MCP server, once for 2026-07-28 and once for 2025-11-25, lists its tools and tells what it finds: which
revisions work and how long they take, what the server declares, which extensions hold and why not, the scopes of each
tool, and what is wrong: names that do not fit, schemas and header annotations that cannot be used, scopes that do not
resolve, definitions that screening finds something in, events that break a rule, noise on stdout, a process that does not
end. No tool is called, no configuration is needed, and nothing is kept.

A command is started without a shell and, as in a provider, with little more than PATH and HOME of the environment;
--env hands more on. Flags come before the command.`,
		Example: `  ostiary probe ./my-server --verbose
  ostiary probe --env API_KEY --env REGION=eu npx -y my-server
  ostiary probe --credential env:MY_TOKEN https://server.example/mcp`,
		Args: takes("URL or COMMAND", "[ARGUMENT…]"),
		RunE: a.run(func(ctx context.Context, args []string) error { return a.probe(ctx, o, args) }),
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringArrayVar(&o.env, "env", nil, "environment variable for the command, `NAME[=VALUE]`; without a value it is copied; may be repeated")
	f.StringVar(&o.credential, "credential", "", "`reference` to the bearer token for the URL: env:NAME")
	f.BoolVar(&o.private, "allow-private-network", false, "the URL's host may resolve to private addresses")
	f.DurationVar(&o.timeout, "timeout", 15*time.Second, "`time` for each connection, from its start to its list of tools")
	jsonFlag(c, &o.asJSON)
	return endsWith(c, call.ExitFailed)
}

func (a *app) probe(ctx context.Context, o probeOptions, args []string) error {
	target, err := a.probed(o, args)
	if err != nil {
		return err
	}
	target.Logger = a.logger(slog.LevelError)
	target.LookupEnv = a.env
	if !o.asJSON && isTerminal(a.err) && !a.quiet {
		target.OnConnect = func(revision string) { a.say("trying %s", revision) }
	}
	r, err := ostiary.Probe(ctx, target)
	if err != nil {
		return err
	}
	if o.asJSON {
		err = a.printJSON(r)
	} else {
		err = a.printProbe(r)
	}
	if err != nil || r.Sound {
		return err
	}
	return &failure{exit: call.ExitFailed, code: "unsound", message: counted(r, "fault")}
}

// probed reads what is to be looked at.
func (a *app) probed(o probeOptions, args []string) (t ostiary.ProbeOptions, err error) {
	t.Timeout = o.timeout
	if o.timeout <= 0 {
		return t, usage("", "--timeout: expected more than nothing")
	}
	if !strings.Contains(args[0], "://") {
		if o.credential != "" || o.private {
			return t, usage("use --env to hand a secret on", "--credential and --allow-private-network are for a URL")
		}
		t.Command, t.Env = args, map[string]string{}
		for _, e := range o.env {
			name, value, literal := strings.Cut(e, "=")
			switch _, set := a.env(name); {
			case name == "":
				return t, usage("", "--env: expected NAME or NAME=VALUE")
			case literal:
				t.Env[name] = value
			case !set:
				return t, usage("set it, or write --env "+name+"=VALUE", "the environment variable %s is not set", name)
			default:
				t.EnvFrom = append(t.EnvFrom, name)
			}
		}
		return t, nil
	}
	switch {
	case len(args) > 1:
		return t, usage("", "unexpected argument %q", args[1])
	case len(o.env) > 0:
		return t, usage("use --credential", "--env is for a command")
	}
	t.URL, t.AllowPrivateNet = args[0], o.private
	if o.credential == "" {
		return t, nil
	}
	name, ok := strings.CutPrefix(o.credential, "env:")
	if !ok || name == "" {
		return t, usage("", "--credential: expected env: and the name of an environment variable")
	}
	if a.lookup(name) == "" {
		return t, usage("set it to the bearer token for the server", "the environment variable %s is not set", name)
	}
	t.Credential = func() (string, error) { return a.lookup(name), nil }
	return t, nil
}

func (a *app) printProbe(r *ostiary.Probed) error {
	line := func(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }
	if r.ServerName != "" {
		line("%s over %s", cleanLine(r.ServerName+" "+r.ServerVersion, 100), r.Transport)
	}
	for _, v := range r.Revisions {
		line("%s  %s", v.Revision, connectionWord(v))
	}
	for _, e := range r.Extensions {
		word := strings.TrimSpace("holds in " + join(e.Negotiated) + " " + cleanLine(e.Reason, 200))
		if len(e.Negotiated) == 0 {
			word = "does not hold: " + cleanLine(e.Reason, 200)
		}
		line("extension %s %s: %s", cleanLine(e.Name, 100), cleanLine(string(e.Settings), 60), word)
	}
	if len(r.Tools) > 0 {
		rows := make([][]string, len(r.Tools))
		for i, t := range r.Tools {
			rows[i] = []string{cleanLine(t.Name, 60), cleanLine(scopeWords(t.Observe), 80), cleanLine(scopeWords(t.Publish), 80)}
		}
		line("")
		if err := table(a.out, []string{"TOOL", "OBSERVES", "PUBLISHES"}, rows); err != nil {
			return err
		}
	}
	if len(r.Findings) > 0 {
		line("")
	}
	for _, f := range r.Findings {
		line("%-8s %s: %s", f.Severity, cleanLine(f.Where, 100), cleanLine(f.What, 1000))
		if f.Hint != "" {
			line("         hint: %s", cleanLine(f.Hint, 200))
		}
	}
	word := "sound"
	if !r.Sound {
		word = "not sound"
	}
	_, err := fmt.Fprintf(a.out, "\n%s: %s, %s\n", word, counted(r, "fault"), counted(r, "warning"))
	return err
}

// wholeServer is the scope of a tool that declares none, as long as its server is no provider yet.
const wholeServer = "aurora:mcp:probe"

func scopeWords(scopes []string) string {
	words := slices.Clone(scopes)
	for i, s := range words {
		if s == wholeServer {
			words[i] = "(whole server)"
		}
	}
	return strings.Join(words, " ")
}

// connectionWord tells of one connection on one line.
func connectionWord(v ostiary.ProbedRevision) string {
	if !v.Works {
		return "does not work: " + cleanLine(v.Error, 200)
	}
	words := []string{"works", "ready in " + shortTime(v.Ready)}
	if v.Pages > 0 {
		words = append(words, fmt.Sprintf("%s listed in %s", count(v.Tools, "tool"), shortTime(v.Listed)))
	}
	if v.ListChanged {
		words = append(words, "announces changes of its tools")
	} else {
		words = append(words, "does not announce changes of its tools")
	}
	if v.Exit != "" {
		words = append(words, "ended with "+v.Exit)
	}
	return strings.Join(words, ", ")
}

func shortTime(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }

func counted(r *ostiary.Probed, severity string) string {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == severity {
			n++
		}
	}
	return count(n, severity)
}
