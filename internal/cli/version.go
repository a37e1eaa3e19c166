package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ostiary/ostiary"
)

// versionInfo is what `ostiary version --json` prints.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source
	Time     string `json:"time,omitempty"`     // of that revision
	Modified bool   `json:"modified,omitempty"` // the source had changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// buildVersion takes the version that the linker has set; a build by `go install` has that of its module.
func buildVersion() versionInfo {
	v := versionInfo{Version: ostiary.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func newVersionCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version [--json]",
		Short:   "Show the version",
		Example: "  ostiary version --json",
		Args:    takes(),
		RunE: a.run(func(context.Context, []string) error {
			v := buildVersion()
			if asJSON {
				return a.printJSON(v)
			}
			_, err := fmt.Fprintf(a.out, "ostiary %s (%s, %s)\n", v.Version, v.Go, v.Platform)
			return err
		}),
	}
	jsonFlag(c, &asJSON)
	return c
}

// jsonFlag is the one flag that every command that reads has.
func jsonFlag(c *cobra.Command, to *bool) {
	c.Flags().BoolVar(to, "json", false, "print JSON, and errors as one line of JSON")
}

func itoa(i int) string { return strconv.Itoa(i) }
