package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/adminapi"
	"github.com/ostiary/ostiary/internal/config"
)

type admitOptions struct {
	all    bool
	refuse bool
	itself bool
	reason string
	json   bool

	override bool
}

func newAdmitCommand(a *app) *cobra.Command {
	var o admitOptions
	c := &cobra.Command{
		Use:   "admit [flags] PROVIDER [TOOL…]",
		Short: "Look at what a provider offers, and let it in or keep it out",
		Long: `Shows every definition of a provider that waits: what is new, and what differs from what was admitted, the old text beside
the new one, with hidden characters made visible and what screening found in each text below it. On a terminal it then
asks about each. With TOOLs it decides on those alone, without asking; --itself adds the provider itself, which is its
server's instructions, how it is started or reached, and whether tool-contract holds. --all admits everything, but only for the first admission of a
provider: a change is always looked at one by one.

What is admitted is exactly the definition that was shown; if it has changed since, nothing is decided. Where nobody is
asked, it is shown on stderr first. What is refused stays out for as long as it is offered; to let it in after all takes
--override.`,
		Example: `  ostiary admit files
  ostiary admit files read_text_file list_directory --reason "read the source"
  ostiary admit files write_file --refuse`,
		Args:              takes("PROVIDER", "[TOOL…]"),
		RunE:              a.run(func(ctx context.Context, args []string) error { return a.admit(ctx, o, args[0], args[1:]) }),
		ValidArgsFunction: a.completeProvider,
	}
	c.Flags().BoolVar(&o.all, "all", false, "decide on everything; only for a first admission")
	c.Flags().BoolVar(&o.itself, "itself", false, "decide on the provider itself too: its instructions, its origin and its tool contract")
	c.Flags().BoolVar(&o.refuse, "refuse", false, "keep out instead of letting in")
	c.Flags().BoolVar(&o.override, "override", false, "let in what was refused before")
	c.Flags().StringVar(&o.reason, "reason", "", "`words` for the record")
	jsonFlag(c, &o.json)
	return endsWith(c, call.ExitHeld, call.ExitProvider, call.ExitStore)
}

func (a *app) admit(ctx context.Context, o admitOptions, pkg string, tools []string) error {
	if o.all && (len(tools) > 0 || o.itself) {
		return usage("", "--all decides on everything: leave out the tools and --itself")
	}
	p, err := a.providerNamed(pkg)
	if err != nil {
		return err
	}
	return a.withReview(ctx, []string{pkg}, func(r adminapi.Gateway) error {
		all, err := r.Admissions(ctx, pkg)
		if err != nil {
			return err
		}
		d := ostiary.AdmissionDecision{Provider: pkg, All: o.all, Refuse: o.refuse, Reason: o.reason, Tools: map[string]string{}}
		switch {
		case o.all:
			if !slices.ContainsFunc(all, waits) {
				return a.nothingWaits(ctx, r, o, pkg, all)
			}
		case len(tools) > 0 || o.itself:
			if err := named(d, all, p, tools, o); err != nil {
				return err
			}
		default:
			return a.admitAsking(ctx, r, o, pkg, all)
		}
		if err := a.showDecided(o, d, all); err != nil {
			return err
		}
		return a.admitted(ctx, r, d, all, o.json)
	})
}

// showDecided shows what is about to be let in, as the prompt would: nothing is admitted unseen. With --json the answer has
// the texts.
func (a *app) showDecided(o admitOptions, d ostiary.AdmissionDecision, all []ostiary.Admission) error {
	if d.Refuse || o.json || a.quiet {
		return nil
	}
	for _, i := range all {
		if o.all && waits(i) || d.Tools[i.Tool] != "" {
			if err := printAdmission(a.err, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// nothingWaits says so, and what keeps things from being used all the same.
func (a *app) nothingWaits(ctx context.Context, r ostiary.Review, o admitOptions, pkg string, all []ostiary.Admission) error {
	if o.json {
		if err := a.printJSON([]ostiary.Admission{}); err != nil {
			return err
		}
	}
	a.say("nothing of %s waits", pkg)
	for _, i := range all {
		if i.Standing == "refused" {
			a.say("hint: %s was refused; ostiary admit %s --override lets it in all the same", itemName(i), strings.TrimSpace(pkg+" "+firstOf(visible(i.Tool), "--itself")))
		}
	}
	return a.sayReleasable(ctx, r, pkg, all)
}

// sayReleasable names what is in quarantine though it is offered as it was admitted: there is nothing to admit, it is to be
// released.
func (a *app) sayReleasable(ctx context.Context, r ostiary.Review, pkg string, all []ostiary.Admission) error {
	quarantined, err := r.Quarantined(ctx)
	if err != nil {
		return err
	}
	for _, q := range quarantined {
		if pkg != "" && q.Provider != pkg {
			continue
		}
		// A provider with nothing to be said of it is not listed itself.
		at := slices.IndexFunc(all, func(i ostiary.Admission) bool { return i.Provider == q.Provider && i.Tool == q.Tool })
		if at < 0 && q.Tool == "" || at >= 0 && all[at].Standing == "admitted" {
			a.say("hint: %s is in quarantine (%s), though what is offered is what was admitted: %s", itemName(ostiary.Admission{Provider: q.Provider, Tool: q.Tool}), q.Reason, releaseCommand(q.Provider, q.Tool))
		}
	}
	return nil
}

// releaseCommand is what lets something out of quarantine.
func releaseCommand(pkg, tool string) string {
	return strings.TrimSpace("ostiary quarantine release " + pkg + " " + visible(tool))
}

// named finds the digest of each tool that was named, as it is offered now.
func named(d ostiary.AdmissionDecision, all []ostiary.Admission, p config.Provider, tools []string, o admitOptions) error {
	if o.itself {
		tools = append(slices.Clone(tools), "")
	}
	for _, t := range tools {
		raw := ""
		if t != "" {
			raw = rawName(p, t)
		}
		i := slices.IndexFunc(all, func(d ostiary.Admission) bool { return d.Tool == raw })
		switch {
		case i < 0 && raw == "":
			return usage("leave out --itself", "%s has no instructions that would wait", p.Profile.Package)
		case i < 0:
			return usage("ostiary admit "+p.Profile.Package+" shows what it offers", "%s does not offer %q, or it is not in allowed_tools", p.Profile.Package, t)
		case all[i].Standing == "removed":
			return usage("", "%s does not offer %q any more", p.Profile.Package, t)
		case all[i].Standing == "admitted" && !d.Refuse:
			return usage("if it is in quarantine: "+releaseCommand(p.Profile.Package, raw), "%s is admitted already, as it is offered", itemName(all[i]))
		case all[i].Standing == "refused" && !d.Refuse && !o.override:
			return &failure{exit: call.ExitHeld, code: "refused", message: fmt.Sprintf("%s was refused by %s at %s: nothing is decided", itemName(all[i]), orDash(all[i].Decider), when(all[i].Decided)),
				hint: "ostiary drift " + p.Profile.Package + " shows it; --override lets it in all the same"}
		}
		d.Tools[raw] = all[i].Digest
	}
	return nil
}

// admitted takes a decision, and tells what has become of it.
func (a *app) admitted(ctx context.Context, r ostiary.Review, d ostiary.AdmissionDecision, before []ostiary.Admission, asJSON bool) error {
	after, err := r.Admit(ctx, d)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(slices.Concat([]ostiary.Admission{}, after))
	}
	was := map[string]string{}
	for _, i := range before {
		was[i.Tool] = i.Standing
	}
	for _, i := range after {
		if i.Standing != was[i.Tool] || d.Tools[i.Tool] != "" {
			a.say("%s: %s", itemName(i), i.Standing)
		}
	}
	a.sayWaiting(d.Provider, after)
	return nil
}

// sayWaiting reminds of what is still to be decided.
func (a *app) sayWaiting(pkg string, all []ostiary.Admission) {
	n, itself := 0, false
	for _, i := range all {
		if waits(i) {
			n++
			itself = itself || i.Tool == ""
		}
	}
	switch {
	case itself:
		a.say("hint: %s itself still waits, so none of its tools can be used: ostiary admit %s --itself", pkg, pkg)
	case n > 0:
		a.say("%s of %s still %s", count(n, "definition"), pkg, plural(n, "waits", "wait"))
	}
}

func waits(i ostiary.Admission) bool { return i.Standing == "new" || i.Standing == "changed" }

// itemName is how an item is called in front of a person.
func itemName(i ostiary.Admission) string {
	if i.Tool == "" {
		return i.Provider + " itself (instructions and origin)"
	}
	return i.Provider + "/" + visible(i.Tool)
}

// admitAsking shows all that waits, and asks about each where somebody can be asked.
func (a *app) admitAsking(ctx context.Context, r ostiary.Review, o admitOptions, pkg string, all []ostiary.Admission) error {
	var open []ostiary.Admission
	for _, i := range all {
		if waits(i) {
			open = append(open, i)
		}
	}
	if len(open) == 0 {
		return a.nothingWaits(ctx, r, o, pkg, all)
	}
	if o.json {
		if err := a.printJSON(open); err != nil {
			return err
		}
	}
	asking := !o.json && a.canPrompt()
	in := bufio.NewReader(a.in)
	decided := all
	for n, i := range open {
		if !o.json {
			if err := printAdmission(a.out, i); err != nil {
				return err
			}
		}
		if !asking {
			continue
		}
		verb, quit := a.askAdmission(in, n+1, len(open), i)
		if quit {
			break
		}
		if verb == "" {
			continue
		}
		d := ostiary.AdmissionDecision{Provider: pkg, Tools: map[string]string{i.Tool: i.Digest}, Refuse: verb == "refuse", Reason: o.reason}
		after, err := r.Admit(ctx, d)
		if err != nil {
			return err
		}
		decided = after
	}
	if !asking {
		return &failure{exit: call.ExitHeld, code: "waiting", message: fmt.Sprintf("%s of %s %s for a decision", count(len(open), "definition"), pkg, plural(len(open), "waits", "wait")),
			hint: admitHint(pkg, all)}
	}
	a.sayWaiting(pkg, decided)
	return nil
}

// admitHint says how to decide on what waits without a terminal: a provider that waits itself is named by --itself.
func admitHint(pkg string, all []ostiary.Admission) string {
	command, tools, first := "ostiary admit "+pkg, false, true
	itself := ""
	for _, i := range all {
		switch {
		case i.Tool != "" && i.From != "":
			first = false
		case i.Tool == "" && waits(i):
			itself = " --itself"
		}
		tools = tools || i.Tool != "" && waits(i)
	}
	switch {
	case !tools:
		return command + itself + " lets it in; or use a terminal"
	case first:
		return "name the tools (" + command + " TOOL…" + itself + "), or use a terminal; --all lets everything in, this first time"
	}
	return "name the tools (" + command + " TOOL…" + itself + "), or use a terminal"
}

// askAdmission asks about one definition. An empty answer decides nothing.
func (a *app) askAdmission(in *bufio.Reader, n, of int, i ostiary.Admission) (verb string, quit bool) {
	for {
		answer, ok := a.ask(in, fmt.Sprintf("%d of %d: admit %s? [a]dmit, [r]efuse, [s]kip, [q]uit: ", n, of, itemName(i)))
		switch answer {
		case "a", "admit":
			return "admit", false
		case "r", "refuse":
			return "refuse", false
		case "q", "quit":
			return "", true
		case "", "s", "skip":
			return "", !ok
		}
		a.say("%q is no answer here: type a, r, s or q, or the whole word", cleanLine(answer, 20))
	}
}

// printAdmission shows one definition for somebody who decides about it: what it is, the texts, and beside each text what
// was found in it.
func printAdmission(w io.Writer, i ostiary.Admission) error {
	var b strings.Builder
	head := itemName(i) + "  " + i.Standing
	if i.Class != "" && i.Standing == "changed" {
		head += ", " + i.Class
	}
	fmt.Fprintf(&b, "%s\n  digest %s\n", head, i.Digest)
	if i.From != "" && i.From != i.Digest {
		fmt.Fprintf(&b, "  was    %s\n", i.From)
	}
	if len(i.Observe)+len(i.Publish) > 0 {
		fmt.Fprintf(&b, "  observes %s\n  publishes %s\n", visible(strings.Join(i.Observe, " ")), visible(strings.Join(i.Publish, " ")))
	}
	if i.ScopesFault != "" {
		fmt.Fprintf(&b, "  cannot be used: %s\n", visible(i.ScopesFault))
	}
	if len(i.Findings) > 0 {
		fmt.Fprintf(&b, "  %s by screening\n", count(len(i.Findings), "finding"))
	}
	text := firstOf(i.Side, i.New, i.Old)
	if i.From == "" {
		text = oneColumn(text)
	}
	b.WriteString("\n" + indented(withFindings(visible(text), i.Findings), "  ") + "\n\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// oneColumn takes the empty left column, and the marks of what is new, out of the text of a definition that is all new.
func oneColumn(side string) string {
	var out []string
	for l := range strings.Lines(side) {
		l = strings.TrimRight(l, "\n")
		left, right, ok := strings.Cut(l, "|")
		switch {
		case !strings.HasPrefix(l, " "):
			l = strings.TrimSuffix(l, " (new)")
		case ok && strings.TrimSpace(left) == "":
			l = "  " + strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(right, " "), "{+"), "+}")
		}
		out = append(out, l)
	}
	return strings.Join(out, "\n")
}

// withFindings puts findings below the heading of the value in which they are; those of no shown value come at the end.
func withFindings(text string, findings []ostiary.Finding) string {
	var out []string
	placed := make([]bool, len(findings))
	line := func(f ostiary.Finding) string {
		s := fmt.Sprintf("  ! %s (%s)", visible(f.Code), visible(f.Class))
		if f.Excerpt != "" {
			s += ": " + strings.Join(strings.Fields(visible(f.Excerpt)), " ")
		}
		return s
	}
	for _, l := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		out = append(out, l)
		heading, _, _ := strings.Cut(l, " (")
		for k, f := range findings {
			if !placed[k] && strings.HasPrefix(l, "/") && heading == firstOf(f.Place, "/") {
				placed[k] = true
				out = append(out, line(f))
			}
		}
	}
	for k, f := range findings {
		if !placed[k] {
			out = append(out, line(f)+" at "+visible(firstOf(f.Place, "/")))
		}
	}
	return strings.Join(out, "\n")
}

// completeProvider completes the packages of the configuration.
func (a *app) completeProvider(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, err := a.config()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, p := range c.Providers {
		switch {
		case len(args) == 0:
			names = append(names, p.Profile.Package)
		case args[0] == p.Profile.Package:
			for _, t := range p.Profile.AllowedTools {
				names = append(names, t.Raw)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
