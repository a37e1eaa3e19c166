package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/adminapi"
)

type callOptions struct {
	input    string
	frontier []string
	timeout  time.Duration
	json     bool
}

func newCallCommand(a *app) *cobra.Command {
	var o callOptions
	c := &cobra.Command{
		Use:   "call TOOL [ARGUMENT…]",
		Short: "Call a tool",
		Long: `Calls one tool as the operator, through the same path as every other call: policy, approval, drift, the ledger. TOOL
is a tool id, package.name, or the bare name where only one tool has it. Without a running gateway on the data directory
the tool's provider is started for this call.

An argument is

  k=v       typed by the tool's schema; text if that does not say
  k:=json   JSON as it is
  k=@file   the text of a file; k=@- reads stdin, k=@@v is the text @v
  k:=@file  a file of JSON

An interrupt cancels the call, and what is known of it then is said all the same: whether anything was sent, and whether the
effect may have happened.

--input gives a whole JSON object, of which arguments replace members. --frontier says what the call is based on: if the
tool observes something that has moved on since, nothing is sent, and what was missed is shown.

The result's text goes to stdout, with --json the whole reply; what is known of the effect is in the exit code.`,
		Example: `  ostiary call files.read_text_file path=/srv/docs/a.txt
  ostiary call search.query 'filter:={"lang": "en"}' limit=10
  echo '{"path": "/srv/docs"}' | ostiary call files.list_directory --input - --json
  ostiary call files.write_file path=a.txt content=x --frontier aurora:mcp:files=17`,
		Args: takes("TOOL", "[ARGUMENT…]"),
		RunE: a.run(func(ctx context.Context, args []string) error { return a.call(ctx, o, args[0], args[1:]) }),

		ValidArgsFunction: a.completeTool,
	}
	c.Flags().StringVar(&o.input, "input", "", "`file` with the arguments as a JSON object; - is stdin")
	c.Flags().StringArrayVar(&o.frontier, "frontier", nil, "what the call is based on: a `frontier` as SCOPE=SEQUENCE, as a JSON object, or a file with one; may be repeated")
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "end the call after this `duration` (default: the provider's)")
	jsonFlag(c, &o.json)
	return endsWith(c, call.ExitRefused, call.ExitApprovalPending, call.ExitApprovalEnded, call.ExitHeld, call.ExitProvider, call.ExitStore,
		call.ExitUnknown, call.ExitToolError, call.ExitInputRequired, call.ExitDeadline)
}

func (a *app) call(ctx context.Context, o callOptions, tool string, pairs []string) error {
	if o.timeout < 0 {
		return usage("", "--timeout: %s is negative", o.timeout)
	}
	seen, err := a.frontier(o.frontier)
	if err != nil {
		return err
	}
	pkg, err := a.providerOf(tool)
	if err != nil {
		return err
	}
	var input []byte
	if o.input != "" {
		if input, err = a.readInput(o.input); err != nil {
			return err
		}
	}
	return a.withOperations(ctx, []string{pkg}, func(ops ostiary.Operations) error {
		tools, err := ops.Tools(ctx)
		if err != nil {
			return err
		}
		// A provider that is not up has no tools; the call itself says so, and leaves its record in the ledger.
		id := tool
		var schema argumentSchema
		t, found := findTool(tools, tool)
		if found == nil {
			id, schema = t.ID, readSchema(t.InputSchema)
		}
		arguments, err := a.arguments(pairs, input, schema)
		if err != nil {
			return err
		}
		reply, err := ops.Call(ctx, ostiary.CallRequest{Tool: id, Arguments: arguments, Frontier: seen, Timeout: o.timeout, Progress: a.progress()})
		if errors.Is(err, adminapi.ErrUnanswered) {
			exit := call.ExitUnknown
			if ctx.Err() != nil {
				exit = call.ExitInterrupted
			}
			return fail(exit, "whether it had its effect is not known; ostiary ledger tail shows what was written down", "%w", err)
		}
		if err != nil {
			return err
		}
		err = a.printReply(reply, o.json)
		f, ok := errors.AsType[*failure](err)
		switch {
		case ok && ctx.Err() != nil:
			f.exit = call.ExitInterrupted // whatever the call was at when it ended
		case ok && found == nil && t.Admission != "" && reply.Outcome.Delivery == call.NotSent && unadmitted[reply.Outcome.Code]:
			f.exit, f.hint = call.ExitHeld, "ostiary admit "+t.Provider+" shows what it offers, and what lets it in"
			if !strings.Contains(f.message, t.Admission) {
				f.message += "\n" + t.Admission
			}
		}
		return err
	})
}

// unadmitted are the codes of a call of what was not admitted, or is in quarantine.
var unadmitted = map[call.Code]bool{call.CodeProviderUnavailable: true, call.CodeToolNotAllowed: true, call.CodeSchemaDrift: true}

// progress tells a person how a call gets on; nil where nobody watches.
func (a *app) progress() func(progress, total, message string) {
	if a.quiet || !isTerminal(a.err) {
		return nil
	}
	return func(progress, total, message string) {
		if total != "" {
			progress += " of " + total
		}
		a.say("progress %s %s", progress, cleanLine(message, 100))
	}
}

// printReply prints what became of a call and gives the error that its exit code comes from; nil if it succeeded.
func (a *app) printReply(r ostiary.CallReply, asJSON bool) error {
	if asJSON {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else if r.Text != "" {
		if _, err := io.WriteString(a.out, strings.TrimRight(clean(r.Text), "\n")+"\n"); err != nil {
			return err
		}
	}
	if r.Outcome.Status == call.Succeeded {
		return nil
	}
	return outcomeFailure(r, asJSON)
}

func outcomeFailure(r ostiary.CallReply, asJSON bool) error {
	f := &failure{exit: outcomeExit(r.Outcome), code: string(r.Outcome.Code), message: r.Message}
	if f.message == "" {
		f.message = r.Outcome.Code.Info().Meaning
	}
	if r.Error != nil {
		f.message += fmt.Sprintf("\nthe provider says: %s (%d)", cleanLine(r.Error.Message, 500), r.Error.Code)
	}
	f.message = lowerFirst(f.message) + fmt.Sprintf("\n%s, delivery %s", r.Outcome.Status, r.Outcome.Delivery)
	if e := r.Outcome.Effect.String(); e != "" {
		f.message += ", effect " + e
	}
	if !asJSON { // else the reply has them
		for _, c := range r.Missed {
			f.message += fmt.Sprintf("\nmissed: %s #%d %s: %s", c.Scope, c.Seq, cleanLine(c.Kind, 60), cleanLine(visible(c.Summary), 300))
		}
	}
	switch r.Outcome.Code {
	case call.CodeFrontierRequired, call.CodeFrontierUnknown:
		f.hint = "ostiary world head shows where scopes stand, ostiary world delta what happened in one; say with --frontier what you have read"
	case call.CodeStaleFrontier:
		f.hint = "ostiary world delta SCOPE --after SEQUENCE has all of it; --json gives the frontier to go on from"
	}
	if r.Message == "" { // a message of the gateway says what to do, by how far the request got
		f.hint = lowerFirst(r.Outcome.Code.Info().Advice)
	}
	return f
}

// outcomeExit is the exit code of an outcome that is no success. What is unknown must never look like a plain failure:
// a deadline and an interruption keep their own codes, and anything else that is unknown is 10.
func outcomeExit(o call.Outcome) call.Exit {
	exit := call.ExitFailed
	if o.Code != "" {
		exit = o.Code.Info().Exit
	}
	switch o.Status {
	case call.InputRequired:
		return call.ExitInputRequired
	case call.StatusUnknown:
		if exit != call.ExitDeadline && exit != call.ExitInterrupted {
			return call.ExitUnknown
		}
	case call.Failed:
		if exit == call.ExitUnknown && o.Delivery == call.NotSent {
			return call.ExitProvider // nothing has left: that much is known
		}
	}
	return exit
}

// lowerFirst begins a sentence of ours as errors begin.
func lowerFirst(s string) string {
	if len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' && s[1] >= ' ' && (s[1] < 'A' || s[1] > 'Z') {
		return string(s[0]|0x20) + s[1:]
	}
	return s
}
