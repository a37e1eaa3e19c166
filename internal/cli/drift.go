package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/adminapi"
)

func newDriftCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "drift [PROVIDER] [--json]",
		Short: "Show what is not as it was admitted",
		Long: `Compares what the providers offer with what was admitted, and shows what is new, changed, gone or refused, texts side by
side. It decides nothing. Without a running gateway on the data directory the providers are started for as long as the
command takes. It ends with 6 if anything is not as it was admitted.`,
		Example: "  ostiary drift files",
		Args:    takes("[PROVIDER]"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			pkg, only := "", []string{}
			if len(args) == 1 {
				if _, err := a.providerNamed(args[0]); err != nil {
					return err
				}
				pkg, only = args[0], args
			}
			if err := a.lookable(ctx); err != nil {
				return err
			}
			return a.withReview(ctx, only, func(r adminapi.Gateway) error { return a.drift(ctx, r, pkg, asJSON) })
		}),
		ValidArgsFunction: a.completeProvider,
	}
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitHeld, call.ExitProvider, call.ExitStore)
}

func (a *app) drift(ctx context.Context, r ostiary.Review, pkg string, asJSON bool) error {
	all, err := r.Admissions(ctx, pkg)
	if err != nil {
		return err
	}
	known, total := all, len(all)
	all = slices.DeleteFunc(slices.Clone(all), func(i ostiary.Admission) bool { return i.Standing == "admitted" })
	if asJSON {
		if err := a.printJSON(slices.Concat([]ostiary.Admission{}, all)); err != nil {
			return err
		}
	} else {
		for _, i := range all {
			if err := printAdmission(a.out, i); err != nil {
				return err
			}
		}
	}
	if len(all) > 0 {
		return &failure{exit: call.ExitHeld, code: "drift", message: fmt.Sprintf("%d of %s %s not as admitted", len(all), count(total, "definition"), plural(len(all), "is", "are")),
			hint: "ostiary admit PROVIDER decides about them"}
	}
	if !asJSON {
		a.say("%s, all as they were admitted", count(total, "definition"))
	}
	return a.sayReleasable(ctx, r, pkg, known)
}

func newLockCommand(a *app) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "lock [--out FILE]",
		Short: "Write the lock file of everything that is admitted",
		Long: `Writes the digests of every admitted definition as sorted TOML, to be reviewed and kept in version control. With
ostiary serve --locked FILE a gateway starts only if everything that is offered equals it; every difference is named.

What is not as it was admitted is warned of: it will not equal the lock. Tools that are not offered any more are known, and
left out, while a gateway runs on the data directory.`,
		Example: "  ostiary lock --out ostiary.lock",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			return a.withReview(ctx, nil, func(r adminapi.Gateway) error {
				text, err := r.Lock(ctx)
				if err != nil {
					return err
				}
				all, err := r.Admissions(ctx, "")
				if err != nil {
					return err
				}
				for _, i := range all {
					switch name := i.Provider + "/" + firstOf(i.Tool, "itself"); i.Standing {
					case "admitted":
					case "removed":
						a.say("%s is not offered any more, and is left out", visible(name))
					default:
						a.say("warning: %s is %s: a start with --locked refuses it until it is admitted, and locked again", visible(name), i.Standing)
					}
				}
				return a.writeOut(out, text)
			})
		}),
	}
	c.Flags().StringVarP(&out, "out", "o", "", "`file` to write instead of stdout; --output is the same")
	return endsWith(c, call.ExitStore)
}
