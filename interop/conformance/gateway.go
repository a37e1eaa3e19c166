//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/ostiary/ostiary/interop/gateway"
	"github.com/ostiary/ostiary/interop/mcpraw"
)

const token = gateway.Token

// gateway starts one in front of the conformance server: every tool under its own name, nothing asked, nothing held back.
func (s *suite) gateway(ctx context.Context, url, revision, dir, origin string) (*gateway.Gateway, error) {
	c := mcpraw.HTTP(url, nil)
	if err := c.Negotiate(ctx, revision); err != nil {
		return nil, fmt.Errorf("conformance server: %w", err)
	}
	listed, err := c.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("conformance server: %w", err)
	}
	_ = c.Close()
	var names []string
	for _, t := range listed {
		names = append(names, t.Name)
	}
	return gateway.Start(ctx, gateway.Options{Bin: s.bin, Dir: dir, Server: "allowed_origins = [" + mcpraw.Quote(origin) + "]", Config: transparent(url, "auto", names)})
}

// transparent is a configuration that shows the tools of one HTTP provider as they are.
func transparent(url, protocol string, tools []string) string {
	var allowed, exported strings.Builder
	for _, name := range tools {
		allowed.WriteString("  " + mcpraw.Quote(name) + ",\n")
		exported.WriteString("  " + mcpraw.Quote("aur.mcp.suite."+name) + ",\n")
	}
	return `[provider.suite]
transport   = "http"
url         = ` + mcpraw.Quote(url) + `
trust_tier  = "CONTROLLED_LOCAL"
protocol    = ` + mcpraw.Quote(protocol) + `
interaction = "forward"
null_arguments = "absent"
allowed_tools = [
` + allowed.String() + `]
[provider.suite.policy]
available = true
approval  = "never"

[export.default]
naming = "raw"
tools = [
` + exported.String() + `]
`
}
