package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/adminapi"
)

func newQuarantineCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "quarantine",
		Short: "Look at what is out of use, and decide about it",
		Long: `A tool that is not the one that was admitted is in quarantine until somebody has looked, and so is a whole provider whose
instructions or origin have changed. Nothing of it is called meanwhile, also after a restart. To take a change into use,
admit it: ostiary admit.`,
	}
	c.AddCommand(newQuarantineListCommand(a), newQuarantineShowCommand(a), newQuarantineReleaseCommand(a), newQuarantineRejectCommand(a))
	a.group(c)
	return c
}

func newQuarantineListCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list [--json]",
		Short:   "List what is in quarantine",
		Example: "  ostiary quarantine list",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			return a.withReview(ctx, nil, func(r adminapi.Gateway) error {
				all, err := r.Quarantined(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(slices.Concat([]ostiary.QuarantineInfo{}, all))
				}
				rows := make([][]string, len(all))
				for i, q := range all {
					rows[i] = []string{q.Provider, orWhole(q.Tool), q.Reason, when(q.Since), orDash(q.By), cleanLine(q.Text, 80)}
				}
				return table(a.out, []string{"PROVIDER", "TOOL", "REASON", "SINCE", "BY", "WORDS"}, rows)
			})
		}),
	}
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitStore)
}

func orWhole(tool string) string {
	if tool == "" {
		return "(all)"
	}
	return cleanLine(visible(tool), 60)
}

// when is a time as tables show it.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

// quarantined finds what is in quarantine, and what is known of its definition.
func (a *app) quarantined(ctx context.Context, r ostiary.Review, args []string) (ostiary.QuarantineInfo, *ostiary.Admission, error) {
	p, err := a.providerNamed(args[0])
	if err != nil {
		return ostiary.QuarantineInfo{}, nil, err
	}
	tool := ""
	if len(args) > 1 {
		tool = rawName(p, args[1])
	}
	all, err := r.Quarantined(ctx)
	if err != nil {
		return ostiary.QuarantineInfo{}, nil, err
	}
	at := slices.IndexFunc(all, func(q ostiary.QuarantineInfo) bool { return q.Provider == args[0] && q.Tool == tool })
	if at < 0 {
		what := args[0]
		if tool != "" {
			what += "/" + tool
		}
		return ostiary.QuarantineInfo{}, nil, fail(call.ExitFailed, "ostiary quarantine list shows what is", "%s is not in quarantine", visible(what))
	}
	items, err := r.Admissions(ctx, args[0])
	if err != nil {
		return ostiary.QuarantineInfo{}, nil, err
	}
	if i := slices.IndexFunc(items, func(i ostiary.Admission) bool { return i.Tool == tool }); i >= 0 {
		return all[at], &items[i], nil
	}
	return all[at], nil, nil
}

func newQuarantineShowCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "show PROVIDER [TOOL] [--json]",
		Short:   "Show why something is in quarantine, old and new text side by side",
		Long:    "Shows why a tool, or without TOOL the whole provider, is in quarantine, and how what is offered now differs from what was admitted.",
		Example: "  ostiary quarantine show files read_text_file",
		Args:    takes("PROVIDER", "[TOOL]"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.withCompared(ctx, args[0], func(r adminapi.Gateway) error {
				q, item, err := a.quarantined(ctx, r, args)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(struct {
						ostiary.QuarantineInfo
						Definition *ostiary.Admission `json:"definition,omitempty"`
					}{q, item})
				}
				text := fmt.Sprintf("%s %s: %s since %s", q.Provider, orWhole(q.Tool), q.Reason, when(q.Since))
				if q.By != "" {
					text += ", by " + cleanLine(q.By, 60)
				}
				if q.Text != "" {
					text += "\n  " + visible(q.Text)
				}
				if _, err := fmt.Fprint(a.out, text+"\n\n"); err != nil || item == nil {
					return err
				}
				if item.Standing == "admitted" {
					a.say("hint: what is offered now is what was admitted: %s", releaseCommand(q.Provider, q.Tool))
				}
				return printAdmission(a.out, *item)
			})
		}),
		ValidArgsFunction: a.completeProvider,
	}
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitProvider, call.ExitStore)
}

// withCompared gives fn what a provider offers now beside what was admitted, as far as it can be known: one that does not
// start is judged by what it offered last.
func (a *app) withCompared(ctx context.Context, pkg string, fn func(adminapi.Gateway) error) error {
	if _, err := a.providerNamed(pkg); err != nil {
		return err
	}
	began := false
	err := a.withReview(ctx, []string{pkg}, func(r adminapi.Gateway) error {
		began = true
		return fn(r)
	})
	if _, failed := errors.AsType[*ostiary.StartError](err); !failed || began || ctx.Err() != nil {
		return err
	}
	a.say("warning: %s; it is judged by what it offered last", cleanLine(err.Error(), 300))
	return a.withReview(ctx, nil, fn)
}

func newQuarantineReleaseCommand(a *app) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "release PROVIDER [TOOL] [--reason WORDS]",
		Short: "Let something out whose definition is the admitted one",
		Long: `Takes a tool, or without TOOL the whole provider, out of quarantine. It admits nothing: where what is offered is not what
was admitted, decide about the change with ostiary admit. Without a running gateway on the data directory the provider is
started for as long as the command takes, to see what it offers now.`,
		Example: "  ostiary quarantine release files read_text_file --reason 'the server was rolled back'",
		Args:    takes("PROVIDER", "[TOOL]"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.withCompared(ctx, args[0], func(r adminapi.Gateway) error {
				q, _, err := a.quarantined(ctx, r, args)
				if err != nil {
					return err
				}
				if _, err := r.Release(ctx, q.Provider, q.Tool, reason); err != nil {
					return err
				}
				a.say("released %s %s", q.Provider, orWhole(q.Tool))
				return nil
			})
		}),
		ValidArgsFunction: a.completeProvider,
	}
	c.Flags().StringVar(&reason, "reason", "", "`words` for the record")
	return endsWith(c, call.ExitProvider, call.ExitStore)
}

func newQuarantineRejectCommand(a *app) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "reject PROVIDER [TOOL] [--reason WORDS]",
		Short: "Refuse the change that led to it",
		Long: `Refuses the definition that is offered in place of the admitted one: it stays out for as long as it is offered, and the
tool, or without TOOL the whole provider, stays in quarantine.`,
		Example: "  ostiary quarantine reject files read_text_file --reason 'it asks for the conversation'",
		Args:    takes("PROVIDER", "[TOOL]"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.withReview(ctx, nil, func(r adminapi.Gateway) error {
				q, item, err := a.quarantined(ctx, r, args)
				if err != nil {
					return err
				}
				if item == nil || !waits(*item) {
					return fail(call.ExitFailed, "ostiary quarantine show has the details", "%s %s: no change of it waits for a decision", q.Provider, orWhole(q.Tool))
				}
				d := ostiary.AdmissionDecision{Provider: q.Provider, Tools: map[string]string{q.Tool: item.Digest}, Refuse: true, Reason: reason}
				if _, err := r.Admit(ctx, d); err != nil {
					return err
				}
				a.say("refused %s %s; it stays in quarantine", q.Provider, orWhole(q.Tool))
				return nil
			})
		}),
		ValidArgsFunction: a.completeProvider,
	}
	c.Flags().StringVar(&reason, "reason", "", "`words` for the record")
	return endsWith(c, call.ExitStore)
}
