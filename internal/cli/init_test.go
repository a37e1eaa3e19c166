package cli

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ostiary/ostiary/internal/config"
)

func TestGuessPackage(t *testing.T) {
	for name, s := range map[string]config.Starter{
		"filesystem": {Command: strings.Fields("npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /srv/docs")},
		"git":        {Command: strings.Fields("uvx mcp-server-git --repository /x")},
		"server":     {Command: strings.Fields("npx -y")}, // nothing says it
		"weather":    {Command: strings.Fields("node build/weather.js")},
		"github":     {Command: strings.Fields("/usr/local/bin/github-mcp-server stdio")},
		"postgres":   {Command: strings.Fields("docker run --rm -i mcp/postgres")},
		"search":     {URL: "https://mcp.search.example/mcp"},
		"localhost":  {URL: "http://localhost:9000/mcp"},
	} {
		if got := guessPackage(s); got != name && !(name == "server" && got == "npx") {
			t.Errorf("%v %s: got %q, want %q", s.Command, s.URL, got, name)
		}
	}
}

// The question takes numbers and names; the end of the input and an empty line allow nothing.
func TestR6_1_Pick(t *testing.T) {
	tools := []config.StarterTool{{Name: "read"}, {Name: "write"}, {Name: "a\x1b[31mb"}}
	for answer, want := range map[string][]string{
		"": nil, "\n": nil, "1\n": {"read"}, "2, read\n": {"write", "read"}, "7\n": {"7"}, "1 2": {"read", "write"},
	} {
		var asked strings.Builder
		a := newApp(strings.NewReader(answer), io.Discard, &asked, func(string) (string, bool) { return "", false })
		got, err := a.pick(tools)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %q, %v, want %q", answer, got, err, want)
		}
		if strings.Contains(asked.String(), "\x1b") {
			t.Errorf("the question shows an escape: %q", asked.String())
		}
	}
}
