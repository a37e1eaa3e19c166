package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/adminapi"
	"github.com/ostiary/ostiary/internal/config"
)

type initOptions struct {
	name       string
	allow      []string
	envFrom    []string
	credential string
	private    bool
	approval   string
	add        bool
	force      bool
	offline    bool
}

func newInitCommand(a *app) *cobra.Command {
	var o initOptions
	c := &cobra.Command{
		Use:   "init [flags] URL | init [flags] -- COMMAND [ARGUMENT…]",
		Short: "Look at a server and write a configuration for it",
		Long: `Connects to a server, lists the tools that it offers, and writes a commented ostiary.toml. Only the tools that you
name with --allow, or pick when asked, are allowed; the others stand in the file as comments. Without a terminal and
without --allow nothing is allowed. The server is asked for its tools and for nothing else: none is called.

A file that exists is never overwritten without --force; --add puts a further provider into it.`,
		Example: `  ostiary init --allow read_text_file,list_directory -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  ostiary init --add --name search --credential env:SEARCH_TOKEN https://search.example/mcp`,
		Args: takes("URL or COMMAND", "[ARGUMENT…]"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		dash := c.ArgsLenAtDash()
		return a.run(func(ctx context.Context, args []string) error { return a.init(ctx, o, args, dash) })(c, args)
	}
	f := c.Flags()
	f.StringVar(&o.name, "name", "", "`package` of the provider (default: made from the command or the URL)")
	f.StringSliceVar(&o.allow, "allow", nil, "`tools` to allow, separated by commas; may be repeated")
	f.StringSliceVar(&o.envFrom, "env-from", nil, "`names` of environment variables to hand on to the command")
	f.StringVar(&o.credential, "credential", "", "`reference` to the bearer token for the URL: env:NAME, or the name of a vault entry")
	f.BoolVar(&o.private, "allow-private-network", false, "the URL's host may resolve to private addresses")
	f.StringVar(&o.approval, "approval", "", "`rule` of the policy: never or required (default: never if tools are allowed)")
	f.BoolVar(&o.add, "add", false, "add the provider to the existing file")
	f.BoolVar(&o.force, "force", false, "overwrite the existing file")
	f.BoolVar(&o.offline, "offline", false, "do not connect; write the tools that --allow names")
	c.MarkFlagsMutuallyExclusive("add", "force")
	return endsWith(c, call.ExitProvider)
}

func (a *app) init(ctx context.Context, o initOptions, args []string, dash int) error {
	s, err := starter(o, args, dash)
	if err != nil {
		return err
	}
	path := a.configFile
	if path == "" {
		path = firstOf(a.lookup("OSTIARY_CONFIG"), defaultConfigFile)
	}
	existing, err := existingFile(path, o)
	if err != nil {
		return err
	}
	// The command is the user's, relative to where they are; in the file it is relative to the file.
	if len(s.Command) > 0 && strings.ContainsRune(s.Command[0], '/') {
		if s.Command[0], err = filepath.Abs(s.Command[0]); err != nil {
			return fail(call.ExitUsage, "", "find %s: %w", s.Command[0], err)
		}
	}
	if o.offline {
		for _, name := range o.allow {
			s.Tools = append(s.Tools, config.StarterTool{Name: name, Allowed: true})
		}
	} else if s, err = a.look(ctx, path, s, o.allow); err != nil {
		return err
	}
	if s.Approval == "" {
		s.Approval = "required"
		if len(s.ToolIDs()) > 0 {
			s.Approval = "never"
		}
	}
	text, export := []byte(s.File()), "default"
	if o.add {
		if text, export, err = s.AddTo(path, existing, a.env); err != nil {
			return err
		}
	} else if _, err := config.Parse(path, text, a.env); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	err = writeWhole(path, func(f *os.File) error {
		if err := f.Chmod(0o644); err != nil {
			return err
		}
		_, err := f.Write(text)
		return err
	})
	if err != nil {
		return err
	}
	allowed := len(s.ToolIDs())
	a.say("wrote %s: provider %s, %d of %s allowed, in export %s", path, s.Package, allowed, count(len(s.Tools), "tool"), export)
	switch {
	case allowed == 0:
		a.say("hint: no tool is allowed yet; take the # from those that may be called")
	case o.offline:
		a.say("hint: nothing is admitted yet: ostiary admit %s shows what the server offers", s.Package)
	default:
		if err := a.admitPicked(ctx, path, s.Package); err != nil {
			return fmt.Errorf("admit what was picked: %w", err)
		}
	}
	return nil
}

// admitPicked admits the definitions that the user has just picked, so that the gateway serves them at once. What screening
// has found something in waits for a closer look.
func (a *app) admitPicked(ctx context.Context, path, pkg string) error {
	a.configFile, a.loaded = path, nil
	_, dir, err := a.place()
	if err != nil {
		return err
	}
	if _, err := adminapi.Dial(ctx, dir); err == nil {
		a.say("hint: a gateway is running on %s: start it again, then ostiary admit %s", dir, pkg)
		return nil
	}
	return a.withReview(ctx, []string{pkg}, func(r adminapi.Gateway) error {
		all, err := r.Admissions(ctx, pkg)
		if err != nil {
			return err
		}
		d := ostiary.AdmissionDecision{Provider: pkg, Tools: map[string]string{}, Reason: "picked at ostiary init"}
		kept, names := 0, []string{pkg}
		for _, i := range all {
			switch {
			case !waits(i):
			case len(i.Findings) > 0:
				kept, names = kept+1, append(names, firstOf(visible(i.Tool), "--itself"))
				a.say("%s is not admitted: screening found %s", itemName(i), count(len(i.Findings), "thing"))
			case i.Standing == "new", i.Tool == "" && slices.Equal(i.Fields, []string{"/origin"}): // the command is the user's own
				d.Tools[i.Tool] = i.Digest
			default:
				kept, names = kept+1, append(names, firstOf(visible(i.Tool), "--itself"))
				a.say("%s is not admitted: it is not as it was admitted before", itemName(i))
			}
		}
		if len(d.Tools) > 0 {
			if _, err := r.Admit(ctx, d); err != nil {
				return err
			}
		}
		if kept > 0 {
			a.say("hint: ostiary admit %s shows it, and asks; without a terminal: ostiary admit %s", pkg, strings.Join(names, " "))
		}
		if slices.Contains(names, "--itself") {
			a.say("hint: none of its tools can be used until %s itself is admitted", pkg)
		}
		return nil
	})
}

// starter reads the command line into what is known before the server was asked.
func starter(o initOptions, args []string, dash int) (config.Starter, error) {
	s := config.Starter{Package: o.name, EnvFrom: o.envFrom, Credential: o.credential, Private: o.private, Approval: o.approval}
	if o.approval != "" && o.approval != "never" && o.approval != "required" {
		return s, usage("", "--approval: %q: expected never or required", o.approval)
	}
	switch {
	case dash == 0:
		s.Command = args
		if o.credential != "" || o.private {
			return s, usage("use --env-from to hand a secret on", "--credential and --allow-private-network are for a URL")
		}
	case dash > 0:
		return s, usage("write: ostiary init [flags] -- COMMAND ARGS", "%q stands before the --", args[0])
	case len(args) == 1 && strings.Contains(args[0], "://"):
		s.URL = args[0]
		if len(o.envFrom) > 0 {
			return s, usage("use --credential", "--env-from is for a command")
		}
	default:
		return s, usage("put -- before the command", "%q is no URL", args[0])
	}
	if s.Package == "" {
		s.Package = guessPackage(s)
	}
	if err := call.CheckPackage(s.Package); err != nil {
		return s, usage("choose one with --name", "%v", err)
	}
	return s, nil
}

// guessPackage makes a package of what a server is called.
func guessPackage(s config.Starter) string {
	word := ""
	if s.URL != "" {
		if u, err := url.Parse(s.URL); err == nil {
			for _, label := range strings.Split(u.Hostname(), ".") {
				if label != "mcp" && label != "api" && label != "www" {
					word = label
					break
				}
			}
		}
	} else {
		word = filepath.Base(s.Command[0])
		runners := []string{"npx", "uvx", "node", "python", "python3", "bunx", "deno", "docker", "uv", "pipx", "bun", "pnpm"}
		for _, arg := range s.Command[1:] {
			if !slices.Contains(runners, word) || strings.HasPrefix(arg, "-") || arg == "run" || arg == "dlx" {
				continue
			}
			word = arg
			break
		}
		word = word[strings.LastIndexByte(word, '/')+1:]
		word, _, _ = strings.Cut(word, "@")
		word = strings.TrimSuffix(word, filepath.Ext(word))
	}
	word = strings.ToLower(word)
	for _, fix := range []string{"mcp-server-", "server-", "mcp-"} {
		word = strings.TrimPrefix(word, fix)
	}
	for _, fix := range []string{"-mcp-server", "-server", "-mcp"} {
		word = strings.TrimSuffix(word, fix)
	}
	word = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, word)
	if call.CheckPackage(word) != nil {
		return "server"
	}
	return word
}

// existingFile reads what is at the path, if that is wanted, and refuses what must not be overwritten.
func existingFile(path string, o initOptions) ([]byte, error) {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if o.add {
			return nil, usage("leave out --add", "%s does not exist", path)
		}
		return nil, nil
	case err != nil:
		return nil, fail(call.ExitUsage, "", "read %s: %w", path, err)
	case o.add, o.force:
		return b, nil
	default:
		return nil, usage("add the provider with --add, or overwrite the file with --force", "%s exists already", path)
	}
}

// look connects to the server and decides, with the user, which of its tools are allowed.
func (a *app) look(ctx context.Context, path string, s config.Starter, allow []string) (config.Starter, error) {
	c, err := config.Parse(path, []byte(s.File()), a.env)
	if err != nil {
		return s, err
	}
	a.say("looking at %s", s.Package)
	dir, err := a.dataDir(c)
	if err != nil {
		return s, err
	}
	in, err := ostiary.Inspect(ctx, ostiary.Options{Config: c, DataDir: dir, Logger: a.logger(slog.LevelWarn), LookupEnv: a.env, OnPhase: a.phases()}, s.Package)
	if err != nil {
		return s, fail(call.ExitProvider, "", "%w", err)
	}
	s.Revision = in.Revision
	for _, t := range in.Tools {
		if t.Problem != "" && !strings.HasSuffix(t.Problem, "it needs an alias") {
			a.say("tool %s cannot be used: %s", cleanLine(t.Name, 80), cleanLine(t.Problem, 200))
			continue
		}
		s.Tools = append(s.Tools, config.StarterTool{Name: t.Name, Summary: firstOf(t.Title, t.Description), ReadOnly: t.ReadOnly})
	}
	if len(allow) == 0 && a.canPrompt() {
		if allow, err = a.pick(s.Tools); err != nil {
			return s, err
		}
	}
	for _, name := range allow {
		i := slices.IndexFunc(s.Tools, func(t config.StarterTool) bool { return t.Name == name })
		if i < 0 {
			names := make([]string, len(s.Tools))
			for i, t := range s.Tools {
				names[i] = cleanLine(t.Name, 80)
			}
			return s, usage("it offers: "+strings.Join(names, ", "), "%s has no tool %q", s.Package, name)
		}
		s.Tools[i].Allowed = true
	}
	return s, nil
}

// pick asks which tools may be called. An empty answer allows none.
func (a *app) pick(tools []config.StarterTool) ([]string, error) {
	for i, t := range tools {
		fmt.Fprintf(a.err, "%4d  %-32s %s\n", i+1, cleanLine(t.Name, 60), cleanLine(t.Summary, 80))
	}
	fmt.Fprint(a.err, "Which tools may be called? Numbers or names, with blanks between; nothing for none: ")
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && answer == "" {
		return nil, nil // the end of the input is no answer, and allows nothing
	}
	var picked []string
	for _, word := range strings.FieldsFunc(answer, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\n' || r == '\r' }) {
		if n, err := strconv.Atoi(word); err == nil && n >= 1 && n <= len(tools) {
			word = tools[n-1].Name
		}
		picked = append(picked, word)
	}
	return picked, nil
}
