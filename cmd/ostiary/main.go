// Command ostiary is the doorkeeper between agents and MCP servers.
package main

import (
	"os"

	"github.com/ostiary/ostiary/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
}
