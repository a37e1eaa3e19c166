package ostiary

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/mcpwire"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/provider"
	"github.com/ostiary/ostiary/internal/vault"
)

// Inspection is what a server says of itself before anything of it is admitted. All of it is the server's own word.
type Inspection struct {
	Provider      string          `json:"provider"`
	Revision      string          `json:"protocol_revision"`
	ServerName    string          `json:"server_name,omitempty"`
	ServerVersion string          `json:"server_version,omitempty"`
	Took          time.Duration   `json:"took_ns"`
	Pages         int             `json:"pages"`
	Tools         []InspectedTool `json:"tools"`
}

// InspectedTool is one tool as the server lists it, allowed or not.
type InspectedTool struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	ReadOnly    bool   `json:"read_only_hint,omitempty"` // annotations.readOnlyHint; it never relaxes a policy (R6.7)
	Allowed     bool   `json:"allowed"`
	Problem     string `json:"problem,omitempty"` // why the tool could not be admitted as it is
}

// Inspect connects to one provider of a configuration, lists all that it offers, and closes the connection again. Nothing
// is recorded, and nothing can be called. Of the options it needs Config or ConfigFile alone, and DataDir if the provider's
// credential is in the vault there.
func Inspect(ctx context.Context, o Options, pkg string) (in Inspection, err error) {
	if o.DataDir == "" {
		o.DataDir = "-" // nothing is kept
	}
	if err := o.fill(); err != nil {
		return in, err
	}
	p, ok := o.Config.Provider(pkg)
	if !ok {
		return in, fmt.Errorf("there is no provider %s in %s", pkg, o.Config.File)
	}
	profile := p.Profile
	if p.CredentialEntry != "" {
		v, err := vault.Open(o.Config.VaultOptions(o.DataDir, o.LookupEnv))
		if err != nil {
			return in, err
		}
		profile = withCredential(v.Get, p)
	}
	ctx, cancel := context.WithTimeout(ctx, profile.Limits.Connect)
	defer cancel()
	began := o.Now()
	up := mcpwire.New(mcpwire.Options{Logger: o.Logger.With(slog.String("component", "mcpwire")), ClientName: "ostiary", ClientVersion: Version, Now: o.Now, LookupEnv: o.LookupEnv,
		ToolContract: true})
	phase := provider.PhaseConnect
	link, err := up.Connect(ctx, provider.Generation{Attachment: "inspect." + pkg, Number: 1}, profile, func(ph provider.Phase) {
		phase = ph
		if o.OnPhase != nil {
			o.OnPhase(pkg, ph.String())
		}
	})
	if err != nil {
		return in, err
	}
	defer func() {
		// The end of a connection has its own bound, whatever became of ctx.
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*profile.Limits.Close)
		defer cancel()
		if cerr := link.Close(closeCtx); cerr != nil && err == nil {
			err = fmt.Errorf("close provider %s: %w", pkg, cerr)
		}
	}()
	phase = provider.PhaseList
	listing, err := link.List(ctx)
	if err != nil {
		return in, &provider.StartError{Provider: pkg, Phase: phase, Cause: err}
	}
	n := link.Negotiated()
	in = Inspection{Provider: pkg, Revision: n.Revision, ServerName: n.ServerName, ServerVersion: n.ServerVersion, Took: o.Now().Sub(began), Pages: listing.Pages, Tools: []InspectedTool{}}
	for _, def := range listing.Tools {
		in.Tools = append(in.Tools, inspected(def, profile.AllowedTools))
	}
	for _, w := range listing.Warnings {
		in.Tools = append(in.Tools, InspectedTool{Name: w.Tool, Problem: w.Reason})
	}
	return in, nil
}

func inspected(def []byte, allowed []provider.AllowedTool) InspectedTool {
	text := func(object []byte, key string) string {
		s, _ := content.String(content.Member(object, key))
		return s
	}
	t := InspectedTool{Name: text(def, "name"), Title: text(def, "title"), Description: text(def, "description")}
	t.ReadOnly = string(content.Member(content.Member(def, "annotations"), "readOnlyHint")) == "true"
	for _, a := range allowed {
		t.Allowed = t.Allowed || a.Raw == t.Name
	}
	if err := call.CheckToolName(t.Name); err != nil && !t.Allowed {
		t.Problem = err.Error() + ": it needs an alias"
	}
	if text(content.Member(def, "inputSchema"), "type") != "object" {
		t.Problem = `its input schema is not of type "object"`
	}
	return t
}
