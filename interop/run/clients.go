//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/ostiary/ostiary/interop/gateway"
)

// exported are the tools of the example server that the clients see, in the order of their names.
var exported = []string{"add", "echo", "fail", "hang", "slow"}

// client is one real client, and what it must have seen.
type client struct {
	id, about string
	node      bool // it needs Node
	run       func(ctx context.Context, at *place, home string, g *gateway.Gateway) error
	cancels   bool // it cancels a hanging call, which must reach the server
}

var clients = []client{
	{"ts-v1", "@modelcontextprotocol/sdk 1.32.2", true, script("v1.mjs", "2025-11-25"), true},
	{"ts-v2 legacy", "@modelcontextprotocol/client 2.4.0", true, script("v2.mjs", "2025-11-25", "legacy"), true},
	{"ts-v2 auto", "@modelcontextprotocol/client 2.4.0", true, script("v2.mjs", "2026-07-28", "auto"), true},
	{"ts-v2 pinned", "@modelcontextprotocol/client 2.4.0", true, script("v2.mjs", "2026-07-28", "2026-07-28"), true},
	{"inspector legacy", "@modelcontextprotocol/inspector 2.12.0", true, inspector("legacy"), false},
	{"inspector auto", "@modelcontextprotocol/inspector 2.12.0", true, inspector("auto"), false},
	{"inspector modern", "@modelcontextprotocol/inspector 2.12.0", true, inspector("modern"), false},
	{"mcpc", "@apify/mcpc 0.2.6", true, mcpc, false},
	{"go-sdk 2026-07-28", "go-sdk 1.8.0", false, goSDK("2026-07-28"), true},
	{"go-sdk 2025-11-25", "go-sdk 1.8.0", false, goSDK("2025-11-25"), true},
	{"go-sdk 2025-06-18", "go-sdk 1.8.0", false, goSDK("2025-06-18"), true},
	{"go-sdk 2025-03-26", "go-sdk 1.8.0", false, goSDK("2025-03-26"), true},
	{"go-sdk 2024-11-05", "go-sdk 1.8.0", false, goSDK("2024-11-05"), true},
}

// checkClients runs every client against a gateway of its own, in front of the example server.
func checkClients(ctx context.Context, at *place, home string, w io.Writer) (failed int) {
	errs := make([]error, len(clients))
	slots := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i, c := range clients {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			started := time.Now()
			errs[i] = c.check(ctx, at, home)
			state := "ok"
			if errs[i] != nil {
				state = "FAILED"
			}
			fmt.Fprintf(os.Stderr, "%-22s %s (%.1f s)\n", c.id, state, time.Since(started).Seconds())
		})
	}
	running.Wait()
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nCLIENT\tPROGRAM\tRESULT")
	for i, c := range clients {
		result := "list, call, refusal"
		if c.cancels {
			result += ", progress, cancel"
		}
		if errs[i] != nil {
			result, failed = "FAILED", failed+1
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.id, c.about, result)
	}
	t.Flush()
	for i, c := range clients {
		if errs[i] != nil {
			fmt.Fprintf(w, "\nFAILED %s: %v\n", c.id, errs[i])
		}
	}
	fmt.Fprintf(w, "\nclients: %d passed, %d failed\n", len(clients)-failed, failed)
	return failed
}

func (c client) check(ctx context.Context, at *place, home string) (err error) {
	if c.node && at.node == 0 {
		return errors.New("there is no Node here")
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	dir := filepath.Join(at.out, "client-"+strings.ReplaceAll(c.id, " ", "-"))
	counter := filepath.Join(dir, "counter")
	var config strings.Builder
	fmt.Fprintf(&config, "[provider.example]\ntransport = \"stdio\"\ntrust_tier = \"CONTROLLED_LOCAL\"\ncommand = %s\nargs = %s\nallowed_tools = %s\n",
		quote(at.bin), quoteAll([]string{"example-server", "--counter", counter}), quoteAll(exported))
	config.WriteString("[provider.example.policy]\navailable = true\napproval = \"never\"\n[export.default]\nnaming = \"raw\"\ntools = [\n")
	for _, name := range exported {
		fmt.Fprintf(&config, "  %s,\n", quote("aur.mcp.example."+name))
	}
	config.WriteString("]\n")
	g, err := gateway.Start(ctx, gateway.Options{Bin: at.bin, Dir: dir, Config: config.String()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	if err := c.run(ctx, at, home, g); err != nil {
		return err
	}
	if c.cancels {
		return cancelReached(ctx, counter)
	}
	return nil
}

// cancelReached waits until the server has noted that its call was cancelled.
func cancelReached(ctx context.Context, counter string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		b, err := os.ReadFile(counter)
		if err == nil && bytes.Contains(b, []byte("hang cancelled\n")) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cancellation did not reach the server, whose calls were %q", b)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// command runs one command of Node's and returns its standard output.
func command(ctx context.Context, at *place, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Env = append(os.Environ(), "INTEROP_CLIENTS="+filepath.Join(at.cache, "clients"), "HOME="+dir, "MCPC_HOME_DIR="+filepath.Join(dir, ".mcpc"), "NO_COLOR=1")
	cmd.Dir = dir
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("%w: %s%s", err, out.String(), errOut.String())
	}
	return out.Bytes(), nil
}

// script runs a scripted client twice: with the right token, and with a wrong one.
func script(name, revision string, args ...string) func(context.Context, *place, string, *gateway.Gateway) error {
	return func(ctx context.Context, at *place, home string, g *gateway.Gateway) error {
		run := func(token string) (map[string]any, error) {
			out, err := command(ctx, at, g.Dir, append([]string{filepath.Join(home, "clients", name), g.URL + "/v1/mcp", token}, args...)...)
			if err != nil {
				return nil, err
			}
			var seen map[string]any
			return seen, json.Unmarshal(out, &seen)
		}
		seen, err := run(gateway.Token)
		if err != nil {
			return err
		}
		want := map[string]any{
			"version": revision, "tools": exported,
			"add":     []any{"42", map[string]any{"sum": 42}},
			"echo":    map[string]any{"text": `Grüße, 世界 "quoted"`, "list": []any{1, 2.5, nil, false}},
			"fail":    []any{true, "no luck"},
			"unknown": []any{"error", -32602}, "progress": [][]int{{1, 3}, {2, 3}, {3, 3}},
			"cancelled": "thrown", "after": "2",
		}
		if err := same(seen, want); err != nil {
			return err
		}
		if seen, err = run("wrong-0123456789abcdef"); err != nil {
			return err
		}
		if seen["error"] == nil || seen["tools"] != nil {
			return fmt.Errorf("with a wrong token it saw %v", seen)
		}
		return nil
	}
}

// same compares by way of JSON.
func same(got, want any) error {
	g, err1 := json.Marshal(got)
	w, err2 := json.Marshal(want)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if !bytes.Equal(g, w) {
		return fmt.Errorf("it saw      %s\nexpected    %s", g, w)
	}
	return nil
}

// inspector drives Inspector's command line.
func inspector(era string) func(context.Context, *place, string, *gateway.Gateway) error {
	return func(ctx context.Context, at *place, _ string, g *gateway.Gateway) error {
		bin := filepath.Join(at.cache, "clients", "node_modules", ".bin", "mcp-inspector")
		if _, err := os.Stat(bin); err != nil {
			bin = filepath.Join(at.cache, "clients", "node_modules", ".bin", "inspector")
		}
		run := func(token string, args ...string) (map[string]any, error) {
			out, err := command(ctx, at, g.Dir, append([]string{bin, "--cli", "--server-url", g.URL + "/v1/mcp", "--transport", "http", "--header", "Authorization: Bearer " + token,
				"--stored-auth-only", "--protocol-era", era, "--format", "json", "-q"}, args...)...)
			if err != nil {
				return nil, err
			}
			var seen map[string]any
			return seen, json.Unmarshal(out, &seen)
		}
		list, err := run(gateway.Token, "--method", "tools/list")
		if err != nil {
			return fmt.Errorf("tools/list: %w", err)
		}
		if err := same(names(list), exported); err != nil {
			return fmt.Errorf("tools/list: %w", err)
		}
		sum, err := run(gateway.Token, "--method", "tools/call", "--tool-name", "add", "--tool-args-json", `{"a":2,"b":40}`)
		if err != nil {
			return fmt.Errorf("tools/call: %w", err)
		}
		if err := same(member(sum, "structuredContent"), map[string]any{"sum": 42}); err != nil {
			return fmt.Errorf("tools/call: %w", err)
		}
		var exit *exec.ExitError
		if _, err := run("wrong-0123456789abcdef", "--method", "tools/list"); !errors.As(err, &exit) || exit.ExitCode() != 3 {
			return fmt.Errorf("with a wrong token: %w", err)
		}
		return nil
	}
}

// member looks a key up in an object, or in the one that is its only or its "result" member.
func member(o map[string]any, key string) any {
	if v, ok := o[key]; ok {
		return v
	}
	for _, v := range o {
		if sub, ok := v.(map[string]any); ok {
			if found := member(sub, key); found != nil {
				return found
			}
		}
	}
	return nil
}

// names are those of a list of tools, in order of the alphabet as the example server's are not.
func names(list map[string]any) []string {
	all, _ := member(list, "tools").([]any)
	var out []string
	for _, t := range all {
		o, _ := t.(map[string]any)
		name, _ := o["name"].(string)
		out = append(out, name)
	}
	return out
}

const mcpcTries = 6

// mcpc drives Apify's command line, which keeps a session in the background.
func mcpc(ctx context.Context, at *place, _ string, g *gateway.Gateway) (err error) {
	run := func(args ...string) ([]byte, error) {
		return command(ctx, at, g.Dir, append([]string{filepath.Join(at.cache, "clients", "node_modules", ".bin", "mcpc")}, args...)...)
	}
	// It gives its background process five seconds to start, which is not enough for Node on a machine that is busy.
	for try := 1; ; try++ {
		_, err := run("connect", g.URL+"/v1/mcp", "@interop", "--header", "Authorization: Bearer "+gateway.Token, "--json")
		if err == nil {
			break
		}
		if try == mcpcTries || !strings.Contains(err.Error(), "not created within timeout") {
			return fmt.Errorf("connect: %w", err)
		}
	}
	defer func() {
		_, cerr := run("close", "@interop")
		err = errors.Join(err, cerr)
	}()
	out, err := run("@interop", "tools-list", "--json")
	if err != nil {
		return fmt.Errorf("tools-list: %w", err)
	}
	var list any
	if err := json.Unmarshal(out, &list); err != nil {
		return fmt.Errorf("tools-list: %w", err)
	}
	if tools, ok := list.([]any); ok {
		list = map[string]any{"tools": tools}
	}
	o, _ := list.(map[string]any)
	if err := same(names(o), exported); err != nil {
		return fmt.Errorf("tools-list: %w", err)
	}
	if out, err = run("@interop", "tools-call", "add", "a:=2", "b:=40", "--json"); err != nil {
		return fmt.Errorf("tools-call: %w", err)
	}
	var sum map[string]any
	if err := json.Unmarshal(out, &sum); err != nil {
		return fmt.Errorf("tools-call: %w", err)
	}
	return same(member(sum, "structuredContent"), map[string]any{"sum": 42})
}
