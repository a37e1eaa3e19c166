package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/adminapi"
)

func newLedgerPruneCommand(a *app) *cobra.Command {
	var asJSON, dry bool
	var before string
	c := &cobra.Command{
		Use:   "prune --before DATE [--dry-run] [--json]",
		Short: "Take the content of old records away, for good",
		Long: `Takes session, principal and body of records that are older than a date out of the ledger. A tombstone stays of each, with
its time, kind, call and hash, so that the ledger, its exports and every signed checkpoint still verify; that it was done,
and by whom, is a record itself. What was pruned is overwritten in the database, and backups of earlier schemas that are
as old are removed. Exports that were made before still have it.

Never pruned are: calls in work, or of which the firewall still holds something; approvals that wait, and grants that can
be spent; the admissions in force since that date; quarantine in force; and the records of the last 24 hours.

[ledger] keep_days in the configuration does the same by itself.`,
		Example: `  ostiary ledger prune --before 2026-01-01 --dry-run
  ostiary ledger prune --before 2026-01-01`,
		Args: takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if before == "" {
				return usage("--before 2026-01-01", "--before is needed")
			}
			at, err := parseDate(before)
			if err != nil {
				return err
			}
			if at.After(time.Now()) {
				return usage("", "--before: %s is not in the past", before)
			}
			return a.withReview(ctx, nil, func(r adminapi.Gateway) error {
				report, err := r.Prune(ctx, ostiary.PruneRequest{Before: at, DryRun: dry})
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(report)
				}
				_, err = fmt.Fprint(a.out, pruneText(report, dry))
				return err
			})
		}),
		ValidArgsFunction: noFiles,
	}
	c.Flags().StringVar(&before, "before", "", "only records that are older: a `date` (2026-01-01, in UTC) or a time (2026-01-01T12:00:00Z)")
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what would go")
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitStore)
}

// parseDate reads a date, which begins at midnight UTC, or a time.
func parseDate(s string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339Nano} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage("2026-01-01 is a date, 2026-01-01T12:00:00Z a time", "--before: %q is no date", s)
}

func pruneText(r ostiary.PruneReport, dry bool) string {
	var b strings.Builder
	verb, removed := "pruned", "removed"
	if dry {
		verb, removed = "would be pruned", "would be removed"
	}
	fmt.Fprintf(&b, "%s: %s before %s", verb, count(int(r.Pruned), "record"), when(r.Before))
	if r.Kept > 0 {
		fmt.Fprintf(&b, "; %d as old are still needed", r.Kept)
	}
	b.WriteByte('\n')
	for _, f := range r.Removed {
		fmt.Fprintf(&b, "%s: %s\n", removed, cleanLine(f, 400))
	}
	for _, f := range r.Left {
		fmt.Fprintf(&b, "this backup still has what was pruned, and is younger: %s\n", cleanLine(f, 400))
	}
	return b.String()
}
