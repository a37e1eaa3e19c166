package mcpwire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ostiary/ostiary/call"
	"github.com/ostiary/ostiary/internal/gate"
	"github.com/ostiary/ostiary/internal/mcpwire/session"
	"github.com/ostiary/ostiary/internal/mcpwire/transport"
	"github.com/ostiary/ostiary/internal/provider"
)

// Options configure [Upstreams]. Zero values select the defaults.
type Options struct {
	Logger        *slog.Logger // nil: none
	ClientName    string       // how the gateway names itself to servers; "ostiary"
	ClientVersion string

	Now       func() time.Time                 // nil: time.Now
	LookupEnv func(name string) (string, bool) // the gateway's environment; nil: os.LookupEnv

	// ToolContract offers the tool-contract extension to every server (R4.1).
	ToolContract bool
	// Events gives what takes the events of a new connection, those that arrive before its start has succeeded included
	// (R5.1). nil: events are neither offered nor taken.
	Events func(gen provider.Generation, p *provider.Profile) Events
}

// Events takes the events of one connection.
type Events = session.Events

// Upstreams connects providers and places cleared calls on their connections. It holds one link a generation.
type Upstreams struct {
	o Options

	mu    sync.RWMutex // guards links
	links map[provider.Generation]*link
}

var (
	_ provider.Connector = (*Upstreams)(nil)
	_ gate.Upstream      = (*Upstreams)(nil)
)

// New makes Upstreams; nothing is connected.
func New(o Options) *Upstreams {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	return &Upstreams{o: o, links: map[provider.Generation]*link{}}
}

// Call implements [gate.Upstream]. The empty ticket is refused: nothing but the gate places calls.
func (u *Upstreams) Call(ctx context.Context, c gate.Cleared) call.Answer {
	if c.CallID() == "" || c.Tool() == nil {
		return call.Answer{Delivery: call.NotSent, Fault: call.CodeInternal, Detail: "the call was not cleared"}
	}
	u.mu.RLock()
	l := u.links[c.Generation()]
	u.mu.RUnlock()
	if l == nil {
		return call.Answer{Delivery: call.NotSent, Fault: call.CodeProviderUnavailable, Detail: "there is no connection of generation " + c.Generation().String()}
	}
	return l.s.Call(ctx, session.Call{
		Tool: c.Tool(), Arguments: c.Arguments(), Meta: c.Meta(),
		Progress: c.Progress(), Log: c.Log(), LogLevel: c.LogLevel(),
	})
}

// Connect implements [provider.Connector]. An error is a [*provider.StartError].
func (u *Upstreams) Connect(ctx context.Context, gen provider.Generation, p provider.Profile, enter func(provider.Phase)) (provider.Link, error) {
	phase := provider.PhaseConnect
	fail := func(err error) error {
		return &provider.StartError{Provider: p.Package, Phase: phase, Cause: err, Advice: adviceOf(err)}
	}
	u.mu.RLock()
	_, taken := u.links[gen]
	u.mu.RUnlock()
	if taken {
		return nil, fail(fmt.Errorf("generation %s is connected already", gen))
	}
	log := u.o.Logger.With("component", "mcpwire", "provider", p.Package, "generation", gen.Number)
	dial, endpoint, err := u.dialer(&p, log)
	if err != nil {
		return nil, fail(err)
	}
	o := session.Options{
		Protocol: p.Protocol, Endpoint: endpoint, ClientName: u.o.ClientName, ClientVersion: u.o.ClientVersion,
		ToolContract: u.o.ToolContract, Limits: p.Limits, Logger: log, Now: u.o.Now,
		Enter: func(ph provider.Phase) {
			phase = ph
			if enter != nil {
				enter(ph)
			}
		},
	}
	if u.o.Events != nil {
		o.Events, o.WorldEvents, o.LegacyEvents = u.o.Events(gen, &p), p.WorldEvents, p.LegacyEvents
	}
	s, err := session.Open(ctx, dial, o)
	if err != nil {
		return nil, fail(err)
	}
	l := &link{u: u, gen: gen, pkg: p.Package, s: s}
	u.mu.Lock()
	u.links[gen] = l
	u.mu.Unlock()
	return l, nil
}

// adviceOf finds what to do in the chain of an error.
func adviceOf(err error) string {
	if e, ok := errors.AsType[*transport.SpawnError](err); ok {
		return e.Advice
	}
	if e, ok := errors.AsType[*session.Failure](err); ok {
		return e.Advice
	}
	return ""
}

func (u *Upstreams) dialer(p *provider.Profile, log *slog.Logger) (dial session.Dial, endpoint string, err error) {
	switch {
	case p.Transport == provider.StdioCommand && p.Stdio != nil:
		return u.dialStdio(p, log), "", nil
	case p.Transport == provider.StreamableHTTP && p.HTTP != nil:
		return u.dialHTTP(p, log), p.HTTP.URL, nil
	default:
		return nil, "", fmt.Errorf("transport %s is not one that can be connected", p.Transport)
	}
}

func (u *Upstreams) dialStdio(p *provider.Profile, log *slog.Logger) session.Dial {
	return func(ctx context.Context, sink session.Sink) (transport.Carrier, error) {
		env := transport.ChildEnv(p.Stdio.Env, p.Stdio.EnvFrom, u.o.LookupEnv)
		c, err := transport.StartStdio(ctx, transport.StdioOptions{
			Command: p.Stdio.Command, Args: p.Stdio.Args, Dir: p.Stdio.Dir, Env: env, Secrets: u.secrets(p.Stdio),
			MaxMessage: p.Limits.Message, CloseTimeout: p.Limits.Close, Logger: log,
			OnNotification: sink.Notification, OnRequest: sink.Request,
		})
		if err != nil {
			return nil, err // not c: a nil pointer in an interface is no nil
		}
		return c, nil
	}
}

// secrets are the values that a profile hands to its child: what the child prints of them is made unreadable (R1.12).
func (u *Upstreams) secrets(s *provider.Stdio) []string {
	values := slices.Collect(maps.Values(s.Env))
	for _, name := range s.EnvFrom {
		if v, ok := u.o.LookupEnv(name); ok {
			values = append(values, v)
		}
	}
	return values
}
