package cli

import (
	"bufio"
	"context"
	"fmt"
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

What is admitted is exactly the definition that was shown; if it has changed since, nothing is decided. What is refused
stays out for as long as it is offered.`,
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
		case len(tools) > 0 || o.itself:
			if err := named(d, all, p, tools, o.itself); err != nil {
				return err
			}
		default:
			return a.admitAsking(ctx, r, o, pkg, all)
		}
		return a.admitted(ctx, r, d, all, o.json)
	})
}

// named finds the digest of each tool that was named, as it is offered now.
func named(d ostiary.AdmissionDecision, all []ostiary.Admission, p config.Provider, tools []string, itself bool) error {
	if itself {
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
			return usage("if it is in quarantine: ostiary quarantine release "+strings.TrimSpace(p.Profile.Package+" "+raw), "%s is admitted already, as it is offered", itemName(all[i]))
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
		a.say("%s of %s still wait", count(n, "definition"), pkg)
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
	if o.json {
		if err := a.printJSON(slices.Concat([]ostiary.Admission{}, open)); err != nil {
			return err
		}
	}
	if len(open) == 0 {
		a.say("nothing of %s waits", pkg)
		return nil
	}
	asking := !o.json && a.canPrompt()
	in := bufio.NewReader(a.in)
	decided := all
	for n, i := range open {
		if !o.json {
			if err := a.printAdmission(i); err != nil {
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
		return &failure{exit: call.ExitHeld, code: "waiting", message: fmt.Sprintf("%s of %s wait for a decision", count(len(open), "definition"), pkg),
			hint: "name the tools (ostiary admit " + pkg + " TOOL…), or use a terminal; --all is for a first admission"}
	}
	a.sayWaiting(pkg, decided)
	return nil
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
	}
}

// printAdmission shows one definition for somebody who decides about it: what it is, the texts, and beside each text what
// was found in it.
func (a *app) printAdmission(i ostiary.Admission) error {
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
	_, err := a.out.Write([]byte(b.String()))
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
