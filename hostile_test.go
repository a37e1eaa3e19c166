package ostiary_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ostiary/ostiary"
	"github.com/ostiary/ostiary/internal/mcpwire/content"
)

// hostile is a scripted MCP server, of 2026-07-28 unless it is a legacy child. What it says is up to the test: whatever the protocol makes of it, it is
// sent as it is. It answers behind HTTP in this process, or on standard output as a child that is named after its scenario.
type hostile struct {
	pkg      string   // of the provider; "bad" if empty
	scenario string   // of [scenarios]; "" runs it in this process
	keys     string   // further lines of the provider's table, beside its transport and its tools
	policy   string   // lines of the policy's table; approval = "never" if empty
	allowed  []string // tools; all that it lists first if nil
	exported []string // all that are allowed if nil

	legacy       bool   // 2025-11-25
	name         string // that it gives itself
	instructions string
	page         int // tools on a page; 0: all
	tools        func(asked) []string
	call         func(asked) string                // members of the result; what begins with "!" is an error object
	speak        func(a asked, write func(string)) // before the answer to a call, on the same pipe
	discover     func(asked) string                // further members of the answer to server/discover

	record string // file that gets a line for every message that came in
	url    string
	mu     sync.Mutex
	counts map[string]int
}

// asked is one message that came in.
type asked struct {
	method, tool string
	arguments    []byte
	params       []byte
	header       http.Header
	n            int // how many of its method there have been, with this one
}

// says makes a definition, with further members.
func says(name, description, more string) string {
	if !strings.Contains(more, `"inputSchema"`) {
		more += `,"inputSchema":{"type":"object"}`
	}
	return fmt.Sprintf(`{"name":%q,"description":%s%s}`, name, jsonText(description), more)
}

func jsonText(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string has a form
	return strings.TrimSpace(b.String())
}

// text is a result of one block.
func text(s string) string { return `"content":[{"type":"text","text":` + jsonText(s) + `}]` }

// always has the server list these tools, whatever it is asked.
func always(definitions ...string) func(asked) []string {
	return func(asked) []string { return definitions }
}

// answer is what the server says to one message; nil: nothing.
func (h *hostile) answer(raw []byte, header http.Header, write func(string)) []byte {
	f, err := content.ParseFrame(raw, content.FrameLimits{})
	if err != nil {
		return nil
	}
	a := asked{method: f.Method, params: f.Params, header: header}
	a.tool, _ = content.String(content.Member(f.Params, "name"))
	a.arguments = content.Member(f.Params, "arguments")
	h.mu.Lock()
	if h.counts == nil {
		h.counts = map[string]int{}
	}
	h.counts[a.method]++
	a.n = h.counts[a.method]
	h.note(raw)
	h.mu.Unlock()
	if len(f.ID) == 0 || f.Method == "" {
		return nil
	}
	members := ""
	switch {
	case a.method == "initialize" && h.legacy:
		members = fmt.Sprintf(`"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":%s,"version":"1"},"instructions":%s`, jsonText(h.name), jsonText(h.instructions))
	case a.method == "server/discover" && !h.legacy:
		members = `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","instructions":` + jsonText(h.instructions)
		if h.discover != nil {
			members += "," + h.discover(a)
		}
	case a.method == "tools/list":
		members = h.list(a)
	case a.method == "tools/call":
		if h.speak != nil && write != nil {
			h.speak(a, write)
		}
		members = text("done")
		if h.call != nil {
			members = h.call(a)
		}
	default:
		members = `!{"code":-32601,"message":"there is no such method"}`
	}
	if e, ok := strings.CutPrefix(members, "!"); ok {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, f.ID, e)
	}
	if !h.legacy && content.Member([]byte("{"+members+"}"), "_meta") == nil {
		members += fmt.Sprintf(`,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":%s,"version":"1"}}`, jsonText(h.name))
	}
	if !h.legacy && !strings.Contains(members, `"resultType"`) {
		members = `"resultType":"complete",` + members
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{%s}}`, f.ID, members)
}

func (h *hostile) list(a asked) string {
	all, first := h.tools(a), 0
	if h.page == 0 {
		h.page = len(all)
	}
	if cursor, ok := content.String(content.Member(a.params, "cursor")); ok {
		_, _ = fmt.Sscan(cursor, &first)
	}
	last := min(first+h.page, len(all))
	members := `"tools":[` + strings.Join(all[first:last], ",") + `],"ttlMs":0,"cacheScope":"private"`
	if last < len(all) {
		members += fmt.Sprintf(`,"nextCursor":"%d"`, last)
	}
	return members
}

func (h *hostile) note(raw []byte) {
	f, err := os.OpenFile(h.record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err) // of a server of ours
	}
	defer f.Close()
	fmt.Fprintf(f, "%s\n", bytes.ReplaceAll(raw, []byte("\n"), nil))
}

// ServeHTTP implements [http.Handler].
func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	b := h.answer(body, r.Header, nil)
	if b == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // whoever does not want it has gone
}

// hostileChild is the server as a process of its own.
func hostileChild(scenario, record string) {
	h := scenarios[scenario]()
	h.record = record
	var mu sync.Mutex
	write := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(line)
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			if b := h.answer(bytes.TrimSpace(line), nil, write); b != nil {
				write(string(b))
			}
		}
		if err != nil {
			return
		}
	}
}

// got are the messages of a method that have come to the server, raw and in order; "" is all of them.
func (h *hostile) got(t testing.TB, method string) (all []string) {
	t.Helper()
	b, err := os.ReadFile(h.record)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		f, err := content.ParseFrame([]byte(strings.TrimSpace(line)), content.FrameLimits{})
		if method == "" || err == nil && f.Method == method {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

// calls are the arguments of the calls that have come to the server.
func (h *hostile) calls(t testing.TB) (all []string) {
	t.Helper()
	for _, line := range h.got(t, "tools/call") {
		f, err := content.ParseFrame([]byte(line), content.FrameLimits{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(content.Member(f.Params, "arguments")))
	}
	return all
}

// serve starts the server and says which tools it allows.
func (h *hostile) serve(t testing.TB) {
	t.Helper()
	if h.pkg == "" {
		h.pkg = "bad"
	}
	if h.name == "" {
		h.name = h.pkg
	}
	if h.record == "" {
		h.record = filepath.Join(t.TempDir(), h.pkg)
	}
	if h.allowed == nil {
		for _, d := range h.tools(asked{method: "tools/list", n: 1}) {
			name, _ := content.String(content.Member([]byte(d), "name"))
			h.allowed = append(h.allowed, name)
		}
	}
	if h.exported == nil {
		h.exported = h.allowed
	}
	if h.scenario == "" && h.url == "" {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		h.url = s.URL
	}
}

// table is the server in a configuration.
func (h *hostile) table(t testing.TB) string {
	how := fmt.Sprintf("transport = \"http\"\nurl = %q", h.url+"/mcp")
	if h.scenario != "" {
		how = fmt.Sprintf("transport = \"stdio\"\ncommand = %q\nargs = [%q, %q]\nenv = { %s = \"hostile-server\" }\nclose_seconds = 2", self(t), h.scenario, h.record, roleEnv)
	}
	if !strings.Contains(h.keys, "trust_tier") {
		h.keys += "\ntrust_tier = \"CONTROLLED_LOCAL\""
	}
	policy := h.policy
	if policy == "" {
		policy = `approval = "never"`
	}
	var allowed []string
	for _, name := range h.allowed {
		allowed = append(allowed, jsonText(name))
	}
	return fmt.Sprintf("[provider.%[1]s]\n%[2]s\n%[3]s\nallowed_tools = [%[4]s]\n[provider.%[1]s.policy]\navailable = true\n%[5]s\n", h.pkg, how, h.keys, strings.Join(allowed, ", "), policy)
}

// explicit has somebody look at the tools before they are used.
const explicit = `trust_tier = "USER_ADDED_REVIEWED"`

// besiege starts a gateway in front of hostile servers, all of whose tools are exported: by their own names if there is one
// server, else by flat ones. Tables are further ones.
func besiege(t testing.TB, tables string, servers ...*hostile) *gateway {
	t.Helper()
	config := "[server]\nlisten = \"127.0.0.1:0\"\ntoken_env = \"OSTIARY_TOKEN\"\n"
	var ids []string
	for _, h := range servers {
		h.serve(t)
		config += h.table(t)
		for _, name := range h.exported {
			ids = append(ids, fmt.Sprintf("%q", "aur.mcp."+h.pkg+"."+name))
		}
	}
	naming := "raw"
	if len(servers) > 1 {
		naming = "flat"
	}
	config += fmt.Sprintf("[export.default]\nnaming = %q\ntools = [%s]\n", naming, strings.Join(ids, ", "))
	dir := t.TempDir()
	g := &gateway{t: t, dir: dir, path: filepath.Join(dir, "ostiary.toml"), env: map[string]string{"OSTIARY_TOKEN": testToken, "OTHER_TOKEN": otherToken}, log: new(logBuffer)}
	g.rewrite(config + tables)
	g.start()
	t.Cleanup(func() {
		g.stop()
		if !t.Failed() {
			checkLineage(t, filepath.Join(dir, "data"))
		}
	})
	return g
}

// rewrite puts another configuration in place, for the next start.
func (g *gateway) rewrite(config string) {
	g.t.Helper()
	if err := os.WriteFile(g.path, []byte(config), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// config is the configuration as it is in the file.
func (g *gateway) config() string {
	g.t.Helper()
	b, err := os.ReadFile(g.path)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(b)
}

// of is where a tool of a provider stands.
func (g *gateway) of(pkg, tool string) ostiary.Admission {
	g.t.Helper()
	all, err := g.Admissions(g.t.Context(), pkg)
	if err != nil {
		g.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(a ostiary.Admission) bool { return a.Tool == tool })
	if i < 0 {
		g.t.Fatalf("tool %q of %s stands nowhere in %+v", tool, pkg, all)
	}
	return all[i]
}

// codes are the findings in what is offered.
func codes(a ostiary.Admission) (out []string) {
	for _, f := range a.Findings {
		if !slices.Contains(out, f.Code) {
			out = append(out, f.Code)
		}
	}
	return out
}

// admit admits what is offered by one tool, or with "*" everything.
func (g *gateway) admit(pkg, tool string) {
	g.t.Helper()
	d := ostiary.AdmissionDecision{Provider: pkg, All: tool == "*"}
	if tool != "*" {
		d.Tools = map[string]string{tool: g.of(pkg, tool).Digest}
	}
	if _, err := g.Admit(g.t.Context(), d); err != nil {
		g.t.Fatal(err)
	}
}

// logBuffer takes the log of a gateway.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) logger() *slog.Logger {
	if l == nil {
		return nil
	}
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// canary is a listener that nobody has a reason to ask anything. It fails the test if somebody does.
func canary(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("somebody asked for %s", r.URL) }))
	t.Cleanup(s.Close)
	return s.URL
}

// askAs is a call of a principal of the given token, as a client that gives itself a name.
func (g *gateway) askAs(token, client, tool, arguments string) string {
	g.t.Helper()
	msg := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":%q,"version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, arguments, client)
	return g.post(context.Background(), token, "tools/call", tool, msg)
}

// post sends one message and returns the body of the answer.
func (g *gateway) post(ctx context.Context, token, method, name, msg string) string {
	g.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+g.Addr()+"/v1/mcp", strings.NewReader(msg))
	if err != nil {
		g.t.Fatal(err)
	}
	for k, v := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name} {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(b)
}
