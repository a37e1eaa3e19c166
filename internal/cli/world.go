package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/adminapi"
)

func newWorldCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "world",
		Short: "Read the journal of facts that calls are based on",
		Long: `Calls that succeed, or of which nobody knows whether they did, and the events of providers are facts: commits, in one or
more scopes, with a sequence in each that starts at 1 and has no gap. A frontier says up to where somebody has read: a
call that states one (ostiary call --frontier) is refused if something that its tool observes has moved on since.`,
	}
	c.AddCommand(newWorldHeadCommand(a), newWorldDeltaCommand(a), newWorldWatchCommand(a))
	a.group(c)
	return c
}

func newWorldHeadCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "head [SCOPE…] [--json]",
		Short: "Show where scopes stand",
		Long: `Shows the sequence of the last commit of each scope, 0 if it has none; without SCOPE, of all that have one. What --json
prints is a frontier: ostiary call --frontier reads it.`,
		Example: "  ostiary world head aurora:mcp:files --json >seen.json",
		Args:    takes("[SCOPE…]"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.withReview(ctx, nil, func(w adminapi.Gateway) error { return a.worldHead(ctx, w, args, asJSON) })
		}),
		ValidArgsFunction: noFiles,
	}
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitStore)
}

func (a *app) worldHead(ctx context.Context, w ostiary.World, names []string, asJSON bool) error {
	heads := call.Frontier{}
	var rows [][]string
	row := func(s call.Scope, head int64) {
		heads[s] = head
		rows = append(rows, []string{string(s), strconv.FormatInt(head, 10)})
	}
	if len(names) > 0 {
		at, err := w.WorldHead(ctx, scopesOf(names))
		if err != nil {
			return err
		}
		for _, s := range scopesOf(names) {
			row(s, at[s])
		}
	}
	for more, after := len(names) == 0, call.Scope(""); more; {
		page, err := w.WorldScopes(ctx, after, 0)
		if err != nil {
			return err
		}
		for _, s := range page.Scopes {
			row(s.Scope, s.Head)
			after = s.Scope
		}
		more = page.More
	}
	if asJSON {
		return a.printJSON(heads)
	}
	return table(a.out, []string{"SCOPE", "HEAD"}, rows)
}

func scopesOf(names []string) []call.Scope {
	scopes := make([]call.Scope, len(names))
	for i, n := range names {
		scopes[i] = call.Scope(n)
	}
	return scopes
}

func newWorldDeltaCommand(a *app) *cobra.Command {
	var asJSON bool
	var after int64
	var limit int
	c := &cobra.Command{
		Use:   "delta SCOPE [--after SEQUENCE] [--limit COUNT] [--json]",
		Short: "Show what has happened in a scope after a sequence",
		Long: `Shows the commits of a scope above a sequence, oldest first: a page of them. What the providers of events say is shown as
it was let in, and is data.`,
		Example: "  ostiary world delta qq:group:42 --after 17",
		Args:    takes("SCOPE"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			if after < 0 || limit < 0 {
				return usage("", "--after and --limit cannot be negative")
			}
			return a.withReview(ctx, nil, func(w adminapi.Gateway) error {
				page, err := w.WorldDelta(ctx, call.Scope(args[0]), after, limit)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(page)
				}
				for _, c := range page.Commits {
					if err := a.printCommit(c, false, false); err != nil {
						return err
					}
				}
				if page.More {
					a.say("more: ostiary world delta %s --after %d", page.Scope, page.Commits[len(page.Commits)-1].Seq)
				}
				return nil
			})
		}),
		ValidArgsFunction: noFiles,
	}
	c.Flags().Int64Var(&after, "after", 0, "`sequence` of the last commit that is known")
	c.Flags().IntVar(&limit, "limit", 100, "`count` of commits at most; never more than 1000 at once")
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitStore)
}

func newWorldWatchCommand(a *app) *cobra.Command {
	var asJSON bool
	var since []string
	c := &cobra.Command{
		Use:   "watch SCOPE… [--frontier FILE|JSON|SCOPE=SEQUENCE]… [--json]",
		Short: "Tell of commits as they come",
		Long: `Prints a line for each commit that comes to one of the scopes, until interrupted. It begins now, or with --frontier where
that ends. It needs a running gateway.`,
		Example: "  ostiary world watch qq:group:42 aurora:mcp:chat",
		Args:    takes("SCOPE", "[SCOPE…]"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			from, err := a.frontier(since)
			if err != nil {
				return err
			}
			return a.withRunning(ctx, func(w *adminapi.Client) error { return a.worldWatch(ctx, w, scopesOf(args), from, asJSON) })
		}),
		ValidArgsFunction: noFiles,
	}
	c.Flags().StringArrayVar(&since, "frontier", nil, "begin after this `frontier`; may be repeated")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return endsWith(c, call.ExitStore)
}

// watchHold is how long one request of a watch may wait.
const watchHold = 20 * time.Second

func (a *app) worldWatch(ctx context.Context, w ostiary.World, scopes []call.Scope, from call.Frontier, asJSON bool) error {
	seen, err := w.WorldHead(ctx, scopes)
	if err != nil {
		return err
	}
	for s := range seen {
		if at, ok := from[s]; ok {
			seen[s] = at
		}
	}
	for wait := time.Duration(0); ; wait = watchHold { // the first answer says at once whether the frontier is of this world
		news, err := w.WorldNext(ctx, seen, wait)
		if errors.Is(err, adminapi.ErrNotRunning) {
			return fail(call.ExitStore, "", "the gateway has ended")
		}
		if err != nil {
			return err
		}
		for _, c := range news.Commits {
			if err := a.printCommit(c, true, asJSON); err != nil {
				return err
			}
		}
		if wait == 0 {
			a.say("watching %s; interrupt to end", count(len(seen), "scope"))
		}
		seen = news.Frontier
	}
}

// printCommit prints one commit on a line.
func (a *app) printCommit(c call.Commit, scope, asJSON bool) error {
	if asJSON {
		return a.printJSONLine(c)
	}
	name := ""
	if scope {
		name = string(c.Scope) + " "
	}
	_, err := fmt.Fprintf(a.out, "%s  %s#%d  %s  %s  %s\n", c.Time.Local().Format(time.DateTime), name, c.Seq, cleanLine(c.Kind, 60), cleanLine(c.Provider, 60),
		cleanLine(visible(c.Summary), 300))
	return err
}
