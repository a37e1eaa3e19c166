package exampleserver

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// overStdio starts a server on two pipes and returns what its client has of them.
func overStdio(t *testing.T, opts Options) (fromServer io.ReadCloser, toServer io.WriteCloser, ended <-chan error) {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		err := ServeStdio(ctx, fromClient, toClient, opts)
		toClient.Close()
		done <- err
	}()
	t.Cleanup(func() { cancel(); toServer.Close(); fromServer.Close() })
	return fromServer, toServer, done
}

// transports are a client's ways to a server, old and new.
func transports(t *testing.T, opts Options) map[string]func(t *testing.T) mcp.Transport {
	return map[string]func(t *testing.T) mcp.Transport{
		"stdio": func(t *testing.T) mcp.Transport {
			r, w, _ := overStdio(t, opts)
			return &mcp.IOTransport{Reader: r, Writer: w}
		},
		"http": func(t *testing.T) mcp.Transport {
			srv := httptest.NewServer(Handler(opts))
			t.Cleanup(srv.Close)
			return &mcp.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: &http.Client{Timeout: 20 * time.Second}}
		},
	}
}

// R1.2: the official SDK's client lists and calls in every revision, over both transports.
func TestOfficialClientInEveryRevision(t *testing.T) {
	for name, transport := range transports(t, Options{Page: 4}) {
		for _, version := range append(append([]string(nil), modernVersions...), legacyVersions...) {
			t.Run(name+"/"+version, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				progress := make(chan float64, 10)
				client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
					ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
				})
				cs, err := client.Connect(ctx, transport(t), &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer cs.Close()
				if got := cs.InitializeResult().ProtocolVersion; got != version {
					t.Errorf("negotiated %s, want %s", got, version)
				}
				listed := 0
				for _, err := range cs.Tools(ctx, nil) {
					if err != nil {
						t.Fatal(err)
					}
					listed++
				}
				if want := len(tools()); listed != want {
					t.Errorf("listed %d tools, want %d", listed, want)
				}
				res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"a": 2, "b": 40}})
				if err != nil {
					t.Fatal(err)
				}
				if got := res.Content[0].(*mcp.TextContent).Text; got != "42" {
					t.Errorf("sum %q, want 42", got)
				}
				slow := &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"steps": 3, "ms": 1}}
				slow.SetProgressToken("p")
				if _, err = cs.CallTool(ctx, slow); err != nil {
					t.Fatal(err)
				}
				for want := 1.0; want <= 3; want++ {
					select {
					case got := <-progress:
						if got != want {
							t.Errorf("progress %v, want %v", got, want)
						}
					case <-ctx.Done():
						t.Fatalf("no progress %v", want)
					}
				}
			})
		}
	}
}

// A change of the list is announced to a client that listens, in both eras and over both transports.
func TestOfficialClientHearsDrift(t *testing.T) {
	for name, transport := range transports(t, Options{}) {
		for _, version := range []string{"2026-07-28", "2025-11-25"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				changed := make(chan struct{}, 10)
				client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
					ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
				})
				cs, err := client.Connect(ctx, transport(t), &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer cs.Close()
				// The modern listen may be under way still when Connect returns: drift until one is heard.
				for heard := false; !heard; {
					if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "drift", Arguments: map[string]any{"tool": "add"}}); err != nil {
						t.Fatal(err)
					}
					select {
					case <-changed:
						heard = true
					case <-time.After(100 * time.Millisecond):
					}
				}
			})
		}
	}
}
