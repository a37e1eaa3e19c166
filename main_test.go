package ostiary_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ostiary/ostiary/internal/cli"
	"github.com/ostiary/ostiary/internal/exampleserver"
	"github.com/ostiary/ostiary/internal/exampleserver/chat"
)

// Environment variables that turn the test binary into something else.
const (
	roleEnv   = "OSTIARY_TEST_ROLE"
	dirEnv    = "OSTIARY_TEST_DIR"
	crashEnv  = "OSTIARY_TEST_CRASH" // step to die at
	crashNEnv = "OSTIARY_TEST_CRASH_N"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
		os.Exit(m.Run())
	case "example-server":
		err := exampleserver.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "hostile-server":
		hostileChild(os.Args[1], os.Args[2])
	case "chat":
		if err := chat.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "raw-server":
		rawServer()
	case "ostiary":
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
	default:
		play, ok := roles[os.Getenv(roleEnv)]
		if !ok {
			fmt.Fprintln(os.Stderr, "no role", os.Getenv(roleEnv))
			os.Exit(1)
		}
		play()
	}
}

// roles are further ones, which not every system has.
var roles = map[string]func(){}

// writeConfig makes a configuration in dir whose provider ex is the test binary as the example server; tables are further
// ones.
func writeConfig(t testing.TB, dir, tables string, args ...string) string {
	t.Helper()
	list := ""
	for i, a := range args {
		if i > 0 {
			list += ", "
		}
		list += fmt.Sprintf("%q", a)
	}
	text := fmt.Sprintf(`
[server]
listen    = "127.0.0.1:0"
token_env = "OSTIARY_TOKEN"

[provider.ex]
transport     = "stdio"
command       = %q
args          = [%s]
env           = { %s = "example-server" }
trust_tier    = "CONTROLLED_LOCAL"
allowed_tools = ["echo", "add", "fail", "refuse", "slow", "hang", "die", "kinds", "count", "write_note", "read_notes", "meta", "big", "drift"]
close_seconds = 2
[provider.ex.policy]
available = true
approval  = "never"
[provider.ex.policy.tools.echo]
effect    = "READ_ONLY"
%s
`, self(t), list, roleEnv, tables)
	path := filepath.Join(dir, "ostiary.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func self(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// environment looks up in m alone, but for what children need to run at all.
func environment(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if v, ok := m[name]; ok {
			return v, true
		}
		if name == "PATH" || name == "HOME" {
			return os.LookupEnv(name)
		}
		return "", false
	}
}

const testToken = "0123456789abcdef0123456789abcdef"
