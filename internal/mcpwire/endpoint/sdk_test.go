package endpoint

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ostiary/ostiary/call"
)

type bearerTransport struct{ token string }

func (b bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// TestSDKClient drives the endpoint with the official client, pinned to each revision: list, call, progress, log, cancel
// (R1.2, R10.2 to R10.4).
func TestSDKClient(t *testing.T) {
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			started, cancelled := make(chan struct{}), make(chan struct{})
			f := serve(t, func(ctx context.Context, r call.Request) call.Reply {
				switch string(r.Arguments) {
				case `{"do":"progress"}`:
					for _, p := range []string{"1", "2", "3"} {
						r.Progress(call.Progress{Progress: []byte(p), Total: []byte("3"), Message: "step"})
					}
				case `{"do":"hang"}`:
					close(started)
					<-ctx.Done()
					close(cancelled)
				}
				return echo(ctx, r)
			})
			progress := make(chan float64, 10)
			client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
			})
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			cs, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: f.url, HTTPClient: &http.Client{Transport: bearerTransport{aliceToken}}},
				&mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			if got := cs.InitializeResult().ProtocolVersion; got != revision {
				t.Fatalf("negotiated %s", got)
			}
			tools, err := cs.ListTools(ctx, nil)
			if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "echo" {
				t.Fatalf("list: %+v, %v", tools, err)
			}
			params := &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"do": "progress"}}
			params.SetProgressToken("tok")
			res, err := cs.CallTool(ctx, params)
			if err != nil || res.IsError || res.Meta["org.ostiary/outcome"] == nil {
				t.Fatalf("call: %+v, %v", res, err)
			}
			for want := 1.0; want <= 3; want++ {
				select {
				case got := <-progress:
					if got != want {
						t.Errorf("progress %v, want %v", got, want)
					}
				case <-ctx.Done():
					t.Fatal("no progress")
				}
			}
			if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "nope"}); err == nil {
				t.Error("an unknown tool was called")
			}
			hangCtx, cancel := context.WithCancel(ctx)
			go func() {
				<-started
				cancel()
			}()
			if _, err := cs.CallTool(hangCtx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"do": "hang"}}); err == nil {
				t.Error("a cancelled call returned a result")
			}
			select {
			case <-cancelled:
			case <-time.After(5 * time.Second):
				t.Error("the call did not learn that it was cancelled")
			}
		})
	}
}
