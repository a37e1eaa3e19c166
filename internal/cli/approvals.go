package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/adminapi"
)

func newApprovalsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "approvals",
		Short: "Agree to calls that wait for someone, or decline them",
		Long: `A call that needs approval waits, and ends as approval_pending after a while; its request stays. Once it is granted, exactly
the same call goes through when it is repeated: the same tool as it was then, the same arguments, the same caller.

Where a rule of the firewall says "ask" about a result, the request (its id begins with "ar-") is about letting the result
in: the call has been carried out by then.`,
	}
	c.AddCommand(newApprovalsListCommand(a), newApprovalsShowCommand(a), newApprovalsGrantCommand(a), newApprovalsDeclineCommand(a), newApprovalsRevokeCommand(a), newApprovalsWatchCommand(a))
	a.group(c)
	return c
}

func newApprovalsListCommand(a *app) *cobra.Command {
	var asJSON, all bool
	c := &cobra.Command{
		Use:     "list [--all] [--json]",
		Short:   "List the requests that wait",
		Example: "  ostiary approvals list --all",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			return a.withReview(ctx, nil, func(r adminapi.Gateway) error {
				requests, err := r.Approvals(ctx, all)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(slices.Concat([]ostiary.ApprovalInfo{}, requests))
				}
				rows := make([][]string, len(requests))
				for i, q := range requests {
					rows[i] = []string{q.ID, stateWord(q), cleanLine(q.Principal, 30), cleanLine(q.Tool, 60), q.Effect, when(q.Created), cleanLine(visible(q.Summary), 80)}
				}
				return table(a.out, []string{"ID", "STATE", "PRINCIPAL", "TOOL", "EFFECT", "ASKED", "SUMMARY"}, rows)
			})
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "list those that were decided or have expired too")
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitStore)
}

func newApprovalsShowCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "show ID [--json]",
		Short:   "Show one request with what would be sent",
		Example: "  ostiary approvals show 06f0t2k8m3",
		Args:    takes("ID"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.withReview(ctx, nil, func(r adminapi.Gateway) error {
				q, err := r.Approval(ctx, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(q)
				}
				_, err = fmt.Fprint(a.out, requestText(q))
				return err
			})
		}),
		ValidArgsFunction: noFiles,
	}
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitStore)
}

// stateWord is the state of a request in the one word that all commands have for it. What the policy has ended nobody has
// declined.
func stateWord(q ostiary.ApprovalInfo) string {
	if q.State == "DECLINED" && q.Decision == "POLICY_BLOCKED" {
		return "BLOCKED"
	}
	return q.State
}

// requestText is one request for somebody who decides: who wants what, and every argument as it would be sent.
func requestText(q ostiary.ApprovalInfo) string {
	var b strings.Builder
	line := func(k, v string) {
		if v != "" {
			fmt.Fprintf(&b, "%-10s %s\n", k, v)
		}
	}
	line("request", q.ID)
	state := stateWord(q)
	if strings.HasPrefix(q.Decision, "APPROVED") {
		state += ", " + q.Decision
	}
	switch {
	case q.Decider != "":
		state += ", by " + cleanLine(q.Decider, 60) + " at " + when(q.Decided)
	case !q.Decided.IsZero():
		state += ", at " + when(q.Decided)
	}
	line("state", state)
	line("reason", visible(q.Reason))
	line("principal", visible(q.Principal))
	line("session", visible(q.Session))
	line("export", visible(q.Export))
	line("tool", visible(q.Tool))
	line("effect", q.Effect)
	line("sensitive", strings.TrimPrefix(q.Sensitivity, "UNKNOWN"))
	line("asked", when(q.Created)+", expires "+when(q.Expires))
	line("call", q.Call)
	if q.Evidence != "" {
		line("asks for", "the release of what was held: evidence "+q.Evidence)
	}
	line("summary", visible(q.Summary))
	if q.Arguments != "" {
		b.WriteString("\n" + indented(visible(q.Arguments), "  ") + "\n")
	}
	return b.String()
}

func newApprovalsGrantCommand(a *app) *cobra.Command {
	var session bool
	var reason string
	c := &cobra.Command{
		Use:   "grant ID [--session] [--reason WORDS]",
		Short: "Agree to a call",
		Long: `Agrees to exactly the call that was asked for, once; or with --session to calls of the same tool by the same session until
it ends. On a terminal the request is shown first, with every byte that would be sent, and a yes is asked for. A request
about a result that is held releases the result; on a terminal its content is shown first.`,
		Example: "  ostiary approvals grant 06f0t2k8m3 --reason 'it is the report of May'",
		Args:    takes("ID"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.withReview(ctx, nil, func(r adminapi.Gateway) error {
				return a.decide(ctx, r, ostiary.ApprovalDecision{ID: args[0], Grant: true, ForSession: session, Reason: reason})
			})
		}),
		ValidArgsFunction: noFiles,
	}
	c.Flags().BoolVar(&session, "session", false, "for the rest of the caller's session")
	c.Flags().StringVar(&reason, "reason", "", "`words` for the record")
	return endsWith(c, call.ExitRefused, call.ExitApprovalEnded, call.ExitStore)
}

func newApprovalsDeclineCommand(a *app) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:     "decline ID [--reason WORDS]",
		Short:   "Decline a call",
		Long:    "Declines a call. It ends as approval_declined, and for a while the same call is refused without asking again.",
		Example: "  ostiary approvals decline 06f0t2k8m3 --reason 'not to that address'",
		Args:    takes("ID"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.withReview(ctx, nil, func(r adminapi.Gateway) error {
				return a.decide(ctx, r, ostiary.ApprovalDecision{ID: args[0], Reason: reason})
			})
		}),
		ValidArgsFunction: noFiles,
	}
	c.Flags().StringVar(&reason, "reason", "", "`words` for the record")
	return endsWith(c, call.ExitRefused, call.ExitApprovalEnded, call.ExitStore)
}

func newApprovalsRevokeCommand(a *app) *cobra.Command {
	var d ostiary.Revocation
	c := &cobra.Command{
		Use:   "revoke ID|--all [--reason WORDS]",
		Short: "Take a grant back",
		Long: `Takes a grant back that has not been used yet, or that is for a session. The same call is then refused as
approval_declined for a while, without asking again. A call that has gone out is not called back.`,
		Example: "  ostiary approvals revoke 06f0t2k8m3\n  ostiary approvals revoke --all --reason 'the agent is not itself'",
		Args:    takes("[ID]"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			if d.All == (len(args) == 1) {
				return usage("ostiary approvals list --all shows what is GRANTED", "name one request, or --all")
			}
			d.ID = strings.Join(args, "")
			return a.withReview(ctx, nil, func(r adminapi.Gateway) error {
				revoked, err := r.Revoke(ctx, d)
				if err != nil {
					return err
				}
				for _, q := range revoked {
					a.say("%s: %s", q.ID, stateWord(q))
				}
				if len(revoked) == 0 {
					a.say("nothing is granted")
				}
				return nil
			})
		}),
		ValidArgsFunction: noFiles,
	}
	c.Flags().BoolVar(&d.All, "all", false, "every grant that can still be used")
	c.Flags().StringVar(&d.Reason, "reason", "", "`words` for the record")
	return endsWith(c, call.ExitRefused, call.ExitApprovalEnded, call.ExitStore)
}

// decide takes a decision. To agree on a terminal takes a look at the request, and a yes.
func (a *app) decide(ctx context.Context, r ostiary.Review, d ostiary.ApprovalDecision) error {
	if d.Grant && a.canPrompt() {
		q, err := r.Approval(ctx, d.ID)
		if err != nil {
			return err
		}
		fmt.Fprint(a.err, requestText(q))
		question := "\nAgree to this call, once? Type yes: "
		switch {
		case q.Evidence != "": // whoever lets it in has seen it
			held, err := r.EvidenceContent(ctx, q.Evidence)
			if err != nil {
				return evidenceFailure(err)
			}
			fmt.Fprint(a.err, "\n"+evidenceText(held))
			question = "\nLet this result in? Type yes: "
		case d.ForSession:
			question = "\nAgree to calls of this tool for the rest of the session? Type yes: "
		}
		if answer, _ := a.ask(bufio.NewReader(a.in), question); answer != "yes" {
			return fail(call.ExitFailed, "ostiary approvals decline "+d.ID+" ends it", "nothing was decided")
		}
	}
	q, err := r.Decide(ctx, d)
	if err != nil {
		return err
	}
	word := stateWord(q)
	if strings.HasPrefix(q.Decision, "APPROVED") {
		word += ", " + q.Decision
	}
	a.say("%s: %s", q.ID, word)
	return nil
}

func newApprovalsWatchCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "watch [--json]",
		Short: "Tell of requests as they come and as they are decided",
		Long: `Prints a line for each request that waits, and goes on with new ones and with what becomes of them until interrupted. It
needs a running gateway.`,
		Example: "  ostiary approvals watch",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			return a.withRunning(ctx, func(c *adminapi.Client) error { return a.watch(ctx, c, asJSON) })
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return endsWith(c, call.ExitStore)
}

// watchEvery is how often watch looks for what is new.
const watchEvery = 500 * time.Millisecond

func (a *app) watch(ctx context.Context, r ostiary.Review, asJSON bool) error {
	seen := map[string]string{}
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for first := true; ; first = false {
		all, err := r.Approvals(ctx, true)
		if errors.Is(err, adminapi.ErrNotRunning) {
			return fail(call.ExitStore, "", "the gateway has ended")
		}
		if err != nil {
			return err
		}
		slices.SortStableFunc(all, func(x, y ostiary.ApprovalInfo) int { return x.Created.Compare(y.Created) })
		now := make(map[string]string, len(all))
		for _, q := range all {
			now[q.ID] = q.State
			if seen[q.ID] == q.State || first && q.State != "WAITING" {
				continue
			}
			if asJSON {
				err = a.printJSONLine(q)
			} else {
				at := q.Created // of what the line tells: that somebody asked, or what became of it
				if q.State != "WAITING" && q.Decided.After(at) {
					at = q.Decided
				}
				_, err = fmt.Fprintf(a.out, "%s  %-8s  %s  %s  %s  %s\n", at.Local().Format(time.DateTime), stateWord(q), q.ID,
					cleanLine(q.Principal, 30), cleanLine(q.Tool, 80), cleanLine(visible(q.Summary), 200))
			}
			if err != nil {
				return err
			}
		}
		seen = now // what is no longer kept is forgotten here too
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// noFiles completes nothing: the argument is an id.
func noFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}
