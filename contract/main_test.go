package contract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/contract"
)

// The test binary is also the server of the tests that need a process of their own.
func TestMain(m *testing.M) {
	if os.Getenv("CONTRACT_TEST_SERVER") == "1" {
		ext := contract.New(contract.Options{WorldEvents: true, LegacyEvents: true})
		if err := newServer(ext).Run(context.Background(), ext.Transport(&mcp.StdioTransport{})); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const old = "2025-11-25"

type input struct {
	Group string `json:"group"`
	How   string `json:"how"`
}

type output struct {
	N int `json:"n"`
}

// newServer has one tool for each way that a call can end; do says which.
func newServer(ext *contract.Extensions) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, ext.Offer(nil))
	ext.Attach(server)
	must(contract.AddTool(server, &mcp.Tool{Name: "typed"}, contract.Scopes{Publish: []string{"test:group:{group}"}},
		func(ctx context.Context, req *mcp.CallToolRequest, in input) (*mcp.CallToolResult, output, error) {
			if in.How == "event" {
				a, err := ext.EmitTo(ctx, req.Session, eventIn("test:group:1"))
				return nil, output{a.Attempted}, err
			}
			if in.How == "ok" {
				contract.Begun(ctx)
				return nil, output{1}, nil
			}
			r, err := end(ctx, in.How)
			return r, output{}, err
		}))
	raw := &mcp.Tool{Name: "raw", InputSchema: json.RawMessage(`{"type":"object","properties":{"how":{"type":"string"}}}`)}
	must(contract.Declare(raw, contract.Scopes{Observe: []string{"test:{how}"}}))
	server.AddTool(raw, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in input
		if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
			return nil, err
		}
		if in.How == "ok" {
			contract.Begun(ctx)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		}
		return end(ctx, in.How)
	})
	return server
}

func end(ctx context.Context, how string) (*mcp.CallToolResult, error) {
	sick := &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "sick"}}}
	switch how {
	case "unknown":
		return contract.Unknown("the line went dead", "ask again later"), nil
	case "unknown error":
		return nil, fmt.Errorf("post: %w", contract.ErrUnknown)
	case "failed":
		return contract.Failed("no such group"), nil
	case "begun, failed":
		contract.Begun(ctx)
		return contract.Failed("rolled back"), nil
	case "begun, no effect":
		contract.Begun(ctx)
		return nil, fmt.Errorf("rolled back: %w", contract.ErrNoEffect)
	case "begun, both":
		contract.Begun(ctx)
		return nil, fmt.Errorf("odd: %w: %w", contract.ErrNoEffect, contract.ErrUnknown)
	case "error":
		return nil, fmt.Errorf("no")
	case "begun, error":
		contract.Begun(ctx)
		return nil, io.ErrUnexpectedEOF
	case "begun, wire error":
		contract.Begun(ctx)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "bad"}
	case "begun, deadline":
		ctx, cancel := context.WithTimeout(ctx, time.Nanosecond)
		defer cancel()
		contract.Begun(ctx)
		<-ctx.Done()
		return nil, ctx.Err()
	case "isError":
		return sick, nil
	case "begun, isError":
		contract.Begun(ctx)
		return sick, nil
	case "panic":
		panic("of course")
	case "by hand":
		sick.IsError = false
		sick.Meta = mcp.Meta{contract.ToolContract: map[string]any{"status": "unknown"}, "other": true}
		return sick, nil
	case "by hand, badly":
		sick.Meta = mcp.Meta{contract.ToolContract: map[string]any{"status": "failed"}}
		return sick, nil
	}
	return nil, fmt.Errorf("no such end: %s", how)
}

func eventIn(scope string) contract.Event {
	return contract.Event{ID: "e1", Source: "test", Scope: scope, Kind: "message.received",
		OccurredAt: time.Date(2026, 8, 1, 12, 0, 0, 0, time.FixedZone("", 2*3600)), Summary: "a message", Data: map[string]any{"n": 1, "a": 2}}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func logger(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// client is a client of the SDK that offers what it is told to, in the era that it is told to.
func client(t *testing.T, transport mcp.Transport, revision string, extensions ...string) *mcp.ClientSession {
	t.Helper()
	caps := &mcp.ClientCapabilities{}
	for _, name := range extensions {
		caps.AddExtension(name, map[string]any{"version": 1})
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{Capabilities: caps})
	var o *mcp.ClientSessionOptions
	if revision == old {
		o = &mcp.ClientSessionOptions{ProtocolVersion: revision}
	}
	cs, err := c.Connect(t.Context(), transport, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := cs.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("negotiated %s, want %s", got, revision)
	}
	t.Cleanup(func() { cs.Close() })
	return cs
}

// connected serves over a pipe in memory and gives the client's end, which tells seen of every notification.
func connected(t *testing.T, ext *contract.Extensions, server *mcp.Server, seen func(*jsonrpc.Request)) mcp.Transport {
	t.Helper()
	st, ct := mcp.NewInMemoryTransports()
	ss, err := server.Connect(t.Context(), ext.Transport(st), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ss.Close() })
	return tap{ct, seen}
}

// tap looks at the notifications that a client's SDK would drop.
type tap struct {
	mcp.Transport
	seen func(*jsonrpc.Request)
}

func (t tap) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	return tapConn{c, t.seen}, err
}

type tapConn struct {
	mcp.Connection
	seen func(*jsonrpc.Request)
}

func (c tapConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && err == nil && !r.IsCall() && c.seen != nil {
		c.seen(r)
	}
	return m, err
}

// peer is a client that writes its own bytes.
type peer struct {
	t   *testing.T
	c   net.Conn
	dec *json.Decoder
}

func newPeer(t *testing.T, wrap func(mcp.Transport) mcp.Transport, server *mcp.Server) *peer {
	t.Helper()
	here, there := net.Pipe()
	ss, err := server.Connect(t.Context(), wrap(&mcp.IOTransport{Reader: there, Writer: there}), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close(); ss.Wait() })
	return &peer{t, here, json.NewDecoder(here)}
}

func (p *peer) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.c, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// next is the next message of the server.
func (p *peer) next() map[string]any {
	p.t.Helper()
	var m map[string]any
	if err := p.dec.Decode(&m); err != nil {
		p.t.Fatal(err)
	}
	return m
}

// ask sends a request and returns the result.
func (p *peer) ask(line string) map[string]any {
	p.t.Helper()
	p.send(line)
	m := p.next()
	r, ok := m["result"].(map[string]any)
	if !ok {
		p.t.Fatalf("%s: %v", line, m)
	}
	return r
}
