// Sdkgateway is the usual way to build an MCP gateway: the official Go SDK's server in front, its client behind, typed
// values between. It forwards tools and nothing else, checks nothing and records nothing, and is there to be compared with.
//
//	sdkgateway -listen ADDR -to URL
//	sdkgateway -listen ADDR -- COMMAND [ARGUMENT…]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "sdkgateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	listen := flag.String("listen", "127.0.0.1:9103", "loopback `address` to serve on, at /mcp")
	to := flag.String("to", "", "`URL` of the server")
	flag.Parse()
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: *to}
	if *to == "" {
		if flag.NArg() == 0 {
			return errors.New("neither a URL nor a command is given")
		}
		transport = &mcp.CommandTransport{Command: exec.Command(flag.Arg(0), flag.Args()[1:]...)}
	}
	self := &mcp.Implementation{Name: "sdkgateway", Version: "1"}
	upstream, err := mcp.NewClient(self, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}).Connect(ctx, transport, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer upstream.Close()
	server := mcp.NewServer(self, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}, PageSize: 100_000})
	for tool, err := range upstream.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("list tools: %w", err)
		}
		server.AddTool(tool, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return upstream.CallTool(ctx, &mcp.CallToolParams{Name: r.Params.Name, Arguments: r.Params.Arguments})
		})
	}
	return serve(ctx, *listen, server)
}

func serve(ctx context.Context, addr string, server *mcp.Server) error {
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: 64 << 20})
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	srv := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- srv.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return srv.Close()
	}
}
