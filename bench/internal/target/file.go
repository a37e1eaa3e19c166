//go:build linux

// Package target reads the file of targets, starts the processes that it names
// and stops them again.
package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/ostiary/ostiary/bench/internal/mcp"
)

// Target is one thing to measure. In every string of it, $NAME and ${NAME}
// stand for environment variables, and $$ for a dollar sign.
type Target struct {
	Name    string            `json:"name"`
	URL     string            `json:"url"`  // http://127.0.0.1:PORT
	Path    string            `json:"path"` // of the MCP endpoint
	Era     string            `json:"era"`  // modern or legacy
	Headers map[string]string `json:"headers,omitempty"`
	Tool    string            `json:"tool,omitempty"` // name of the echo tool there; echo if empty

	// The process to account: one of these three, or none.
	PIDFile   string `json:"pid_file,omitempty"`
	ProcessOf string `json:"process_of,omitempty"` // name of the target that started it
	Start     *Start `json:"start,omitempty"`

	Needs []string `json:"needs,omitempty"` // targets that must be up first

	Addr string `json:"-"` // host:port of URL
}

// Start says how to start a target's process.
type Start struct {
	Cmd      []string          `json:"cmd"`
	Env      map[string]string `json:"env,omitempty"` // on top of the environment
	Dir      string            `json:"dir,omitempty"`
	ReadyURL string            `json:"ready_url,omitempty"` // ready when GET answers below 500
	ReadyTCP string            `json:"ready_tcp,omitempty"` // ready when it accepts; the target's own address if both are empty
	ReadyIn  int               `json:"ready_in,omitempty"`  // seconds; 30 if zero
	Warmup   int               `json:"warmup,omitempty"`    // calls before measuring; the tool's flag if zero
	Log      string            `json:"log,omitempty"`       // file for its output; dropped if empty
}

// Load reads a file of targets. With names in only, it returns those and what
// they need; the second result holds the names that were asked for.
func Load(path string, only []string) ([]*Target, []string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	var all []*Target
	if err := d.Decode(&all); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, nil, fmt.Errorf("%s: something follows the list of targets", path)
	}
	byName := set{}
	wantAll := len(only) == 0
	for _, t := range all {
		if t.Name == "" || byName[t.Name] != nil {
			return nil, nil, fmt.Errorf("%s: target name %q is empty or used twice", path, t.Name)
		}
		byName[t.Name] = t
		if wantAll {
			only = append(only, t.Name)
		}
	}
	var ordered []*Target
	for _, name := range only {
		if ordered, err = byName.with(ordered, name, nil); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, t := range ordered {
		if err := t.prepare(byName); err != nil {
			return nil, nil, fmt.Errorf("%s: target %s: %w", path, t.Name, err)
		}
	}
	return ordered, only, nil
}

type set map[string]*Target

// with appends the named target to ordered, after what it needs.
func (s set) with(ordered []*Target, name string, above []string) ([]*Target, error) {
	t := s[name]
	if t == nil {
		return nil, fmt.Errorf("no target is named %q", name)
	}
	if slices.Contains(above, name) {
		return nil, fmt.Errorf("target %s needs itself: %s", name, strings.Join(append(above, name), " → "))
	}
	if slices.Contains(ordered, t) {
		return ordered, nil
	}
	needs := t.Needs
	if t.ProcessOf != "" {
		needs = append(slices.Clone(needs), t.ProcessOf)
	}
	for _, n := range needs {
		var err error
		if ordered, err = s.with(ordered, n, append(above, name)); err != nil {
			return nil, err
		}
	}
	return append(ordered, t), nil
}

// prepare expands variables, fills in defaults and checks the whole.
func (t *Target) prepare(all set) error {
	if err := t.expand(); err != nil {
		return err
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return err
	}
	if u.Scheme != "http" || u.Port() == "" || strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("url %q must be http://HOST:PORT", t.URL)
	}
	t.Addr = u.Host
	if err := loopback(u.Host); err != nil {
		return err
	}
	if !strings.HasPrefix(t.Path, "/") {
		return fmt.Errorf("path %q must begin with a slash", t.Path)
	}
	if t.Era != "modern" && t.Era != "legacy" {
		return fmt.Errorf("era %q must be modern or legacy", t.Era)
	}
	if t.Tool == "" {
		t.Tool = "echo"
	}
	for n, v := range t.Headers {
		if n == "" || strings.ContainsAny(n+v, "\r\n") {
			return fmt.Errorf("header %q is malformed", n)
		}
	}
	given := 0
	for _, is := range []bool{t.PIDFile != "", t.ProcessOf != "", t.Start != nil} {
		if is {
			given++
		}
	}
	if given > 1 {
		return errors.New("give one of pid_file, process_of and start")
	}
	if t.ProcessOf != "" && all[t.ProcessOf].ProcessOf != "" {
		return fmt.Errorf("process_of %s must name a target with start or pid_file", t.ProcessOf)
	}
	if t.Start != nil {
		return t.Start.check(t.Addr)
	}
	return nil
}

func (s *Start) check(addr string) error {
	if len(s.Cmd) == 0 {
		return errors.New("start.cmd is empty")
	}
	if s.ReadyURL == "" && s.ReadyTCP == "" {
		s.ReadyTCP = addr
	}
	if s.ReadyIn == 0 {
		s.ReadyIn = 30
	}
	if s.ReadyURL != "" {
		u, err := url.Parse(s.ReadyURL)
		if err != nil {
			return err
		}
		return loopback(u.Host)
	}
	return loopback(s.ReadyTCP)
}

// loopback refuses every address but this machine's own.
func loopback(hostport string) error {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() {
		return fmt.Errorf("%s is not a loopback address: this tool loads its own machine only", hostport)
	}
	return nil
}

func (t *Target) expand() error {
	var missing []string
	lookup := func(name string) string {
		if name == "$" {
			return "$"
		}
		v, ok := os.LookupEnv(name)
		if !ok {
			missing = append(missing, name)
		}
		return v
	}
	str := func(s *string) { *s = os.Expand(*s, lookup) }
	table := func(m map[string]string) {
		for k, v := range m {
			m[k] = os.Expand(v, lookup)
		}
	}
	str(&t.URL)
	str(&t.Path)
	str(&t.Tool)
	str(&t.PIDFile)
	table(t.Headers)
	if s := t.Start; s != nil {
		for i := range s.Cmd {
			str(&s.Cmd[i])
		}
		table(s.Env)
		str(&s.Dir)
		str(&s.ReadyURL)
		str(&s.ReadyTCP)
		str(&s.Log)
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("environment variables not set: %s", strings.Join(slices.Compact(missing), ", "))
	}
	return nil
}

// Endpoint is where the target's server is.
func (t *Target) Endpoint() mcp.Endpoint {
	return mcp.Endpoint{Addr: t.Addr, Path: t.Path, Modern: t.Era == "modern", Headers: t.Headers}
}

// ToolNamed returns the target's name of another tool of the upstream: where
// echo is up__echo, blob is up__blob.
func (t *Target) ToolNamed(name string) string {
	if i := strings.LastIndex(t.Tool, "echo"); i >= 0 {
		return t.Tool[:i] + name + t.Tool[i+len("echo"):]
	}
	return t.Tool
}
