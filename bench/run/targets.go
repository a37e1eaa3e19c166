//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// target is one entry of the file that load, idle and tools read; bench/README.md says what each field means.
type target struct {
	Name      string            `json:"name"`
	URL       string            `json:"url"`
	Path      string            `json:"path"`
	Era       string            `json:"era"`
	Headers   map[string]string `json:"headers,omitempty"`
	Tool      string            `json:"tool,omitempty"`
	Needs     []string          `json:"needs,omitempty"`
	Start     *start            `json:"start,omitempty"`
	ProcessOf string            `json:"process_of,omitempty"`
}

type start struct {
	Cmd      []string          `json:"cmd"`
	Env      map[string]string `json:"env,omitempty"`
	ReadyURL string            `json:"ready_url,omitempty"`
	ReadyIn  int               `json:"ready_in,omitempty"`
	Log      string            `json:"log,omitempty"`
}

// token is what the gateways under measurement ask for.
const token = "bench-0123456789abcdef0123456789abcdef"

// Ports of the targets, all on the loopback interface.
const (
	portDirect = 9100 + iota
	portProxy
	portSDK
	portSDKStdio
	portRelaxed
	portDurable
	portMany
	portTen
	portSoak
	portEvents
)

func address(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

func (o *options) exe(name string) string { return filepath.Join(o.bin, name) }

func (o *options) direct(args ...string) target {
	return target{Name: "direct", URL: "http://" + address(portDirect), Path: "/mcp", Era: "modern",
		Start: &start{Cmd: append([]string{o.exe("upstream"), "-listen", address(portDirect)}, args...), ReadyURL: "http://" + address(portDirect) + "/healthz"}}
}

func (o *options) proxy() target {
	return target{Name: "proxy", URL: "http://" + address(portProxy), Path: "/mcp", Era: "modern", Needs: []string{"direct"},
		Start: &start{Cmd: []string{o.exe("proxy"), "-listen", address(portProxy), "-to", "http://" + address(portDirect)}}}
}

func (o *options) sdkGateway() target {
	return target{Name: "sdk-gateway", URL: "http://" + address(portSDK), Path: "/mcp", Era: "modern", Needs: []string{"direct"},
		Start: &start{Cmd: []string{o.exe("sdkgateway"), "-listen", address(portSDK), "-to", "http://" + address(portDirect) + "/mcp"}, ReadyURL: "http://" + address(portSDK) + "/healthz"}}
}

func (o *options) sdkGatewayStdio() target {
	return target{Name: "sdk-gateway", URL: "http://" + address(portSDKStdio), Path: "/mcp", Era: "modern",
		Start: &start{Cmd: []string{o.exe("sdkgateway"), "-listen", address(portSDKStdio), "--", o.exe("upstream"), "-stdio"}, ReadyURL: "http://" + address(portSDKStdio) + "/healthz"}}
}

// provider is one provider of a gateway under measurement.
type provider struct {
	name, ledger string
	url          string   // or
	command      []string // a stdio server
	tools        []string
	keys         string // further lines of its table
}

func (o *options) gateway(name, ledger string) target {
	port := map[string]int{"relaxed": portRelaxed, "durable": portDurable}[ledger]
	t := o.ostiaryTarget(name, port, "raw", provider{name: "up", ledger: ledger, url: "http://" + address(portDirect) + "/mcp", tools: working})
	t.Needs = []string{"direct"}
	return t
}

func (o *options) gatewayStdio(name, ledger string) target {
	port := map[string]int{"relaxed": portRelaxed, "durable": portDurable}[ledger]
	return o.ostiaryTarget(name, port, "raw", provider{name: "up", ledger: ledger, command: []string{o.exe("upstream"), "-stdio"}, tools: working})
}

// working are the upstream's tools that do something.
var working = []string{"echo", "blob", "slow"}

// ostiaryTarget writes a configuration and returns the target that is started with it.
func (o *options) ostiaryTarget(name string, port int, naming string, providers ...provider) target {
	dir := filepath.Join(o.dir, fmt.Sprintf("%s-%d", name, port))
	var b strings.Builder
	fmt.Fprintf(&b, "[server]\nlisten = %q\ntoken_env = \"OSTIARY_TOKEN\"\nmax_body_bytes = 67108864\n\n[budget.principal]\ncalls = 0\nidentical = 0\n[budget.session]\ncalls = 0\nidentical = 0\n", address(port))
	var exported []string
	for _, p := range providers {
		fmt.Fprintf(&b, "[provider.%s]\ntrust_tier = \"CONTROLLED_LOCAL\"\nledger = %q\n%s", p.name, p.ledger, p.keys)
		if p.url != "" {
			fmt.Fprintf(&b, "transport = \"http\"\nurl = %q\n", p.url)
		} else {
			fmt.Fprintf(&b, "transport = \"stdio\"\ncommand = %q\nargs = [%s]\n", p.command[0], quoteAll(p.command[1:]))
		}
		fmt.Fprintf(&b, "allowed_tools = [%s]\n[provider.%s.policy]\navailable = true\napproval = \"never\"\n", quoteAll(p.tools), p.name)
		for _, t := range p.tools {
			if len(p.tools) <= len(working) && p.keys == "" {
				fmt.Fprintf(&b, "[provider.%s.policy.tools.%s]\neffect = \"READ_ONLY\"\n", p.name, t)
			}
			exported = append(exported, "aur.mcp."+p.name+"."+t)
		}
	}
	fmt.Fprintf(&b, "[export.default]\nnaming = %q\ntools = [%s]\n", naming, quoteAll(exported))
	config := filepath.Join(dir, "ostiary.toml")
	// A provider that is reached otherwise is not the one that was admitted, so each kind has a ledger of its own.
	data := filepath.Join(dir, "data-http")
	if len(providers) > 0 && providers[0].url == "" {
		data = filepath.Join(dir, "data-stdio")
	}
	// Errors of writing show when the gateway does not start.
	_ = os.MkdirAll(dir, 0o755)
	_ = os.WriteFile(config, []byte(b.String()), 0o600)
	t := target{Name: name, URL: "http://" + address(port), Path: "/v1/mcp", Era: "modern", Headers: map[string]string{"Authorization": "Bearer " + token},
		Start: &start{Cmd: []string{o.ostiary, "serve", "--config", config, "--data", data}, Env: map[string]string{"OSTIARY_TOKEN": token},
			ReadyURL: "http://" + address(port) + "/readyz", ReadyIn: 120, Log: filepath.Join(dir, "log")}}
	if naming == "flat" {
		t.Tool = providers[0].name + "__echo"
	}
	return t
}

func quoteAll(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = strconv.Quote(w)
	}
	return strings.Join(all, ", ")
}

// many are providers that together have as many tools as asked for.
func (o *options) many() []provider {
	var all []provider
	each := o.tools / o.providers
	for i := range o.providers {
		p := provider{name: fmt.Sprintf("p%02d", i+1), ledger: "relaxed", command: []string{o.exe("upstream"), "-stdio", "-tools", strconv.Itoa(each - len(working))}, tools: working}
		for n := range each - len(working) {
			p.tools = append(p.tools[:len(p.tools):len(p.tools)], fmt.Sprintf("extra_%05d", n+1))
		}
		all = append(all, p)
	}
	return all
}

// list times tools/list of a gateway with many tools next to one server that has as many.
func (o *options) list(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "%d tools with an input schema of 1 KB each, in %d providers behind the gateway, or in one server.\n\n", o.tools, o.providers)
	return o.program(ctx, out, "tools", []target{o.direct("-tools", strconv.Itoa(o.tools-len(working))), o.ostiaryTarget("ostiary", portMany, "flat", o.many()...), o.sdkGateway()},
		"-n", strconv.Itoa(o.lists))
}
