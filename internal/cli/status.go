package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
)

func newStatusCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status [--json]",
		Short: "Show the state of the gateway and its providers",
		Long: `Shows each provider with its state, the reason where there is one, the revision of MCP that was negotiated, and its
tools; then what came of their events, and the exports. Without a running gateway on the data directory the providers are started for as long as the
command takes; it makes no data directory.`,
		Example: "  ostiary status --json",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if err := a.lookable(ctx); err != nil {
				return err
			}
			return a.withOperations(ctx, nil, func(ops ostiary.Operations) error {
				s, err := ops.Status(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(s)
				}
				return a.printStatus(s)
			})
		}),
	}
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitProvider, call.ExitStore)
}

func (a *app) printStatus(s ostiary.Status) error {
	where := "not serving"
	if s.Address != "" {
		where = "http://" + s.Address
	}
	ready := "ready"
	if !s.Ready {
		ready = "not ready: " + cleanLine(s.Reason, 200)
	}
	if _, err := fmt.Fprintf(a.out, "gateway %s, %s, %s, ledger %s\n\n", s.Version, where, ready, cleanLine(s.Ledger, 200)); err != nil {
		return err
	}
	rows := make([][]string, len(s.Providers))
	for i, p := range s.Providers {
		reason := ""
		if p.Reason != nil {
			reason = cleanLine(fmt.Sprint(p.Reason.Code), 60)
			if p.Reason.Text != "" {
				reason += ": " + cleanLine(p.Reason.Text, 120)
			}
		}
		switch {
		case p.Held > 0:
			reason = strings.TrimPrefix(reason+fmt.Sprintf("; %s held, ostiary drift shows why", count(p.Held, "tool")), "; ")
		case p.RestartRequired:
			reason = strings.TrimPrefix(reason+"; the server's tools have changed, ostiary drift shows how", "; ")
		}
		tools := "-"
		if p.Counts != nil {
			tools = fmt.Sprintf("%d of %d", p.Counts.Allowed, p.Counts.Offered)
		}
		rows[i] = []string{p.Package, p.State.String(), orDash(p.Revision), tools, p.Trust, orDash(extensionsOf(p)), reason}
	}
	if err := table(a.out, []string{"PROVIDER", "STATE", "REVISION", "TOOLS", "TRUST", "EXTENSIONS", "REASON"}, rows); err != nil {
		return err
	}
	if err := a.printEvents(s.Providers); err != nil {
		return err
	}
	if len(s.Exports) > 0 {
		rows = rows[:0]
		for _, e := range s.Exports {
			note := ""
			if !e.Served {
				note = "not served: no token"
			}
			if len(e.Lacks) > 0 {
				note = strings.TrimPrefix(note+"; lacks "+strings.Join(e.Lacks, ", "), "; ")
			}
			if len(e.Held) > 0 {
				note = strings.TrimPrefix(note+"; held "+strings.Join(e.Held, ", "), "; ")
			}
			rows = append(rows, []string{e.Name, e.Path, itoa(len(e.Tools) - len(e.Held)), note})
		}
		fmt.Fprintln(a.out)
		if err := table(a.out, []string{"EXPORT", "PATH", "TOOLS", "NOTE"}, rows); err != nil {
			return err
		}
	}
	for _, w := range s.Warnings {
		a.say("warning: %s", w)
	}
	return nil
}

// extensionsOf names the extensions that both sides have agreed on.
func extensionsOf(p ostiary.ProviderInfo) string {
	var names []string
	if p.ToolContract {
		names = append(names, "tool-contract")
	}
	if p.WorldEvents {
		names = append(names, "events")
	}
	return strings.Join(names, ", ")
}

// printEvents shows what came of the events of each provider that has any.
func (a *app) printEvents(providers []ostiary.ProviderInfo) error {
	var rows [][]string
	for _, p := range providers {
		if e := p.Events; e != nil {
			var refused []string
			for _, r := range slices.Sorted(maps.Keys(e.Refused)) {
				refused = append(refused, fmt.Sprintf("%s %d", r, e.Refused[r]))
			}
			rows = append(rows, []string{p.Package, e.State, fmt.Sprint(e.Received), fmt.Sprint(e.Committed), fmt.Sprint(e.Repeated), fmt.Sprint(e.Withheld),
				fmt.Sprint(e.Waiting), orDash(strings.Join(refused, ", "))})
		}
	}
	if rows == nil {
		return nil
	}
	fmt.Fprintln(a.out)
	return table(a.out, []string{"EVENTS OF", "STATE", "RECEIVED", "COMMITTED", "REPEATED", "WITHHELD", "WAITING", "REFUSED"}, rows)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return cleanLine(s, 60)
}
