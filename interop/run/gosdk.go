//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/interop/gateway"
)

// bearer adds the token to every request of an SDK client.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// goSDK is the official Go client, pinned to one revision.
func goSDK(revision string) func(context.Context, *place, string, *gateway.Gateway) error {
	return func(ctx context.Context, _ *place, _ string, g *gateway.Gateway) error {
		progress := make(chan *mcp.ProgressNotificationParams, 100)
		client := mcp.NewClient(&mcp.Implementation{Name: "interop-go", Version: "1"}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params },
		})
		connect := func(token string) (*mcp.ClientSession, error) {
			return client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: g.URL + "/v1/mcp", HTTPClient: &http.Client{Transport: bearer(token)}},
				&mcp.ClientSessionOptions{ProtocolVersion: revision})
		}
		cs, err := connect(gateway.Token)
		if err != nil {
			return err
		}
		defer cs.Close()
		if got := cs.InitializeResult().ProtocolVersion; got != revision {
			return fmt.Errorf("negotiated %s", got)
		}
		var listed []string
		for t, err := range cs.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			listed = append(listed, t.Name)
		}
		if err := same(listed, exported); err != nil {
			return fmt.Errorf("tools/list: %w", err)
		}
		sum, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"a": 2, "b": 40}})
		if err != nil {
			return err
		}
		if err := same(sum.StructuredContent, map[string]any{"sum": 42}); err != nil {
			return fmt.Errorf("add: %w", err)
		}
		fail, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "fail", Arguments: map[string]any{"message": "no luck"}})
		if err != nil || !fail.IsError || fail.Content[0].(*mcp.TextContent).Text != "no luck" {
			return fmt.Errorf("fail: %+v, %w", fail, err)
		}
		var rpc *jsonrpc.Error
		if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "no_such_tool"}); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
			return fmt.Errorf("an unknown tool: %w", err)
		}
		if err := goProgress(ctx, cs, progress); err != nil {
			return err
		}
		if err := goCancel(ctx, cs, progress); err != nil {
			return err
		}
		if _, err := connect("wrong-0123456789abcdef"); err == nil {
			return errors.New("a wrong token was let in")
		}
		return nil
	}
}

func goProgress(ctx context.Context, cs *mcp.ClientSession, progress <-chan *mcp.ProgressNotificationParams) error {
	slow := &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"steps": 3, "ms": 150}}
	slow.SetProgressToken("slow")
	if _, err := cs.CallTool(ctx, slow); err != nil {
		return fmt.Errorf("slow: %w", err)
	}
	for want := 1.0; want <= 3; want++ {
		select {
		case p := <-progress:
			if p.ProgressToken != "slow" || p.Progress != want || p.Total != 3 {
				return fmt.Errorf("progress %+v, expected %v of 3", p, want)
			}
		case <-time.After(10 * time.Second):
			return fmt.Errorf("progress %v of 3 did not come", want)
		}
	}
	return nil
}

// goCancel cancels a call once it is known to have arrived, and checks that the session goes on.
func goCancel(ctx context.Context, cs *mcp.ClientSession, progress <-chan *mcp.ProgressNotificationParams) error {
	one, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-progress:
			cancel()
		case <-one.Done():
		}
	}()
	hang := &mcp.CallToolParams{Name: "hang", Arguments: map[string]any{"ms": 30_000}}
	hang.SetProgressToken("hang")
	if _, err := cs.CallTool(one, hang); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("hang: %w, expected it to be cancelled", err)
	}
	if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"a": 1, "b": 1}}); err != nil {
		return fmt.Errorf("after a cancelled call: %w", err)
	}
	return nil
}
