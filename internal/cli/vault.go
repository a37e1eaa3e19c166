package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/config"
	"github.com/ostiary/ostiary/internal/vault"
)

func newVaultCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "vault",
		Short: "Keep secrets: tokens for servers, and the key of evidence",
		Long: `The vault is one encrypted file in the data directory, vault.age. Its key is in an environment variable, in a key file, or
in the keyring of the operating system (table [vault] of the configuration). A configuration names a secret by
credential = "NAME". These commands work on the file itself, whether a gateway is running or not; a gateway reads a
secret when it needs it.`,
	}
	c.AddCommand(newVaultInitCommand(a), newVaultSetCommand(a), newVaultListCommand(a), newVaultRemoveCommand(a), newVaultRotateCommand(a))
	a.group(c)
	return c
}

// openVault opens the vault of the data directory. c is nil where there is no configuration: the vault can do without.
func (a *app) openVault(keys ...vault.Place) (v *vault.Vault, dir string, c *config.Config, err error) {
	if c, err = a.config(); err != nil && !errors.Is(err, errNoConfig) {
		return nil, "", nil, err
	}
	if dir, err = a.dataDir(c); err != nil {
		return nil, "", nil, err
	}
	o := vault.Options{Dir: dir, Env: a.env}
	if c != nil {
		o = c.VaultOptions(dir, a.env)
	}
	o.Logger = a.logger(slog.LevelWarn)
	if keys != nil {
		o.Keys = keys
	}
	if v, err = vault.Open(o); err != nil {
		return nil, "", nil, vaultFailure(err)
	}
	return v, dir, c, nil
}

// vaultFailure gives the vault's errors their exit codes and say what to do.
func vaultFailure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, vault.ErrNotFound):
		return fail(call.ExitFailed, "ostiary vault list shows the names", "%w", err)
	case errors.Is(err, vault.ErrInvalid):
		return fail(call.ExitUsage, "", "%w", err)
	case errors.Is(err, vault.ErrFixedKey):
		return fail(call.ExitStore, "put a new key in front of the old one there, then rotate again", "%w", err)
	case errors.Is(err, vault.ErrNewer):
		return fail(call.ExitStore, "use the newer program", "%w", err)
	case errors.Is(err, vault.ErrLocked), errors.Is(err, vault.ErrDamaged), errors.Is(err, vault.ErrNoVault), errors.Is(err, vault.ErrBusy):
		return fail(call.ExitStore, "", "%w", err)
	}
	return err
}

func newVaultInitCommand(a *app) *cobra.Command {
	var key string
	c := &cobra.Command{
		Use:   "init [--key PLACE]",
		Short: "Make the vault and its key",
		Long: `Makes an empty vault and a new key for it, where there is none. The key goes into the key file, or with --key keyring into
the keyring of the operating system. Where the environment variable has a key, that is used. A vault that is there is
left alone. Keep a copy of the key elsewhere: without it nothing in the vault can be read.`,
		Example: "  ostiary vault init --key keyring",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			var places []vault.Place
			switch key {
			case "":
			case string(vault.InFile), string(vault.InKeyring):
				places = []vault.Place{vault.Place(key)}
			default:
				return usage("", "--key: %q: expected file or keyring", key)
			}
			v, dir, _, err := a.openVault(places...)
			if err != nil {
				return err
			}
			path := filepath.Join(dir, vault.File)
			if _, err := os.Stat(path); err == nil {
				if err := v.Check(ctx); err != nil {
					return vaultFailure(err)
				}
				a.say("%s is there already", path)
				return nil
			}
			if err := v.Init(ctx); err != nil {
				return vaultFailure(err)
			}
			a.say("made %s", path)
			return nil
		}),
	}
	c.Flags().StringVar(&key, "key", "", "`place` of a new key: file or keyring (default: file)")
	return endsWith(c, call.ExitStore)
}

func newVaultSetCommand(a *app) *cobra.Command {
	return endsWith(&cobra.Command{
		Use:   "set NAME",
		Short: "Keep a secret, in place of the one of that name",
		Long: `Reads the secret from stdin, or asks for it without showing it. One line end at its end is no part of it. The secret is
never taken from the command line, where other users of the machine could see it. Makes the vault if there is none.`,
		Example: `  ostiary vault set search-token < token.txt
  pass show search | ostiary vault set search-token`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 { // the second is very likely the secret: it is not repeated
				return usage("pipe it into the command, or be asked for it; and change it, for it now stands in the shell's history",
					"the secret is never taken from the command line")
			}
			return takes("NAME")(c, args)
		},
		RunE: a.run(func(ctx context.Context, args []string) error {
			if err := vault.CheckName(args[0]); err != nil {
				return usage("", "%w", err)
			}
			v, _, _, err := a.openVault()
			if err != nil {
				return err
			}
			secret, err := a.readSecret(args[0])
			if err != nil {
				return err
			}
			if err := v.Set(ctx, args[0], secret); err != nil {
				return vaultFailure(err)
			}
			a.say("kept %s", args[0])
			return nil
		}),
	}, call.ExitStore)
}

// readSecret reads a secret from stdin, or asks for it without echo.
func (a *app) readSecret(name string) (vault.Secret, error) {
	var b []byte
	var err error
	switch {
	case !isTerminal(a.in):
		b, err = io.ReadAll(io.LimitReader(a.in, vault.MaxSecret+3))
		b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	case !a.canPrompt():
		return vault.Secret{}, usage("pipe it into the command", "the secret is not on stdin, and may not be asked for")
	default:
		fmt.Fprintf(a.err, "Secret %s (not shown): ", name)
		b, err = term.ReadPassword(int(a.in.(*os.File).Fd()))
		fmt.Fprintln(a.err)
	}
	if err != nil {
		return vault.Secret{}, fail(call.ExitUsage, "", "read secret: %w", err)
	}
	if len(b) == 0 {
		return vault.Secret{}, usage("to take it out of the vault: ostiary vault rm "+name, "the secret is empty")
	}
	return vault.NewSecret(string(b)), nil
}

// vaultEntry is one secret as it is listed.
type vaultEntry struct {
	Name    string     `json:"name"`
	Changed *time.Time `json:"changed,omitempty"` // nil: it is named, and the vault does not have it
	UsedBy  []string   `json:"used_by,omitempty"` // packages of providers
}

func newVaultListCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list [--json]",
		Short: "List the names of the secrets",
		Long: `Lists the secrets by name, when each was last changed, and the providers whose configuration names it; also those that a
configuration names and the vault does not have. A secret is never shown.`,
		Example: "  ostiary vault list",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			v, _, c, err := a.openVault()
			if err != nil {
				return err
			}
			infos, err := v.List(ctx)
			if err != nil {
				return vaultFailure(err)
			}
			entries := vaultEntries(infos, c)
			if asJSON {
				return a.printJSON(entries)
			}
			rows := make([][]string, len(entries))
			for i, e := range entries {
				changed := "missing"
				if e.Changed != nil {
					changed = e.Changed.Local().Format(time.DateTime)
				}
				rows[i] = []string{e.Name, changed, strings.Join(e.UsedBy, ", ")}
			}
			return table(a.out, []string{"NAME", "CHANGED", "USED BY"}, rows)
		}),
	}
	jsonFlag(c, &asJSON)
	return endsWith(c, call.ExitStore)
}

func vaultEntries(infos []vault.Info, c *config.Config) []vaultEntry {
	entries := []vaultEntry{}
	for _, i := range infos {
		entries = append(entries, vaultEntry{Name: i.Name, Changed: &i.Changed})
	}
	if c == nil {
		return entries
	}
	for _, p := range c.Providers {
		if p.CredentialEntry == "" {
			continue
		}
		at := slices.IndexFunc(entries, func(e vaultEntry) bool { return e.Name == p.CredentialEntry })
		if at < 0 {
			at = len(entries)
			entries = append(entries, vaultEntry{Name: p.CredentialEntry})
		}
		entries[at].UsedBy = append(entries[at].UsedBy, p.Profile.Package)
	}
	return entries
}

func newVaultRemoveCommand(a *app) *cobra.Command {
	return endsWith(&cobra.Command{
		Use:     "rm NAME…",
		Short:   "Take secrets out",
		Example: "  ostiary vault rm search-token",
		Args:    takes("NAME", "[NAME…]"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			v, _, _, err := a.openVault()
			if err != nil {
				return err
			}
			for _, name := range args {
				if err := v.Remove(ctx, name); err != nil {
					return vaultFailure(err)
				}
				a.say("removed %s", name)
			}
			return nil
		}),
	}, call.ExitStore)
}

func newVaultRotateCommand(a *app) *cobra.Command {
	return endsWith(&cobra.Command{
		Use:   "rotate",
		Short: "Change the key of the vault",
		Long: `Makes a new key, encrypts everything to it, and only then gives up the old one. Interrupted at any point, the keys that are
kept open the file that is there. A key in the environment variable, or in a file that this program has not made, is not
its to change: put the new key in front of the old one there, and rotate takes it. Evidence that was sealed before stays
readable.`,
		Example: "  ostiary vault rotate",
		Args:    takes(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			v, _, _, err := a.openVault()
			if err != nil {
				return err
			}
			if err := v.Rotate(ctx); err != nil {
				return vaultFailure(err)
			}
			a.say("the vault has a new key")
			return nil
		}),
	}, call.ExitStore)
}
