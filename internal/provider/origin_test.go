package provider

import (
	"testing"

	"github.com/ostiary/ostiary/call"
)

// profiles that start or reach a server in different ways have different origins, however their parts are written.
func TestA33_OriginsDiffer(t *testing.T) {
	seen := map[call.Digest]int{}
	for i, p := range []Profile{
		{},
		{Transport: StdioCommand, Stdio: &Stdio{Command: "a"}},
		{Transport: StdioCommand, Stdio: &Stdio{Command: "a", Dir: "/d"}},
		{Transport: StdioCommand, Stdio: &Stdio{Command: "a", Args: []string{"/d"}}},
		{Transport: StdioCommand, Stdio: &Stdio{Command: "a", Args: []string{"x", "y"}}},
		{Transport: StdioCommand, Stdio: &Stdio{Command: "a", Args: []string{"x y"}}},
		{Transport: StdioCommand, Stdio: &Stdio{Command: "a", Args: []string{"x"}, EnvFrom: []string{"y"}}},
		{Transport: StdioCommand, Stdio: &Stdio{Command: "a", Env: map[string]string{"x": "y"}}},
		{Transport: StdioCommand, Stdio: &Stdio{Command: "a", Env: map[string]string{"x": "z"}}},
		{Transport: StdioCommand, Stdio: &Stdio{Command: "a", EnvFrom: []string{"x", "y"}}},
		{Transport: StdioCommand, Stdio: &Stdio{Command: "a", Args: []string{"env", "A", "1"}, EnvFrom: []string{"env_from"}}},
		{Transport: StdioCommand, Stdio: &Stdio{Command: "a", Env: map[string]string{"A": "1", "env": "env_from"}}},
		{Transport: StreamableHTTP, HTTP: &HTTP{URL: "https://a.example"}},
		{Transport: StreamableHTTP, HTTP: &HTTP{URL: "https://a.example", Headers: map[string]string{"X": "1"}}},
		{Transport: StreamableHTTP, HTTP: &HTTP{URL: "https://a.example", Headers: map[string]string{"X": "2"}}},
	} {
		if j, ok := seen[p.Origin()]; ok {
			t.Errorf("profiles %d and %d have one origin", j, i)
		}
		seen[p.Origin()] = i
	}
}
