package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/adminapi"
	"github.com/ostiary/ostiary/internal/config"
)

func newPolicyCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "policy",
		Short: "Find out what the policy says to a call, and why",
		Long: `The policy is in the configuration: [provider.PACKAGE.policy] for each provider, and [rule.NAME] for rules over callers,
tools and arguments.`,
	}
	c.AddCommand(newPolicyExplainCommand(a), newPolicyCheckCommand(a))
	a.group(c)
	return c
}

type explainOptions struct {
	input, principal, export, session string
	json                              bool
}

func newPolicyExplainCommand(a *app) *cobra.Command {
	var o explainOptions
	c := &cobra.Command{
		Use:   "explain TOOL [ARGUMENT…]",
		Short: "Say which rule decides about a call, and why",
		Long: `Judges a call without making it: nothing is sent, and nothing is recorded. It shows the rule that decides, what became of
every other rule, the labels of the tool, and what the session has read. Arguments are those of ostiary call. The call is
the operator's, unless --as names another principal.`,
		Example: `  ostiary policy explain files.write_file path=/srv/docs/a.txt content=@a.txt
  ostiary policy explain mail.send to=a@example.org --as default --export default`,
		Args:              takes("TOOL", "[ARGUMENT…]"),
		RunE:              a.run(func(ctx context.Context, args []string) error { return a.explain(ctx, o, args[0], args[1:]) }),
		ValidArgsFunction: a.completeTool,
	}
	c.Flags().StringVar(&o.input, "input", "", "`file` with the arguments as a JSON object; - is stdin")
	c.Flags().StringVar(&o.principal, "as", "", "`principal` who calls (default: the operator)")
	c.Flags().StringVar(&o.export, "export", "", "`export` through which the call comes (default: none, as for the operator)")
	c.Flags().StringVar(&o.session, "session", "", "`session` of the principal, for what it has read")
	jsonFlag(c, &o.json)
	return endsWith(c, call.ExitRefused, call.ExitProvider, call.ExitStore)
}

func (a *app) explain(ctx context.Context, o explainOptions, tool string, pairs []string) error {
	pkg, err := a.providerOf(tool)
	if err != nil {
		return err
	}
	if err := a.knownCaller(o.principal, o.export); err != nil {
		return err
	}
	var input []byte
	if o.input != "" {
		if input, err = a.readInput(o.input); err != nil {
			return err
		}
	}
	if err := a.lookable(ctx); err != nil {
		return err
	}
	return a.withReview(ctx, []string{pkg}, func(r adminapi.Gateway) error {
		q := ostiary.ExplainRequest{Tool: tool, Principal: o.principal, Export: o.export, Session: o.session}
		tools, err := r.Tools(ctx)
		if err != nil {
			return err
		}
		var schema argumentSchema // it gives k=v their types; without one they are text
		if t, err := findTool(tools, tool); err == nil {
			q.Tool, schema = t.ID, readSchema(t.InputSchema)
		}
		if q.Arguments, err = a.arguments(pairs, input, schema); err != nil {
			return err
		}
		raw, err := r.Explain(ctx, q)
		if err != nil {
			return err
		}
		if o.json {
			return a.printJSON(raw)
		}
		if err := a.printExplanation(raw); err != nil {
			return err
		}
		return a.printOutOfUse(ctx, r, pkg, q.Tool, tools)
	})
}

// knownCaller checks that the configuration has a principal and an export of these names; "" is none.
func (a *app) knownCaller(principal, export string) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	principals := []string{config.LocalOperator, config.LocalStdio}
	for _, p := range c.Principals {
		principals = append(principals, p.Name)
	}
	if principal != "" && !slices.Contains(principals, principal) {
		return usage("principals: "+join(principals), "--as: there is no principal %q", principal)
	}
	exports := make([]string, len(c.Exports))
	for i, e := range c.Exports {
		exports[i] = e.Name
	}
	if export != "" && !slices.Contains(exports, export) {
		return usage("exports: "+firstOf(join(exports), "none"), "--export: there is no export %q", export)
	}
	return nil
}

// printOutOfUse says what keeps a tool from being called, whatever policy says: quarantine, or that nobody has admitted it.
func (a *app) printOutOfUse(ctx context.Context, r ostiary.Review, pkg, id string, tools []ostiary.ToolInfo) error {
	raw := ""
	if t, err := findTool(tools, id); err == nil {
		raw = t.RawName
		if t.Admission != "" {
			_, err := fmt.Fprintf(a.out, "\nout of use whatever policy says: %s\n", cleanLine(t.Admission, 300))
			return err
		}
	}
	all, err := r.Quarantined(ctx)
	if err != nil {
		return err
	}
	for _, q := range all {
		if q.Provider == pkg && (q.Tool == "" || q.Tool == raw) {
			_, err := fmt.Fprintf(a.out, "\nout of use whatever policy says: %s is in quarantine (%s)\n", strings.TrimSpace(pkg+" "+visible(q.Tool)), q.Reason)
			return err
		}
	}
	return nil
}

// explanation is what a person is told of a decision.
type explanation struct {
	Decision, Standing judgement
	Labels, Taints     []string
	Rules              []struct {
		Rule, Effect, Why                string
		Looked, Matched, Failed, Decides bool
	}
	Flow string
}

type judgement struct {
	Verdict       json.RawMessage
	Rule, Reason  string
	ArgumentBound bool `json:"argument_bound"`
}

// verdicts are the words for a verdict that is written as a number.
var verdicts = map[string]string{"0": "deny", "1": "ask", "2": "allow"}

func (j judgement) String() string {
	word := strings.Trim(string(j.Verdict), `"`)
	if w, ok := verdicts[word]; ok {
		word = w
	}
	return fmt.Sprintf("%s, by %s: %s", strings.ToLower(word), cleanLine(j.Rule, 200), cleanLine(j.Reason, 400))
}

func (a *app) printExplanation(raw []byte) error {
	var e explanation
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("answer of the gateway: %w", err)
	}
	var b strings.Builder
	fmt.Fprintln(&b, e.Decision)
	if e.Decision.ArgumentBound {
		fmt.Fprintln(&b, "an approval is for exactly these arguments")
	}
	fmt.Fprintf(&b, "\npolicy   %s\nlabels   %s\nsession  %s\nflow     %s\n", e.Standing, orDash(strings.Join(e.Labels, ", ")), orDash(strings.Join(e.Taints, ", ")), cleanLine(e.Flow, 400))
	if len(e.Rules) > 0 {
		b.WriteByte('\n')
	}
	if _, err := a.out.Write([]byte(b.String())); err != nil || len(e.Rules) == 0 {
		return err
	}
	rows := make([][]string, len(e.Rules))
	for i, r := range e.Rules {
		what := "-"
		switch {
		case r.Decides:
			what = "decides"
		case r.Failed:
			what = "failed"
		case r.Matched:
			what = "matches"
		case r.Looked:
			what = "no match"
		}
		rows[i] = []string{cleanLine(r.Rule, 80), r.Effect, what, cleanLine(r.Why, 300)}
	}
	return table(a.out, []string{"RULE", "EFFECT", "RESULT", "WHY"}, rows)
}

func newPolicyCheckCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "check [--json]",
		Short: "Check the rules, and list them",
		Long: `Compiles every rule and holds it against the tools, principals and exports of the configuration: a rule that names
something that does not exist is a fault, with its line. ostiary config check and every start do the same.`,
		Example: "  ostiary policy check",
		Args:    takes(),
		RunE: a.run(func(context.Context, []string) error {
			c, err := a.config()
			if err != nil {
				return err
			}
			type rule struct {
				Name       string   `json:"name"`
				Effect     string   `json:"effect"`
				When       string   `json:"when,omitempty"`
				Tools      []string `json:"tools,omitempty"`
				Principals []string `json:"principals,omitempty"`
				Classes    []string `json:"classes,omitempty"`
				Flows      bool     `json:"flows,omitempty"`
			}
			rules := []rule{}
			rows := [][]string{}
			for _, r := range c.Rules {
				s := rule{Name: r.Name, Effect: r.Effect.String(), When: r.When, Tools: r.Tools, Principals: r.Principals, Flows: r.Flows}
				for _, class := range r.Classes {
					s.Classes = append(s.Classes, class.String())
				}
				rules = append(rules, s)
				rows = append(rows, []string{s.Name, s.Effect, firstOf(cleanLine(strings.Join(s.Tools, ", "), 60), "every tool"),
					firstOf(cleanLine(strings.Join(s.Principals, ", "), 40), "everybody"), firstOf(cleanLine(s.When, 80), "always")})
			}
			if asJSON {
				return a.printJSON(rules)
			}
			if len(rows) > 0 {
				if err := table(a.out, []string{"RULE", "EFFECT", "TOOLS", "PRINCIPALS", "WHEN"}, rows); err != nil {
					return err
				}
			}
			a.say("%s: ok, %s over %s", c.File, count(len(rules), "rule"), count(len(c.Providers), "provider"))
			return nil
		}),
	}
	jsonFlag(c, &asJSON)
	return c
}
