package chat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/contract"
	"github.com/ostiary/ostiary/internal/exampleserver/chat"
)

// start runs the server as its command would and connects a client that offers both extensions.
func start(t *testing.T, revision string, seen func(*jsonrpc.Request), args ...string) *mcp.ClientSession {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- chat.Run(t.Context(), args, in, out, t.Output()) }()
	caps := &mcp.ClientCapabilities{}
	caps.AddExtension(contract.ToolContract, map[string]any{"version": 1})
	caps.AddExtension(contract.WorldEvents, map[string]any{"version": 1})
	c := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{Capabilities: caps})
	cs, err := c.Connect(t.Context(), tap{&mcp.IOTransport{Reader: fromServer, Writer: toServer}, seen}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return cs
}

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
	if r, ok := m.(*jsonrpc.Request); ok && err == nil && !r.IsCall() {
		c.seen(r)
	}
	return m, err
}

func called(t *testing.T, cs *mcp.ClientSession, tool string, args map[string]any) string {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(r.StructuredContent)
	said, _ := json.Marshal(r.Meta[contract.ToolContract])
	return fmt.Sprintf("%v %s %s", r.IsError, b, said)
}

// R4.8: the server that authors are shown does what the extensions ask for, in both eras.
func TestR4_8_Chat(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			events := make(chan *jsonrpc.Request, 10)
			cs := start(t, revision, func(r *jsonrpc.Request) { events <- r }, "--legacy-events")
			l, err := cs.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			scopes := map[string]string{}
			for _, tool := range l.Tools {
				b, _ := json.Marshal(tool.Meta[contract.ToolContract])
				scopes[tool.Name] = string(b)
			}
			want := map[string]string{
				"read_messages":    `{"observe":["chat:group:{group_id}"]}`,
				"send_message":     `{"observe":["chat:group:{group_id}"],"publish":["chat:group:{group_id}"]}`,
				"simulate_message": `null`,
			}
			if fmt.Sprint(scopes) != fmt.Sprint(want) {
				t.Errorf("scopes %v", scopes)
			}
			group := map[string]any{"group_id": "42"}
			for _, step := range []struct {
				tool string
				args map[string]any
				want string
			}{
				{"read_messages", group, `false {"messages":[]} null`},
				{"send_message", map[string]any{"group_id": "42", "text": "hello"}, `false {"n":1} null`},
				{"send_message", map[string]any{"group_id": "42", "text": ""}, `true null null`},
				{"simulate_message", map[string]any{"group_id": "42", "author": "ann", "text": "hi\nyou"}, `false {"attempted":1} null`},
				{"simulate_message", map[string]any{"group_id": "4 2", "author": "ann", "text": "hi"}, `true null null`},
				{"read_messages", map[string]any{"group_id": "4 2"}, `false {"messages":[]} null`},
				{"read_messages", map[string]any{"group_id": "42", "after": 1}, `false {"messages":[{"author":"ann","n":2,"text":"hi\nyou"}]} null`},
				{"read_messages", map[string]any{"group_id": "43"}, `false {"messages":[]} null`},
				{"read_messages", map[string]any{"group_id": "42", "after": 9}, `false {"messages":[]} null`},
			} {
				if got := called(t, cs, step.tool, step.args); got != step.want {
					t.Errorf("%s %v: %s, want %s", step.tool, step.args, got, step.want)
				}
			}
			r := <-events
			params := r.Params
			if revision == "2025-11-25" {
				var log struct {
					Logger string
					Data   json.RawMessage
				}
				if err := json.Unmarshal(params, &log); err != nil || log.Logger != "aurora/event" {
					t.Fatalf("%s: %v", params, err)
				}
				params = log.Data
			} else if r.Method != contract.EventMethod {
				t.Errorf("%s", r.Method)
			}
			if !bytes.Contains(params, []byte(`"scope":"chat:group:42","kind":"message.received"`)) || !bytes.Contains(params, []byte(`"summary":"ann: hi you"`)) {
				t.Errorf("%s", params)
			}
		})
	}
}

// R4.8: a message that was sent, and nobody can prove it.
func TestR4_8_ChatLosesReceipts(t *testing.T) {
	cs := start(t, "2026-07-28", func(*jsonrpc.Request) {}, "--lose-receipts")
	if got := called(t, cs, "send_message", map[string]any{"group_id": "42", "text": "hello"}); got != `true null {"status":"unknown"}` {
		t.Error(got)
	}
	if got := called(t, cs, "read_messages", map[string]any{"group_id": "42"}); got != `false {"messages":[{"author":"agent","n":1,"text":"hello"}]} null` {
		t.Error(got)
	}
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]error{"--help": flag.ErrHelp, "--nonsense": nil, "more": nil} {
		err := chat.Run(t.Context(), []string{args}, bytes.NewReader(nil), io.Discard, io.Discard)
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}
