package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/adminapi"
)

func newTaintCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "taint",
		Short: "Look at what sessions have read, and forget it",
		Long: `A session that has read both what is private and what strangers may have written has to ask before a call that could carry
data out, and rules can look at what it has read. What a caller without a protocol session has read counts for all that
this principal does without one.`,
	}
	c.AddCommand(newTaintListCommand(a), newTaintDropCommand(a))
	a.group(c)
	return c
}

func newTaintListCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list [--json]",
		Short:   "List the sessions that have read something",
		Example: "  ostiary taint list",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			return a.withReview(ctx, nil, func(r adminapi.Gateway) error {
				all, err := r.Taints(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(slices.Concat([]ostiary.TaintInfo{}, all))
				}
				rows := make([][]string, len(all))
				for i, t := range all {
					rows[i] = []string{visible(t.Principal), orDash(visible(t.Session)), strings.Join(t.Taints, ", ")}
				}
				return table(a.out, []string{"PRINCIPAL", "SESSION", "HAS READ"}, rows)
			})
		}),
	}
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitStore)
}

func newTaintDropCommand(a *app) *cobra.Command {
	var d ostiary.TaintDrop
	c := &cobra.Command{
		Use:   "drop PRINCIPAL [SESSION] [--reason WORDS]",
		Short: "Forget what a session has read",
		Long: `Forgets what a principal's session has read; without SESSION, what the principal has read without one. Whoever does that
says that nothing of it is in the caller's context any more: its next calls are judged as if it had read nothing. It is
recorded in the ledger.`,
		Example: "  ostiary taint drop default --reason 'the agent was started anew'",
		Args:    takes("PRINCIPAL", "[SESSION]"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			d.Principal = args[0]
			if len(args) == 2 {
				d.Session = args[1]
			}
			return a.withReview(ctx, nil, func(r adminapi.Gateway) error {
				was, err := r.DropTaint(ctx, d)
				if err != nil {
					return err
				}
				a.say("forgotten: %s", strings.Join(was.Taints, ", "))
				return nil
			})
		}),
		ValidArgsFunction: noFiles,
	}
	c.Flags().StringVar(&d.Reason, "reason", "", "`words` for the record")
	return endsWith(c, call.ExitStore)
}
