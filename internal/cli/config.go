package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/config"
)

func newConfigCommand(a *app) *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Check or show the configuration"}
	c.AddCommand(newConfigCheckCommand(a), newConfigShowCommand(a), newConfigSchemaCommand(a))
	a.group(c)
	return c
}

// faultJSON is one fault or warning in `ostiary config check --json`.
type faultJSON struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Key     string `json:"key,omitempty"`
	Problem string `json:"problem"`
	Hint    string `json:"hint,omitempty"`
}

func faultsJSON(faults config.Faults) []faultJSON {
	out := make([]faultJSON, len(faults))
	for i, f := range faults {
		out[i] = faultJSON(*f)
	}
	return out
}

func newConfigCheckCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "check [--json]",
		Short: "Check the configuration without starting anything",
		Long: `Reads the configuration and the environment variables that it names, and reports every fault with its line, its key
and what was expected. Nothing is started and nothing is connected.`,
		Example: "  ostiary config check --config ./ostiary.toml",
		Args:    takes(),
		RunE: a.run(func(context.Context, []string) error {
			c, err := a.config()
			if !asJSON {
				if err != nil {
					return err
				}
				if !a.verbose { // else they are said already
					a.warnings(c)
				}
				_, err = fmt.Fprintf(a.out, "%s is valid: %s, %s\n", c.File, count(len(c.Providers), "provider"), count(len(c.Exports), "export"))
				return err
			}
			result := struct {
				Valid    bool        `json:"valid"`
				Faults   []faultJSON `json:"faults"`
				Warnings []faultJSON `json:"warnings"`
			}{Faults: []faultJSON{}, Warnings: []faultJSON{}}
			if err == nil {
				result.Valid, result.Warnings = true, faultsJSON(c.Warnings)
				return a.printJSON(result)
			}
			faults, ok := errors.AsType[config.Faults](err)
			if !ok {
				return err
			}
			result.Faults = faultsJSON(faults)
			if err := a.printJSON(result); err != nil {
				return err
			}
			return fail(call.ExitUsage, "", "%s", count(len(faults), "fault"))
		}),
	}
	jsonFlag(c, &asJSON)
	return c
}

func newConfigShowCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "show [--json]",
		Short:   "Show what holds, defaults included and secrets left out",
		Example: "  ostiary config show | grep timeout",
		Args:    takes(),
		RunE: a.run(func(context.Context, []string) error {
			c, err := a.config()
			if err != nil {
				return err
			}
			if !asJSON {
				return config.Show(a.out, c)
			}
			type setting struct {
				Key     string `json:"key"`
				Value   string `json:"value,omitempty"` // as TOML
				Default bool   `json:"default"`
				Line    int    `json:"line,omitempty"`
			}
			settings := []setting{}
			for _, s := range c.Settings() {
				settings = append(settings, setting(s))
			}
			return a.printJSON(struct {
				File     string    `json:"file"`
				Settings []setting `json:"settings"`
			}{c.File, settings})
		}),
	}
	jsonFlag(c, &asJSON)
	return c
}

func newConfigSchemaCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print a JSON Schema of the configuration, for editors",
		Example: "  ostiary config schema > ostiary.schema.json",
		Args:    takes(),
		RunE: a.run(func(context.Context, []string) error {
			b, err := config.Schema()
			if err != nil {
				return err
			}
			_, err = a.out.Write(b)
			return err
		}),
	}
}

// plural is the form of a verb that goes with a number.
func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
