package ostiary

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/ostiary/ostiary/internal/firewall"
	"github.com/ostiary/ostiary/internal/mcpwire"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/provider"
)

// ProbeOptions say which server is looked at: one of Command and URL. Zero values select the defaults.
type ProbeOptions struct {
	Command []string          // the program and its arguments; nothing passes through a shell
	Env     map[string]string // beyond the small base that every child gets: literal values
	EnvFrom []string          // and names to copy

	URL             string
	Credential      func() (string, error) // the bearer token for URL; nil: none
	AllowPrivateNet bool                   // the host of URL may resolve to private addresses

	Timeout time.Duration // of each connection, from its start to its list of tools; 15 s
	Close   time.Duration // how long a process may take to end, by all means together; 5 s

	Logger    *slog.Logger                // nil: none
	Now       func() time.Time            // nil: time.Now
	LookupEnv func(string) (string, bool) // nil: os.LookupEnv
	// OnConnect is told of each revision before it is tried, for progress on a terminal.
	OnConnect func(revision string)
}

// Probed is what a server has, for its author. All words in it are the server's own unless they are findings.
type Probed struct {
	Transport     string            `json:"transport"` // stdio or http
	ServerName    string            `json:"server_name,omitempty"`
	ServerVersion string            `json:"server_version,omitempty"`
	Revisions     []ProbedRevision  `json:"revisions"`
	Extensions    []ProbedExtension `json:"extensions"`
	Tools         []ProbedTool      `json:"tools"`
	Findings      []ProbeFinding    `json:"findings"`
	Sound         bool              `json:"sound"` // there is no finding that is a fault
}

// ProbedRevision is one connection, made for this revision alone.
type ProbedRevision struct {
	Revision     string          `json:"revision"`
	Works        bool            `json:"works"`
	Error        string          `json:"error,omitempty"` // why it does not, or what went wrong later
	Advice       string          `json:"advice,omitempty"`
	Ready        time.Duration   `json:"ready_ns,omitempty"`  // until the revision was agreed on
	Listed       time.Duration   `json:"listed_ns,omitempty"` // until the last page of tools was there
	Pages        int             `json:"pages,omitempty"`
	Tools        int             `json:"tools"`
	ListChanged  bool            `json:"list_changed"` // it declares that it announces changes of its tools
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Noise        int64           `json:"stdout_noise"`         // lines on stdout that were no MCP
	Violations   int64           `json:"violations"`           // messages that broke the protocol
	Events       int             `json:"events"`               // that came while it was looked at
	Exit         string          `json:"exit,omitempty"`       // how the process ended
	Stopped      string          `json:"stopped_by,omitempty"` // what that took: stdin, TERM or KILL

	tools []probedDefinition
	name  [2]string // of the server, and its version
	said  string    // its instructions
}

type probedDefinition struct {
	name string
	raw  []byte
	left string // why the wire left it out, if it did
}

// ProbedExtension is what a server says of one extension.
type ProbedExtension struct {
	Name       string          `json:"name"`
	Settings   json.RawMessage `json:"settings"`
	Revisions  []string        `json:"revisions"`  // in which it is offered
	Negotiated []string        `json:"negotiated"` // and in which it holds
	Reason     string          `json:"reason,omitempty"`
}

// ProbedTool is one tool. Scopes are those that the gateway would hold its calls to; a placeholder stands for an argument.
type ProbedTool struct {
	Name     string   `json:"name"`
	Title    string   `json:"title,omitempty"`
	ReadOnly bool     `json:"read_only_hint,omitempty"`
	Observe  []string `json:"observe"`
	Publish  []string `json:"publish"`
}

// ProbeFinding is something that an author should know of.
type ProbeFinding struct {
	Severity string `json:"severity"`       // fault or warning
	Where    string `json:"where"`          // "revision 2026-07-28", "tool echo", …
	What     string `json:"what"`           // one sentence
	Hint     string `json:"hint,omitempty"` // what to do
}

// probedPackage stands for the provider that the server has not become yet.
const probedPackage = "probe"

// Probe connects to a server, once for each revision, lists its tools and says what is wrong with it. No tool is called,
// nothing is configured, and nothing is kept. The error is one of the options; that nothing answers is a finding.
func Probe(ctx context.Context, o ProbeOptions) (*Probed, error) {
	profile, err := o.profile()
	if err != nil {
		return nil, err
	}
	engine, err := firewall.New(firewall.Options{})
	if err != nil {
		return nil, err
	}
	p := &probe{o: o, profile: profile, engine: engine, Probed: &Probed{Transport: "stdio", Extensions: []ProbedExtension{}, Tools: []ProbedTool{}, Findings: []ProbeFinding{}}}
	if o.URL != "" {
		p.Transport = "http"
	}
	works := false
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		r := p.connect(ctx, revision)
		p.Revisions = append(p.Revisions, r)
		works = works || r.Works
	}
	if !works { // what does it speak, if anything?
		r := p.connect(ctx, "auto")
		if r.Works {
			p.Revisions = append(p.Revisions, r)
			p.warn("server", "move to 2026-07-28", "it speaks %s and nothing that is newer", r.Revision)
		} else {
			p.fault("server", r.Advice, "no revision of MCP works: %s", r.Error)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, r := range p.Revisions {
		if r.Works {
			p.ServerName, p.ServerVersion = r.name[0], r.name[1]
			break
		}
	}
	if err := p.look(ctx); err != nil {
		return nil, err
	}
	p.Sound = !p.faulty
	if p.more > 0 {
		p.Findings = append(p.Findings, ProbeFinding{"warning", "server", fmt.Sprintf("and %d more findings", p.more), ""})
	}
	return p.Probed, nil
}

// look goes through what the connections have shown, for as long as one of them may take.
func (p *probe) look(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, p.o.Timeout)
	defer cancel()
	p.extensions(within)
	p.tools(within)
	if err := ctx.Err(); err != nil {
		return err
	}
	if within.Err() != nil {
		p.fault("server", "give it more time, or have fewer tools and extensions", "there is too much to look at within %s: the rest was not looked at", p.o.Timeout)
	}
	return nil
}

func (o *ProbeOptions) profile() (provider.Profile, error) {
	if o.Timeout <= 0 {
		o.Timeout = 15 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	p := provider.Profile{Package: probedPackage, Trust: provider.UserAddedReviewed, Required: true, Limits: provider.DefaultLimits}
	p.Limits.Connect = o.Timeout
	if o.Close > 0 {
		p.Limits.Close = o.Close
	}
	switch {
	case (len(o.Command) > 0) == (o.URL != ""):
		return p, errors.New("probe: give a command or a URL")
	case o.URL != "":
		p.Transport = provider.StreamableHTTP
		p.HTTP = &provider.HTTP{URL: o.URL, Credential: o.Credential, AllowPrivateNet: o.AllowPrivateNet}
	default:
		p.Transport, p.WorldEvents = provider.StdioCommand, true
		p.Stdio = &provider.Stdio{Command: o.Command[0], Args: o.Command[1:], Env: o.Env, EnvFrom: o.EnvFrom}
	}
	return p, nil
}

// probe is one probing under way.
type probe struct {
	*Probed
	o       ProbeOptions
	profile provider.Profile
	engine  *firewall.Engine
	faulty  bool // there was a fault, listed or not
	more    int  // findings beyond those that are listed
}

func (p *probe) find(f ProbeFinding) {
	if len(p.Findings) >= maxProbeFindings {
		p.more++
		return
	}
	p.Findings = append(p.Findings, f)
}

func (p *probe) fault(where, hint, format string, args ...any) {
	p.faulty = true
	p.find(ProbeFinding{"fault", where, fmt.Sprintf(format, args...), hint})
}

func (p *probe) warn(where, hint, format string, args ...any) {
	p.find(ProbeFinding{"warning", where, fmt.Sprintf(format, args...), hint})
}

// connect looks at the server in one revision, over a connection of its own.
func (p *probe) connect(ctx context.Context, revision string) (r ProbedRevision) {
	r.Revision = revision
	if p.o.OnConnect != nil {
		p.o.OnConnect(revision)
	}
	profile := p.profile
	profile.Protocol = revision
	heard := &heardEvents{}
	within, cancel := context.WithTimeout(ctx, profile.Limits.Connect)
	defer cancel()
	up := mcpwire.New(mcpwire.Options{Logger: p.o.Logger.With(slog.String("component", "mcpwire")), ClientName: "ostiary", ClientVersion: Version, ToolContract: true, Now: p.o.Now, LookupEnv: p.o.LookupEnv,
		Events: func(provider.Generation, *provider.Profile) mcpwire.Events { return heard }})
	began := p.o.Now()
	phase := provider.PhaseConnect
	link, err := up.Connect(within, provider.Generation{Attachment: "probe." + revision, Number: 1}, profile, func(ph provider.Phase) { phase = ph })
	if err != nil {
		p.failed(&r, phase, err)
		if phase == provider.PhaseListen { // the revision was agreed on, and then it broke
			p.fault("revision "+revision, r.Advice, "%s: %s", phase, r.Error)
		}
		return r
	}
	r.Works, r.Ready = true, p.o.Now().Sub(began)
	link.SetTools(nil) // it has started, so its end may take its time
	n := link.Negotiated()
	r.Revision, r.ListChanged, r.Capabilities = n.Revision, n.ToolChanges, json.RawMessage(n.Capabilities)
	r.name, r.said = [2]string{n.ServerName, n.ServerVersion}, n.Instructions
	listing, err := link.List(within)
	if err != nil {
		p.failed(&r, provider.PhaseList, err)
		p.fault("revision "+n.Revision, r.Advice, "its tools cannot be listed: %s", r.Error)
		select { // if that was because the connection ended, it is known at once
		case <-link.Done():
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	} else {
		r.Listed, r.Pages = p.o.Now().Sub(began), listing.Pages
		for _, raw := range listing.Tools {
			name, _ := content.String(content.Member(raw, "name"))
			r.tools = append(r.tools, probedDefinition{name: name, raw: raw})
		}
		for _, w := range listing.Warnings {
			r.tools = append(r.tools, probedDefinition{name: w.Tool, left: w.Reason})
		}
		r.Tools = len(r.tools)
	}
	ended := link.Err()
	// The end of a connection has its own bound, whatever became of ctx.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*profile.Limits.Close)
	defer cancel()
	if err := link.Close(ending); err != nil {
		p.warn("revision "+n.Revision, "", "the connection did not close in order: %v", err)
	}
	st := link.Stats()
	r.Noise, r.Violations, r.Exit, r.Stopped = st.StdoutNoise, st.Violations, st.Exit, st.Stopped
	p.manners(&r, st, ended)
	p.events(&r, heard)
	return r
}

// failed keeps why a connection did not come about, or had nothing to show.
func (p *probe) failed(r *ProbedRevision, phase provider.Phase, err error) {
	r.Error = err.Error()
	if e, ok := errors.AsType[*provider.StartError](err); ok {
		r.Error, r.Advice = e.Cause.Error(), e.Advice
	}
	if errors.Is(err, context.DeadlineExceeded) {
		r.Error = fmt.Sprintf("there was no answer within %s (%s)", p.profile.Limits.Connect, phase)
		r.Advice = "give it more time if it is only slow to start"
	}
}

// manners is what a connection has shown beyond what was asked of it. ended is why it ended before it was closed, if it did.
func (p *probe) manners(r *ProbedRevision, st provider.LinkStats, ended error) {
	where := "revision " + r.Revision
	if r.Noise > 0 {
		p.fault(where, "write logs to stderr", "lines on stdout that were no MCP messages: %d", r.Noise)
	}
	if r.Violations > 0 {
		p.fault(where, "", "messages that broke the protocol: %d; the last one: %s", r.Violations, st.LastViolation)
	}
	switch {
	case ended != nil:
		p.fault(where, "serve until stdin is closed", "the connection ended by itself: %v", ended)
	case r.Exit == "":
	case r.Stopped == "KILL":
		p.fault(where, "end when stdin is closed", "the process did not end when stdin was closed, nor at SIGTERM: it had to be killed")
	case r.Stopped == "TERM":
		p.warn(where, "end when stdin is closed", "the process did not end when stdin was closed; SIGTERM ended it")
	case r.Exit != "exit status 0":
		p.warn(where, "end with 0 when stdin is closed", "the process ended with %s when stdin was closed", r.Exit)
	}
}
