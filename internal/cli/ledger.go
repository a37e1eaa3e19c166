package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/config"
)

func newLedgerCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "ledger",
		Short: "Read, verify and export the record of all that happened",
		Long: `The ledger is in the data directory. These commands read it, whether a gateway is running on it or not; none but prune
changes it.`,
	}
	c.AddCommand(newLedgerTailCommand(a), newLedgerShowCommand(a), newLedgerVerifyCommand(a), newLedgerExportCommand(a), newLedgerKeyCommand(a), newLedgerCheckpointCommand(a), newLedgerPruneCommand(a))
	a.group(c)
	return c
}

// withLedger opens the ledger of the data directory. The configuration is only needed to find it, so that a ledger can be
// read long after its configuration has gone.
func (a *app) withLedger(ctx context.Context, fn func(*ostiary.Ledger) error) error {
	var c *config.Config
	if a.data == "" && a.lookup("OSTIARY_DATA") == "" {
		if path, err := a.configPath(); err == nil {
			if c, err = config.Load(path, a.env); err != nil {
				return err
			}
		}
	}
	dir, err := a.dataDir(c)
	if err != nil {
		return err
	}
	l, err := ostiary.OpenLedger(ctx, dir)
	if err != nil {
		hint := ""
		if errors.Is(err, fs.ErrNotExist) {
			hint = "no gateway has run on this data directory yet; name another with --data"
		}
		return fail(call.ExitStore, hint, "%w", err)
	}
	defer l.Close()
	return fn(l)
}

func newLedgerTailCommand(a *app) *cobra.Command {
	var asJSON, follow bool
	var lines int
	c := &cobra.Command{
		Use:     "tail [-n COUNT] [--follow] [--json]",
		Short:   "Show the last records",
		Example: "  ostiary ledger tail -n 50 --follow",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if lines < 0 {
				return usage("", "--lines: %d is negative", lines)
			}
			return a.withLedger(ctx, func(l *ostiary.Ledger) error { return a.tail(ctx, l, lines, follow, asJSON) })
		}),
	}
	c.Flags().IntVarP(&lines, "lines", "n", 20, "`count` of records to begin with")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new records until interrupted")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return endsWith(c, call.ExitStore)
}

// tailEvery is how often --follow looks for new records.
const tailEvery = 500 * time.Millisecond

func (a *app) tail(ctx context.Context, l *ostiary.Ledger, lines int, follow, asJSON bool) error {
	head, err := l.Head(ctx)
	if err != nil {
		return err
	}
	after := max(head-int64(lines), 0)
	ticker := time.NewTicker(tailEvery)
	defer ticker.Stop()
	for {
		err := l.Records(ctx, after, 0, func(r ostiary.LedgerRecord) error {
			after = r.Seq
			return a.printRecord(r, asJSON)
		})
		if err != nil || !follow {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (a *app) printRecord(r ostiary.LedgerRecord, asJSON bool) error {
	if asJSON {
		return a.printJSONLine(r)
	}
	parts := []string{fmt.Sprintf("%6d", r.Seq), r.Time.UTC().Format("2006-01-02 15:04:05.000"), fmt.Sprintf("%-19s", r.Kind)}
	for _, p := range []string{r.Call, r.Principal} {
		if p != "" {
			parts = append(parts, cleanLine(p, 80))
		}
	}
	if r.Pruned > 0 {
		parts = append(parts, fmt.Sprintf("(pruned, on record %d)", r.Pruned))
	} else if body := string(r.Body); body != "{}" {
		parts = append(parts, cleanLine(summary(r), 2000))
	}
	_, err := fmt.Fprintln(a.out, strings.Join(parts, "  "))
	return err
}

func newLedgerVerifyCommand(a *app) *cobra.Command {
	var asJSON bool
	var export, key string
	var known []string
	c := &cobra.Command{
		Use:   "verify [--known CHECKPOINT]… [--export FILE --key KEY] [--json]",
		Short: "Check that nothing was changed, left out or rolled back",
		Long: `Checks every record of the ledger, the chain, the tree and every signed checkpoint, and names the first bad record.
With --export it checks an exported file, for which nothing but the public key is needed. A checkpoint that was kept
elsewhere (ostiary ledger checkpoint) shows a ledger that was rolled back as a whole. The content of records that were
pruned cannot be checked any more; that it was pruned, when and by whom, and the records' hashes can.`,
		Example: `  ostiary ledger verify --known kept.note
  ostiary ledger verify --export ledger.jsonl --key ledger.pub`,
		Args: takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if (export == "") != (key == "") {
				return usage("", "--export and --key belong together")
			}
			var notes [][]byte
			for _, k := range known {
				b, err := a.readInput(k)
				if err != nil {
					return err
				}
				notes = append(notes, b)
			}
			if export != "" {
				return a.verifyExport(ctx, export, key, notes, asJSON)
			}
			return a.withLedger(ctx, func(l *ostiary.Ledger) error {
				report, err := l.Verify(ctx, notes...)
				if err != nil {
					return err
				}
				return a.printReport(report, asJSON)
			})
		}),
	}
	c.Flags().StringVar(&export, "export", "", "check this exported `file` instead")
	c.Flags().StringVar(&key, "key", "", "public key for --export: the `key` itself, or a file with it")
	c.Flags().StringArrayVar(&known, "known", nil, "`file` with a checkpoint that was kept elsewhere; may be repeated")
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitHeld, call.ExitStore)
}

func (a *app) verifyExport(ctx context.Context, file, key string, known [][]byte, asJSON bool) error {
	r := a.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return fail(call.ExitUsage, "", "read export: %w", err)
		}
		defer f.Close()
		r = f
	}
	report, err := ostiary.VerifyExport(ctx, r, keyNamed(key), known...)
	if err != nil {
		return err
	}
	return a.printReport(report, asJSON)
}

func (a *app) printReport(r ostiary.LedgerReport, asJSON bool) error {
	if asJSON {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else if r.OK {
		pruned := ""
		switch {
		case r.Unvouched > 0:
			pruned = fmt.Sprintf("%s (%d of them made by records that are not here), ", count(int(r.Tombstones), "tombstone"), r.Unvouched)
		case r.Tombstones > 0:
			pruned = count(int(r.Tombstones), "tombstone") + ", "
		}
		if _, err := fmt.Fprintf(a.out, "ok: %s (%d to %d), %s%s, signed up to %d, root %s\n", count(int(r.Records), "record"), r.First, r.Last,
			pruned, count(r.Checkpoints, "checkpoint"), r.Signed, r.Root); err != nil {
			return err
		}
	}
	if r.OK {
		return nil
	}
	return badLedger(r)
}

// keyNamed is a public key that was given as such, or as a file.
func keyNamed(key string) string {
	if b, err := os.ReadFile(key); err == nil {
		return strings.TrimSpace(string(b))
	}
	return key
}

func badLedger(r ostiary.LedgerReport) error {
	return &failure{exit: call.ExitHeld, code: "ledger_bad", message: fmt.Sprintf("the ledger is bad at record %d: %s: %s", r.BadSeq, r.Fault, r.Detail),
		hint: "keep it as it is; everything from that record on is in doubt"}
}

func newLedgerExportCommand(a *app) *cobra.Command {
	var output string
	var after, until int64
	c := &cobra.Command{
		Use:     "export [--out FILE] [--after SEQ] [--until SEQ]",
		Short:   "Write the ledger as JSON Lines",
		Long:    "Writes a header, the records and the signed checkpoints, one JSON object a line: all that ostiary ledger verify --export needs beside the public key.",
		Example: "  ostiary ledger export --out ledger.jsonl",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			return a.withLedger(ctx, func(l *ostiary.Ledger) error {
				if output == "" || output == "-" {
					return l.Export(ctx, a.out, after, until)
				}
				return writeWhole(output, func(f *os.File) error { return l.Export(ctx, f, after, until) })
			})
		}),
	}
	c.Flags().StringVarP(&output, "out", "o", "", "`file` to write instead of stdout; --output is the same")
	c.Flags().Int64Var(&after, "after", 0, "begin after this `sequence`")
	c.Flags().Int64Var(&until, "until", 0, "end with this `sequence` (default: the last)")
	return endsWith(c, call.ExitStore)
}

func newLedgerKeyCommand(a *app) *cobra.Command {
	return endsWith(&cobra.Command{
		Use:     "key",
		Short:   "Print the ledger's public key",
		Example: "  ostiary ledger key > ledger.pub",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			return a.withLedger(ctx, func(l *ostiary.Ledger) error {
				key, err := l.Verifier()
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(a.out, strings.TrimSpace(key))
				return err
			})
		}),
	}, call.ExitStore)
}

func newLedgerCheckpointCommand(a *app) *cobra.Command {
	return endsWith(&cobra.Command{
		Use:   "checkpoint",
		Short: "Print the newest signed checkpoint, to be kept elsewhere",
		Long: `Prints the newest signed checkpoint. Kept on another machine and given to ostiary ledger verify --known later, it shows
whether the ledger still continues from there.`,
		Example: "  ostiary ledger checkpoint > kept.note",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			return a.withLedger(ctx, func(l *ostiary.Ledger) error {
				note, err := l.Checkpoint(ctx)
				if err != nil {
					return err
				}
				if len(note) == 0 {
					return fail(call.ExitFailed, "the gateway signs one from time to time, and when it stops", "there is no checkpoint yet")
				}
				_, err = a.out.Write(note)
				return err
			})
		}),
	}, call.ExitStore)
}

// writeWhole writes a file under another name first, so that nobody ever reads half of it.
func writeWhole(path string, write func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()           // the error that counts is known
			_ = os.Remove(f.Name()) // nothing else refers to it
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// summary is what a person looks for first in a record: of a call its tool and what became of it, of anything else its body
// as it is. --json has everything.
func summary(r ostiary.LedgerRecord) string {
	var b struct{ Tool, Provider, Status, Delivery, Effect, Code, State, Reason, Revision string }
	if err := json.Unmarshal(r.Body, &b); err != nil {
		return string(r.Body)
	}
	var words []string
	add := func(name, v string) {
		if v != "" {
			words = append(words, strings.TrimPrefix(name+"="+v, "="))
		}
	}
	switch {
	case strings.HasPrefix(r.Kind, "call."):
		add("", b.Tool)
		add("", b.Status)
		add("delivery", b.Delivery)
		add("effect", b.Effect)
		add("code", b.Code)
	case strings.HasPrefix(r.Kind, "provider."):
		add("", b.Provider)
		add("", b.State)
		add("reason", b.Reason)
		add("revision", b.Revision)
	}
	if len(words) == 0 {
		return string(r.Body)
	}
	return strings.Join(words, " ")
}
