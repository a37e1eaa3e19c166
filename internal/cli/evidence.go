package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/adminapi"
)

func newEvidenceCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "evidence",
		Short: "Look at what the firewall held, and decide about it",
		Long: `What the firewall holds is kept encrypted, and nothing of it goes to a client. It can be looked at, released, rejected, or
purged before its time is over.`,
	}
	c.AddCommand(newEvidenceListCommand(a), newEvidenceShowCommand(a))
	for _, v := range evidenceVerbs {
		c.AddCommand(newEvidenceVerbCommand(a, v.verb, v.done, v.short, v.long))
	}
	a.group(c)
	return c
}

var evidenceVerbs = []struct{ verb, done, short, long string }{
	{"release", "released", "Let an item go", "Says that the content may be used: whoever releases it has looked at it and answers for it. The caller of a result is given\nit, once, when it asks with the same call and the call's id in _meta[\"org.ostiary/call\"]; a call that still waits goes on. Of anything\nelse, as of arguments and events, the release is on record and changes nothing more."},
	{"reject", "rejected", "Say that an item must not be let go", "Says that the content must not be used. It is kept until its time is over."},
	{"purge", "purged", "Take the content of an item away", "Takes the content and its excerpt away for good. What remains is its record."},
}

func newEvidenceListCommand(a *app) *cobra.Command {
	var asJSON bool
	f := ostiary.EvidenceFilter{}
	c := &cobra.Command{
		Use:     "list [--call CALL] [--provider PROVIDER] [--state STATE] [--json]",
		Short:   "List what was held, newest first",
		Example: "  ostiary evidence list --state held",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if f.Limit < 0 {
				return usage("", "--limit: %d is negative", f.Limit)
			}
			f.State = strings.ToUpper(f.State)
			if states := []string{"", "HELD", "RELEASED", "REJECTED", "PURGED"}; !slices.Contains(states, f.State) {
				return usage("", "--state: %q: expected held, released, rejected or purged", f.State)
			}
			return a.withReview(ctx, nil, func(r adminapi.Gateway) error {
				items, err := r.Evidence(ctx, f)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(slices.Concat([]ostiary.EvidenceInfo{}, items))
				}
				rows := make([][]string, len(items))
				for i, e := range items {
					rows[i] = []string{e.ID, e.State, e.Verdict, e.Direction, cleanLine(firstOf(e.Tool, e.Provider), 50), when(e.Created), cleanLine(strings.Join(e.Reasons, ", "), 60)}
				}
				return table(a.out, []string{"ID", "STATE", "VERDICT", "WHAT", "TOOL", "HELD", "REASONS"}, rows)
			})
		}),
	}
	c.Flags().StringVar(&f.Call, "call", "", "only what belongs to this `call`")
	c.Flags().StringVar(&f.Provider, "provider", "", "only what came from, or was for, this `provider`")
	c.Flags().StringVar(&f.State, "state", "", "only what is in this `state`: held, released, rejected or purged")
	c.Flags().IntVar(&f.Limit, "limit", 100, "at most so `many`; 0: all")
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitStore)
}

func newEvidenceShowCommand(a *app) *cobra.Command {
	var asJSON bool
	var out string
	c := &cobra.Command{
		Use:   "show ID [--out FILE] [--json]",
		Short: "Show one item with its content",
		Long: `Shows one item. Its content needs the key of the vault; hidden characters in it are made visible. --out writes it to a file
byte for byte instead.`,
		Example: "  ostiary evidence show 06f0t2k8m3",
		Args:    takes("ID"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.withReview(ctx, nil, func(r adminapi.Gateway) error {
				e, err := r.EvidenceContent(ctx, args[0])
				if err != nil {
					return evidenceFailure(err)
				}
				if out != "" {
					return a.writeOut(out, e.Content)
				}
				if asJSON {
					return a.printJSON(e)
				}
				_, err = fmt.Fprint(a.out, evidenceText(e))
				return err
			})
		}),
		ValidArgsFunction: noFiles,
	}
	c.Flags().StringVarP(&out, "out", "o", "", "`file` to write the content to; - is stdout")
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitStore)
}

// evidenceFailure says of content that is gone where the rest of it is.
func evidenceFailure(err error) error {
	if ostiary.FaultOf(err) == ostiary.FaultOver {
		return &failure{exit: call.ExitFailed, code: string(ostiary.FaultOver), message: err.Error(), hint: "what remains of it is its record: ostiary ledger show CALL", cause: err}
	}
	return err
}

func evidenceText(e ostiary.EvidenceInfo) string {
	var b strings.Builder
	line := func(k, v string) {
		if v != "" {
			fmt.Fprintf(&b, "%-10s %s\n", k, v)
		}
	}
	line("evidence", e.ID)
	state := e.State
	if e.Decider != "" {
		state += ", by " + cleanLine(e.Decider, 60) + " at " + when(e.Decided)
	}
	line("state", state)
	line("reason", visible(e.Reason))
	if !e.Delivered.IsZero() {
		line("delivered", when(e.Delivered))
	}
	line("verdict", e.Verdict+", "+e.Sensitivity)
	line("because", visible(strings.Join(e.Reasons, ", ")))
	line("what", strings.ToLower(e.Direction)+" of "+visible(firstOf(e.Tool, e.Provider)))
	line("call", e.Call)
	line("held", when(e.Created)+", kept until "+when(e.Expires))
	line("content", fmt.Sprintf("%d bytes, %s", e.Size, e.SHA256))
	line("excerpt", visible(e.Excerpt))
	if len(e.Content) > 0 && string(e.Content) != "null" {
		b.WriteString("\n" + indented(contentText(e.Content), "  ") + "\n")
	}
	return b.String()
}

// contentText is JSON for a person: over several lines, a text alone without its quotes, and nothing hidden.
func contentText(content []byte) string {
	var text string
	if content[0] == '"' && json.Unmarshal(content, &text) == nil {
		return visible(text)
	}
	v := jsontext.Value(slices.Clone(content))
	if err := v.Indent(); err != nil {
		return visible(string(content))
	}
	return visible(string(v))
}

// noEffect says why releasing what was held changes nothing but its record; "" for a result, which is then handed over.
func noEffect(direction string) string {
	switch direction {
	case "RESULT":
		return ""
	case "ARGUMENTS":
		return "the call was refused, and nothing of it will be sent; made again, it is judged again"
	case "EVENT":
		return "the fact keeps its withheld text"
	}
	return "its caller was answered without it, and is not given it"
}

func newEvidenceVerbCommand(a *app, verb, done, short, long string) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:     verb + " ID [--reason WORDS]",
		Short:   short,
		Long:    long,
		Example: "  ostiary evidence " + verb + " 06f0t2k8m3",
		Args:    takes("ID"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.withReview(ctx, nil, func(r adminapi.Gateway) error {
				e, err := r.DecideEvidence(ctx, args[0], verb, reason)
				if err != nil {
					return evidenceFailure(err)
				}
				a.say("%s %s", done, e.ID)
				if words := noEffect(e.Direction); verb == "release" && words != "" {
					a.say("nothing else changes: %s", words)
				}
				return nil
			})
		}),
		ValidArgsFunction: noFiles,
	}
	c.Flags().StringVar(&reason, "reason", "", "`words` for the record")
	return endsWith(c, call.ExitStore)
}
