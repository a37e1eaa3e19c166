package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/config"
	"github.com/ostiary/ostiary/internal/vault"
)

// finding is one line of the doctor's report.
type finding struct {
	Check  string `json:"check"`
	Result string `json:"result"` // ok, warning or fault
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

func newDoctorCommand(a *app) *cobra.Command {
	var asJSON, offline bool
	c := &cobra.Command{
		Use:   "doctor [--offline] [--json]",
		Short: "Find out what is missing on this machine",
		Long: `Checks the configuration, the environment variables and programs that it names, the data directory, the ledger's
signature and the listening address; then, unless --offline, connects to every provider, lists its tools and compares
them with the allowed ones. No tool is called and nothing is recorded. It fails if there is a fault.`,
		Example: "  ostiary doctor",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			d := &doctor{app: a, findings: []finding{}}
			d.examine(ctx, offline)
			if err := ctx.Err(); err != nil {
				return err
			}
			return d.print(asJSON)
		}),
	}
	c.Flags().BoolVar(&offline, "offline", false, "connect to nothing")
	jsonFlag(c, &asJSON)
	return c
}

type doctor struct {
	*app
	findings []finding
}

func (d *doctor) add(result, check, hint, format string, args ...any) {
	d.findings = append(d.findings, finding{Check: check, Result: result, Detail: clean(fmt.Sprintf(format, args...)), Hint: hint})
}

func (d *doctor) examine(ctx context.Context, offline bool) {
	v := buildVersion()
	d.add("ok", "version", "", "ostiary %s, %s, %s", v.Version, v.Go, v.Platform)
	c := d.configuration()
	d.dataDirectory(ctx, c)
	if c == nil {
		return
	}
	d.listening(c)
	d.credentials(ctx, c)
	for _, p := range c.Providers {
		if ctx.Err() != nil {
			return
		}
		if d.program(p) && !offline {
			d.provider(ctx, c, p)
		}
	}
}

func (d *doctor) configuration() *config.Config {
	c, err := d.config()
	if faults, ok := errors.AsType[config.Faults](err); ok {
		for _, f := range faults {
			d.add("fault", "configuration", f.Hint, "%s", f)
		}
		return nil
	}
	if err != nil {
		f, _ := errors.AsType[*failure](err)
		hint := ""
		if f != nil {
			hint = f.hint
		}
		d.add("fault", "configuration", hint, "%v", err)
		return nil
	}
	d.add("ok", "configuration", "", "%s: %s, %s", c.File, count(len(c.Providers), "provider"), count(len(c.Exports), "export"))
	for _, w := range c.Warnings {
		d.add("warning", "configuration", w.Hint, "%s", w)
	}
	return c
}

func (d *doctor) dataDirectory(ctx context.Context, c *config.Config) {
	dir, err := d.dataDir(c)
	if err != nil {
		d.add("fault", "data directory", "name one with --data", "%v", err)
		return
	}
	if err := canWrite(dir); err != nil {
		d.add("fault", "data directory", "choose another with --data", "%s: %v", dir, err)
		return
	}
	l, err := ostiary.OpenLedger(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		d.add("ok", "data directory", "", "%s: empty, will be made at the first start", dir)
		return
	}
	if err != nil {
		d.add("fault", "ledger", "", "%v", err)
		return
	}
	defer l.Close()
	d.add("ok", "data directory", "", "%s", dir)
	switch report, err := l.Verify(ctx); {
	case err != nil:
		d.add("fault", "ledger", "", "%v", err)
	case !report.OK:
		d.add("fault", "ledger", "ostiary ledger verify has the details", "bad at record %d: %s", report.BadSeq, report.Fault)
	default:
		d.add("ok", "ledger", "", "%s, signed up to %d", count(int(report.Records), "record"), report.Signed)
	}
}

// canWrite tries it out, because permissions do not tell all: the disk may be full or mounted read-only. What does not
// exist yet is tried in the nearest folder that does.
func canWrite(dir string) error {
	for {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			return errors.New("is no directory")
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return err
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".ostiary-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (d *doctor) listening(c *config.Config) {
	l, err := net.Listen("tcp", c.Server.Listen)
	if err != nil {
		d.add("warning", "address", "a gateway may be running already; else choose another server.listen", "%v", err)
		return
	}
	_ = l.Close() // nothing was served
	d.add("ok", "address", "", "%s is free", c.Server.Listen)
}

// credentials looks whether the vault has what the configuration names, where it names anything.
func (d *doctor) credentials(ctx context.Context, c *config.Config) {
	for _, p := range c.Providers {
		if p.CredentialEntry == "" {
			continue
		}
		v, dir, _, err := d.openVault()
		if err == nil {
			_, err = v.Get(ctx, p.CredentialEntry)
		}
		switch {
		case errors.Is(err, vault.ErrNotFound):
			d.add(d.severity(p), "vault", "ostiary vault set "+p.CredentialEntry, "%s does not have %s, which provider %s names", filepath.Join(dir, vault.File), p.CredentialEntry, p.Profile.Package)
		case err != nil:
			d.add(d.severity(p), "vault", "", "%v", err)
		default:
			d.add("ok", "vault", "", "has %s for provider %s", p.CredentialEntry, p.Profile.Package)
		}
	}
}

// program says whether a provider's program is there; a provider that is no program passes.
func (d *doctor) program(p config.Provider) bool {
	check := "provider " + p.Profile.Package
	if p.Profile.Trust.String() == "BLOCKED" {
		d.add("ok", check, "", "is BLOCKED: not started")
		return false
	}
	if p.Profile.Stdio == nil {
		return true
	}
	if _, err := exec.LookPath(p.Profile.Stdio.Command); err != nil {
		d.add(d.severity(p), check, "install it, or give its whole path in command", "the program %s is not there: %v", p.Profile.Stdio.Command, errors.Unwrap(err))
		return false
	}
	return true
}

// severity is that of a provider's failure: one that is not required keeps nothing from starting.
func (d *doctor) severity(p config.Provider) string {
	if p.Profile.Required {
		return "fault"
	}
	return "warning"
}

func (d *doctor) provider(ctx context.Context, c *config.Config, p config.Provider) {
	check := "provider " + p.Profile.Package
	dir, err := d.dataDir(c)
	if err != nil {
		return // reported already
	}
	in, err := ostiary.Inspect(ctx, ostiary.Options{Config: c, DataDir: dir, Logger: d.logger(slog.LevelError), LookupEnv: d.env}, p.Profile.Package)
	if err != nil {
		d.add(d.severity(p), check, "", "%v", err)
		return
	}
	d.add("ok", check, "", "revision %s, %s in %s", in.Revision, count(len(in.Tools), "tool"), in.Took.Round(time.Millisecond))
	offered := map[string]ostiary.InspectedTool{}
	for _, t := range in.Tools {
		offered[t.Name] = t
	}
	for _, t := range p.Profile.AllowedTools {
		switch o, ok := offered[t.Raw]; {
		case !ok:
			d.add("warning", check, "take it out of allowed_tools", "does not offer %s, which is allowed", t.Raw)
		case o.Problem != "":
			d.add("fault", check, "take it out of allowed_tools", "%s: %s", t.Raw, o.Problem)
		}
	}
}

func (d *doctor) print(asJSON bool) error {
	faults := 0
	for _, f := range d.findings {
		if f.Result == "fault" {
			faults++
		}
	}
	if asJSON {
		if err := d.printJSON(d.findings); err != nil {
			return err
		}
	} else {
		for _, f := range d.findings {
			text := fmt.Sprintf("%-8s %s: %s\n", f.Result, f.Check, strings.ReplaceAll(f.Detail, "\n", "\n         "))
			if f.Hint != "" {
				text += "         hint: " + f.Hint + "\n"
			}
			if _, err := fmt.Fprint(d.out, text); err != nil {
				return err
			}
		}
	}
	if faults > 0 {
		return &failure{exit: call.ExitFailed, code: "unwell", message: count(faults, "fault")}
	}
	return nil
}
