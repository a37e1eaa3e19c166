package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
)

func newLedgerShowCommand(a *app) *cobra.Command {
	var asJSON bool
	var file, key string
	c := &cobra.Command{
		Use:   "show CALL [--file EXPORT [--key KEY]] [--json]",
		Short: "Rebuild one call from its records",
		Long: `Rebuilds a call from the records that tell of it: who asked for what, which provider and definition it was for and who
admitted that, which rule decided, who agreed, what became of it, what the firewall said, what the caller was left with.
The numbers are those of the records. How far that goes is said at the end (R9.1):

  RECONSTRUCTED             every step is on record, and every join key fits
  PARTIAL_REDACTED          what came was let out redacted, or was held: its digest is here
  BLOCKED_BY_POLICY         a decision ended the call before anything was sent
  PARTIAL_MISSING_EVIDENCE  something has been purged or pruned, or the end has not come yet
  INVALID_LINEAGE           a join key is missing or contradicts, or the order is not that of the path

The ledger holds arguments and results by their digests alone. With --file the call is looked for in an export, which is
checked first: against the ledger's public key if --key gives it, else against the key that the file itself names, which
finds damage, and no forgery.`,
		Example: `  ostiary ledger show 06f0t2k8m3
  ostiary ledger show 06f0t2k8m3 --file ledger.jsonl --key ledger.pub`,
		Args: takes("CALL"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			id := call.ID(args[0])
			if file == "" && key != "" {
				return usage("", "--key is for --file")
			}
			if file != "" {
				t, err := a.exportedCall(ctx, file, key, id)
				if err != nil {
					return err
				}
				return a.printCall(t, asJSON)
			}
			return a.withLedger(ctx, func(l *ostiary.Ledger) error {
				t, err := l.Call(ctx, id)
				if err != nil {
					return fail(call.ExitFailed, "ostiary ledger tail shows the ids of the last calls", "%w", err)
				}
				return a.printCall(t, asJSON)
			})
		}),
	}
	c.Flags().StringVar(&file, "file", "", "look in this exported `file` instead")
	c.Flags().StringVar(&key, "key", "", "public key for --file: the `key` itself, or a file with it")
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitHeld, call.ExitStore)
}

// exportedCall looks for a call in an export that is sound.
func (a *app) exportedCall(ctx context.Context, file, key string, id call.ID) (t ostiary.LedgerCall, err error) {
	f, err := os.Open(file)
	if err != nil {
		return t, fail(call.ExitUsage, "", "read export: %w", err)
	}
	defer f.Close()
	if key == "" {
		if key, err = ostiary.ExportVerifier(f); err != nil {
			return t, fail(call.ExitUsage, "ostiary ledger export writes one", "%s: %w", file, err)
		}
		a.say("%s is checked against its own key alone; name the ledger's with --key", file)
	} else {
		key = keyNamed(key)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return t, fmt.Errorf("read export: %w", err)
	}
	report, err := ostiary.VerifyExport(ctx, f, key)
	if err != nil {
		return t, err
	}
	switch {
	case report.Fault == ostiary.FaultUnsigned:
		a.say("no signed checkpoint covers any record of %s", file)
	case !report.OK:
		return t, badLedger(report)
	}
	if t, err = ostiary.ExportedCall(f, id); err != nil {
		return t, fail(call.ExitFailed, "", "%s: %w", file, err)
	}
	return t, nil
}

// printCall writes the path of a call, one step a line, in order.
func (a *app) printCall(t ostiary.LedgerCall, asJSON bool) error {
	if asJSON {
		return a.printJSON(t)
	}
	_, err := io.WriteString(a.out, callText(&t))
	return err
}

// reconstructions say what each outcome of R9.1 means.
var reconstructions = map[string]string{
	"RECONSTRUCTED":            "every step is on record",
	"PARTIAL_REDACTED":         "what came is not what was let out",
	"BLOCKED_BY_POLICY":        "a decision ended the call before anything was sent",
	"PARTIAL_MISSING_EVIDENCE": "not everything is there, any more or yet",
	"INVALID_LINEAGE":          "the records contradict each other",
}

func callText(t *ostiary.LedgerCall) string {
	var b strings.Builder
	line := func(name string, seq int64, words ...string) {
		var said []string
		for _, w := range words {
			if w != "" {
				said = append(said, cleanLine(w, 400))
			}
		}
		if len(said) == 0 {
			return
		}
		at := ""
		if seq > 0 {
			at = fmt.Sprintf("#%d", seq)
		}
		fmt.Fprintf(&b, "%-11s %6s  %s\n", name, at, strings.Join(said, ", "))
	}
	with := func(name, v string) string {
		if v == "" {
			return ""
		}
		return name + " " + v
	}
	at := func(when time.Time) string {
		if when.IsZero() {
			return ""
		}
		return when.UTC().Format("2006-01-02 15:04:05.000")
	}
	line("call", 0, t.Call)
	line("asked by", 0, t.Principal, with("session", t.Session), with("through", t.Request.Export), at(t.Request.Time))
	line("trace", 0, t.Trace)
	line("request", t.Request.Seq, t.Request.Tool, with("arguments:", contentWords(t.Request.Arguments.Bytes, t.Request.Arguments.SHA256)))
	line("provider", 0, t.Provider.Package, t.Provider.Generation, t.Request.Effect)
	line("definition", 0, t.Provider.Descriptor)
	if d := t.Admission; d != nil {
		line("admission", d.Seq, with("by", d.Decider), at(d.Time), d.Reason)
	}
	line("policy", 0, with("rule", t.Policy.Rule), with("snapshot", t.Policy.Snapshot))
	if p := t.Approval; p != nil {
		line("approval", p.Asked, p.ID, with("asked by call", string(p.AskedBy)))
		if p.Decided > 0 {
			line("", p.Decided, p.Decision, with("by", p.Decider), p.Reason)
		}
		if p.Spent > 0 {
			line("", p.Spent, "spent")
		}
	}
	if t.Intent > 0 {
		line("intent", t.Intent, "let through")
	}
	if o := t.Outcome; o != nil {
		line("outcome", o.Seq, o.Status, with("delivery", o.Delivery), with("effect", o.Effect), with("code", string(o.Code)), with("told", o.Told), at(o.Time))
		if o.Result != nil {
			line("result", 0, contentWords(o.Result.Bytes, o.Result.SHA256))
		}
		if o.Error != nil {
			line("error", 0, contentWords(o.Error.Bytes, o.Error.SHA256))
		}
		if o.Released != nil {
			line("let out", 0, contentWords(o.Released.Bytes, o.Released.SHA256))
		}
	}
	if v := t.Verdict; v != nil {
		line("verdict", 0, v.Kind, with("because of", strings.Join(v.Reasons, " ")), with("sensitivity", v.Sensitivity))
	}
	if e := t.Evidence; e != nil {
		line("evidence", 0, e.ID, e.State, with("by", e.Decider), e.Reason)
		if e.Delivered > 0 {
			line("", e.Delivered, "handed over", with("to call", string(e.To)))
		}
	}
	line("disposition", 0, strings.ReplaceAll(t.Disposition, "_", " "))
	fmt.Fprintf(&b, "\n%s: %s\n", t.Reconstruction, reconstructions[t.Reconstruction])
	for _, g := range t.Gaps {
		if g.Seq > 0 {
			fmt.Fprintf(&b, "  #%d: %s\n", g.Seq, cleanLine(g.Text, 400))
		} else {
			fmt.Fprintf(&b, "  %s\n", cleanLine(g.Text, 400))
		}
	}
	return b.String()
}

func contentWords(bytes int64, digest string) string {
	if digest == "" {
		return ""
	}
	return fmt.Sprintf("%s, sha256:%s", count(int(bytes), "byte"), digest)
}
