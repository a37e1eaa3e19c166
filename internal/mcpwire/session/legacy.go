package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/internal/mcpwire/content"
	"github.com/ostiary/ostiary/internal/mcpwire/transport"
)

// refusedInitialize is a definite answer of the server that it does not initialize.
type refusedInitialize struct{ err error }

func (e *refusedInitialize) Error() string { return e.err.Error() }

func (e *refusedInitialize) Unwrap() error { return e.err }

// initialize shakes hands in the legacy era through the SDK's client, which goes on to answer the server's pings. Nothing
// that the server could ask of us is declared (R14.1).
func (s *Session) initialize(ctx context.Context, offer string) error {
	caps := &mcp.ClientCapabilities{}
	if s.opts.ToolContract {
		caps.AddExtension(toolContract, map[string]any{"version": 1})
	}
	client := mcp.NewClient(&mcp.Implementation{Name: s.opts.ClientName, Version: s.opts.ClientVersion}, &mcp.ClientOptions{
		Capabilities: caps, MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	tr, result, err := s.legacyTransport()
	if err != nil {
		return err
	}
	caughtCtx, caught := transport.CatchFault(ctx)
	cs, err := s.connectWithin(caughtCtx, client, tr, offer)
	if err != nil {
		if s.http != nil && ctx.Err() == nil && caught.Err() != nil { // what the SDK flattens to text
			err = caught.Err()
		}
		if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && s.http == nil {
			return &refusedInitialize{fmt.Errorf("initialize: the server answers with error %d: %s", wire.Code, printable(wire.Message, 200))}
		}
		return fmt.Errorf("initialize: %w", err)
	}
	s.legacy = cs
	got := cs.InitializeResult().ProtocolVersion
	if !slices.Contains(legacyRevisions, got) || s.opts.Protocol != "auto" && got != s.opts.Protocol {
		return s.noCommon([]string{printable(got, 32)}, "the server answers initialize with another revision")
	}
	raw := result()
	if caps := content.Member(raw, "capabilities"); raw != nil && !content.IsObject(caps) {
		return errors.New("initialize: the server's capabilities are not an object") // R3.9
	}
	s.agree(got, false, content.Member(raw, "capabilities"), content.Member(raw, "serverInfo"), content.Member(raw, "instructions"))
	if s.http != nil {
		s.http.SetSession(cs.ID(), got)
	}
	return nil
}

// legacyTransport is the SDK's way to the server, and a look at the raw result of its handshake.
func (s *Session) legacyTransport() (mcp.Transport, func() []byte, error) {
	if c, ok := s.carrier.(sdkCarrier); ok {
		return c.SDKTransport(), c.InitializeResult, nil
	}
	if s.http == nil {
		return nil, nil, errors.New("initialize: this transport has no legacy era")
	}
	client := *s.http.HTTPClient()
	look := &initializeLook{next: client.Transport}
	client.Transport = look
	return &mcp.StreamableClientTransport{
		Endpoint: s.opts.Endpoint, HTTPClient: &client, DisableStandaloneSSE: true, MaxRetries: -1,
	}, look.result, nil
}

// connectWithin returns when ctx ends even if the SDK does not: it waits for answers of its own in places where ctx does
// not reach. What is left then ends with the carrier, and the session that it may yet bring is closed.
func (s *Session) connectWithin(ctx context.Context, c *mcp.Client, tr mcp.Transport, offer string) (*mcp.ClientSession, error) {
	type outcome struct {
		cs  *mcp.ClientSession
		err error
	}
	got := make(chan outcome, 1)
	s.background(func() {
		cs, err := c.Connect(ctx, tr, &mcp.ClientSessionOptions{ProtocolVersion: offer})
		got <- outcome{cs, err}
	})
	select {
	case o := <-got:
		return o.cs, o.err
	case <-ctx.Done():
		s.background(func() {
			if o := <-got; o.cs != nil {
				o.cs.Close()
			}
		})
		return nil, ctx.Err()
	}
}

// endLegacy closes the SDK's session and waits for that no longer than ctx allows.
func (s *Session) endLegacy(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.legacy.Close(); err != nil {
			s.log.Debug("close legacy session", "error", err.Error())
		}
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
