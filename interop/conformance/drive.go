//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/ostiary/ostiary/interop/gateway"
)

// scenarioTools are the tools that the server of each client scenario offers, as far as the scenario wants them called.
// The gateway is told of them beforehand, because a listing by somebody else would be taken for the client's own.
var scenarioTools = map[string][]string{
	"tools_call":                          {"add_numbers"},
	"elicitation-sep1034-client-defaults": {"test_client_elicitation_defaults"},
	"sse-retry":                           {"test_reconnection"},
	"sep-2322-client-request-state":       {"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"},
	"http-standard-headers":               {"test_headers"},
	"http-invalid-tool-headers":           {"valid_tool"},
	"json-schema-2020-12-preservation":    {"json_schema_2020_12_tool", "json_schema_echo"},
}

// drive is the command that the suite runs as the client under test: it starts a gateway whose provider is the suite's
// server, and has the Go SDK's conformance client do, through the gateway, what the scenario asks for.
func drive(ctx context.Context, args []string) (err error) {
	if len(args) != 1 {
		return errors.New("drive: expected the URL of a server")
	}
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	tools := scenarioTools[scenario]
	if tools == nil && len(scenario) > 5 && scenario[:5] == "auth/" {
		tools = []string{"test-tool"}
	}
	if scenario == "http-custom-headers" {
		if tools, err = contextTools(); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "ostiary-drive-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, 25*time.Second)
	defer cancel()
	protocol := "auto"
	if scenario == "initialize" {
		// This scenario's server answers every method that it does not know with an empty result, server/discover too,
		// which is neither a modern answer nor a refusal: nobody could tell its era by asking.
		protocol = os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION")
	}
	g, err := gateway.Start(ctx, gateway.Options{Bin: os.Getenv("OSTIARY_BIN"), Dir: dir, Config: transparent(args[0], protocol, tools), Ready: 20 * time.Second})
	if err != nil {
		return err
	}
	defer func() {
		fmt.Fprint(os.Stderr, g.Talk())
		err = errors.Join(err, g.Stop())
	}()
	proxy, err := listenAuthProxy()
	if err != nil {
		return err
	}
	defer proxy.close()
	if err := proxy.serve(g.URL); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, os.Getenv("CONFORMANCE_CLIENT"), proxy.origin()+"/v1/mcp")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// contextTools are the tools that the scenario's data names.
func contextTools() ([]string, error) {
	var data struct {
		ToolCalls []struct {
			Name string `json:"name"`
		} `json:"toolCalls"`
	}
	if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &data); err != nil {
		return nil, fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
	}
	var names []string
	seen := map[string]bool{}
	for _, c := range data.ToolCalls {
		if !seen[c.Name] {
			names = append(names, c.Name)
		}
		seen[c.Name] = true
	}
	return names, nil
}
